import { expect, test } from '@jest/globals'
import { type Cell, convert, GgtraceWriter, type OpenTrace, openTrace, summarize } from '../../lib/index.ts'

/** Counters of operators, from a log with known values to arguments, rates, graphs and slices. */

const MAPPED = 0x7f00_0000_0000
const MUL_MAT = 29

function begun() {
  const writer = new GgtraceWriter({ originNs: 1_000_000_000n })
  writer.run({ 'format.version': '0' })
  writer.type(0, 'f32')
  writer.op(MUL_MAT, 'MUL_MAT')
  writer.mapping({ file: 'm.gguf', address: MAPPED, sizeBytes: 1 << 20, fileOffset: 4096 })
  const buffer = writer.buffer({ name: 'CPU_Mapped', usage: 'weights', base: MAPPED, sizeBytes: 1 << 20 })
  const weight = writer.tensor({ name: 'blk.0.attn_q.weight', buffer, address: MAPPED + 8192, sizeBytes: 2304 })
  const input = writer.tensor({ name: 'inp_embd' })
  const query = writer.tensor({ name: 'Qcur-0', op: MUL_MAT, sources: [weight, input] })
  const key = writer.tensor({ name: 'kq-0', op: MUL_MAT, sources: [input, query] })
  return { writer, query, key }
}

/** Draws what a log has after it has ended. */
async function drawn(writer: GgtraceWriter, detail: 'names' | 'shapes' = 'shapes'): Promise<OpenTrace> {
  writer.end(1e6)
  const trace = await openTrace(convert({ name: 'log', source: writer.take() }, { detail }))
  expect(trace.problems()).toEqual([])
  return trace
}

/** Of every slice of a category: its row, its name, and some of its arguments. */
function slicesOf(trace: OpenTrace, category: string, keys: readonly string[]): Cell[][] {
  const args = keys.map((key) => `, extract_arg(arg_set_id, 'debug.${key}')`).join('')
  return trace
    .query(`select t.name, s.name${args} from slice s join track t on t.id = s.track_id
            where category = '${category}' order by t.name, ts`)
    .rows.map((row) => [...row])
}

/** Of every graph of a worker below a group: its name, and time and value of its samples. */
function graphsOf(trace: OpenTrace, group: string): Record<string, number[][]> {
  const graphs: Record<string, number[][]> = {}
  const { rows } =
    trace.query(`select t.name, c.ts - 1000000000, c.value from counter c join track t on t.id = c.track_id
    join track g on g.id = t.parent_id where g.name = '${group}' and t.name glob 'worker *' order by t.name, c.ts`)
  for (const [name, ts, value] of rows) {
    const samples = graphs[`${name}`] ?? []
    graphs[`${name}`] = samples
    samples.push([Number(ts), Number(value)])
  }
  return graphs
}

test('counts and the rates that follow from them are arguments of the operator, and graphs', async () => {
  const { writer, query, key } = begun()
  const counters = ['cycles', 'instructions', 'cache-references', 'cache-misses', 'branches', 'branch-misses']
  for (const name of counters) writer.counted(name)
  writer.counted('stalled-cycles-backend')
  writer.counted('task-clock', 'ns')
  writer.counted('software/config=2/')
  const thread = writer.thread(7, 1)
  const counts = [3000, 6000, 80, 20, 500, 5, 1500, 800, 9]
  thread.operator({ tensor: query, startNs: 0, endNs: 1000, waitEndNs: 1500, counts })
  thread.operator({ tensor: key, startNs: 2000, endNs: 3000, counts: [0, 0, 0, 0, 0, 0, 0, 500], isScaled: true })
  thread.operator({ tensor: key, startNs: 4000, endNs: 5000 })
  const trace = await drawn(writer)
  const keys = ['cycles', 'instructions', 'cache_misses', 'task_clock_ns', 'software_config_2', 'ipc', 'ghz']
  keys.push('cpu_share', 'cache_miss_rate', 'cache_misses_per_1000_instructions', 'branch_miss_rate')
  keys.push('branch_misses_per_1000_instructions', 'stalled_backend_share', 'inferred')
  const scaled = 'counts of events: extrapolated, the processor counted for a part of the time'
  const none = null
  expect(slicesOf(trace, 'operator', keys)).toEqual([
    ['worker 1', 'Qcur MUL_MAT', 3000, 6000, 20, 800, 9, 2, 3.75, 0.8, 0.25, 3.333, 0.01, 0.8333, 0.5, none],
    // Nothing is divided by zero.
    ['worker 1', 'kq MUL_MAT', ...[none, none, none, 500, none, none, 0, 0.5, none, none, none, none, none], scaled],
    ['worker 1', 'kq MUL_MAT', ...keys.map(() => none)],
  ])
  expect(graphsOf(trace, 'Rates')).toEqual({
    'worker 1: branch-misses per ms': [
      [0, 5000],
      [2000, 0],
    ],
    'worker 1: branch_miss_rate': [[0, 0.01]],
    'worker 1: branch_misses_per_1000_instructions': [[0, 0.8333]],
    'worker 1: branches per ms': [
      [0, 500_000],
      [2000, 0],
    ],
    'worker 1: cache-misses per ms': [
      [0, 20_000],
      [2000, 0],
    ],
    'worker 1: cache-references per ms': [
      [0, 80_000],
      [2000, 0],
    ],
    'worker 1: cache_miss_rate': [[0, 0.25]],
    'worker 1: cache_misses_per_1000_instructions': [[0, 3.333]],
    'worker 1: cpu_share': [
      [0, 0.8],
      [2000, 0.5],
    ],
    'worker 1: ghz': [
      [0, 3.75],
      [2000, 0],
    ],
    'worker 1: instructions per ms': [
      [0, 6e6],
      [2000, 0],
    ],
    'worker 1: ipc': [[0, 2]],
    'worker 1: software/config=2/ per ms': [
      [0, 9000],
      [2000, 0],
    ],
    'worker 1: stalled-cycles-backend per ms': [
      [0, 1.5e6],
      [2000, 0],
    ],
    'worker 1: stalled_backend_share': [[0, 0.5]],
  })
  expect(graphsOf(trace, 'Faults and I/O')).toEqual({})
  trace.close()
})

test('major faults and reads are slices that name the weights, and graphs beside them', async () => {
  const { writer, query, key } = begun()
  for (const name of ['minor-faults', 'major-faults']) writer.counted(name)
  writer.counted('bytes-read', 'bytes')
  const [zero, one] = [writer.thread(7, 0), writer.thread(8, 1)]
  for (const thread of [zero, one]) thread.call = 4
  zero.operator({ tensor: query, startNs: 0, endNs: 1000, counts: [3, 1, 4096] })
  zero.operator({ tensor: key, startNs: 1000, endNs: 2000, counts: [2, 0, 0] })
  one.operator({ tensor: key, startNs: 1000, endNs: 2000, counts: [0, 1, 0] })
  const trace = await drawn(writer)
  const keys = [
    'operator',
    'op',
    'token',
    'weight_bytes',
    'weight_offset',
    'minor_faults',
    'major_faults',
    'bytes_read',
  ]
  expect(slicesOf(trace, 'fault', keys)).toEqual([
    ['worker 0', 'blk.0.attn_q.weight', 'Qcur-0', 'MUL_MAT', 4, 2304, 12288, 3, 1, 4096],
    ['worker 1', 'no weights', 'kq-0', 'MUL_MAT', 4, null, null, null, 1, null],
  ])
  expect(slicesOf(trace, 'operator', ['minor_faults', 'major_faults', 'bytes_read'])).toEqual([
    ['worker 0', 'Qcur MUL_MAT', 3, 1, 4096],
    ['worker 0', 'kq MUL_MAT', 2, null, null],
    ['worker 1', 'kq MUL_MAT', null, 1, null],
  ])
  expect(graphsOf(trace, 'Faults and I/O')).toEqual({
    'worker 0: bytes-read in MB/s': [
      [0, 4096],
      [1000, 0],
    ],
    'worker 0: major-faults per ms': [
      [0, 1000],
      [1000, 0],
    ],
    'worker 0: minor-faults per ms': [
      [0, 3000],
      [1000, 2000],
    ],
    'worker 1: major-faults per ms': [[1000, 1000]],
  })
  expect(graphsOf(trace, 'Rates')).toEqual({})
  trace.close()
})

test('a log without counters has no such group; without arguments, faults keep their names', async () => {
  const plain = begun()
  plain.writer.thread(7, 0).operator({ tensor: plain.query, startNs: 0, endNs: 10 })
  const without = await drawn(plain.writer)
  expect(
    without.query("select count(*) from track where name glob 'worker * per *' or name = 'Faults and I/O'").rows,
  ).toEqual([[0]])
  without.close()
  const { writer, query } = begun()
  writer.counted('major-faults')
  writer.thread(7, 0).operator({ tensor: query, startNs: 0, endNs: 10, counts: [2] })
  const trace = await drawn(writer, 'names')
  expect(slicesOf(trace, 'fault', ['major_faults'])).toEqual([['worker 0', 'blk.0.attn_q.weight', null]])
  trace.close()
})

test('the summary has the totals of all workers', async () => {
  const { writer, query } = begun()
  writer.counted('page-faults')
  writer.counted('task-clock', 'ns')
  writer.counted('cpu-migrations')
  for (const worker of [0, 1]) {
    const thread = writer.thread(7 + worker, worker)
    for (const at of [0, 100])
      thread.operator({ tensor: query, startNs: at, endNs: at + 50, counts: [2, 5e9 + worker] })
  }
  writer.end(1000)
  const { counters } = await summarize({ name: 'log', source: writer.take() })
  expect(counters).toEqual([
    { name: 'page-faults', key: 'page_faults', unit: 'count', total: 8 },
    { name: 'task-clock', key: 'task_clock_ns', unit: 'ns', total: 20e9 + 2 },
    { name: 'cpu-migrations', key: 'cpu_migrations', unit: 'count', total: 0 },
  ])
})
