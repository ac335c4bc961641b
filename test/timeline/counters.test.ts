import { expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { convert, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { drawn } from '../printing-sink.ts'

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

/** The log as an input, after its end. */
function ended(writer: GgtraceWriter) {
  writer.end(1e6)
  return { name: 'log', source: writer.take() }
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
  const log = ended(writer)
  const args = ['cycles', 'instructions', 'cache_misses', 'task_clock_ns', 'software_config_2', 'ipc', 'ghz']
  args.push('cpu_share', 'cache_miss_rate', 'cache_misses_per_1000_instructions', 'branch_miss_rate')
  args.push('branch_misses_per_1000_instructions', 'stalled_backend_share', 'inferred')
  const rates =
    'ipc: 2, ghz: 3.75, cpu_share: 0.8, cache_miss_rate: 0.25, cache_misses_per_1000_instructions: 3.333, ' +
    'branch_miss_rate: 0.01, branch_misses_per_1000_instructions: 0.8333, stalled_backend_share: 0.5'
  const scaled = 'inferred: counts of events: extrapolated, the processor counted for a part of the time'
  expect(await drawn(log, {}, { args, rows: /worker/ })).toEqual([
    'worker 1 | 0–1000 Qcur MUL_MAT {cycles: 3000, instructions: 6000, cache_misses: 20, task_clock_ns: 800, ' +
      `software_config_2: 9, ${rates}}`,
    'worker 1 | 1000–1500 barrier',
    // Nothing is divided by zero.
    `worker 1 | 2000–3000 kq MUL_MAT {${scaled}, task_clock_ns: 500, ghz: 0, cpu_share: 0.5}`,
    'worker 1 | 4000–5000 kq MUL_MAT',
    'Rates/worker 1: ipc | 0 = 2',
    'Rates/worker 1: ghz | 0 = 3.75',
    'Rates/worker 1: ghz | 2000 = 0',
    'Rates/worker 1: cpu_share | 0 = 0.8',
    'Rates/worker 1: cpu_share | 2000 = 0.5',
    'Rates/worker 1: cache_miss_rate | 0 = 0.25',
    'Rates/worker 1: cache_misses_per_1000_instructions | 0 = 3.333',
    'Rates/worker 1: branch_miss_rate | 0 = 0.01',
    'Rates/worker 1: branch_misses_per_1000_instructions | 0 = 0.8333',
    'Rates/worker 1: stalled_backend_share | 0 = 0.5',
    'Rates/worker 1: instructions per ms | 0 = 6000000',
    'Rates/worker 1: instructions per ms | 2000 = 0',
    'Rates/worker 1: cache-references per ms | 0 = 80000',
    'Rates/worker 1: cache-references per ms | 2000 = 0',
    'Rates/worker 1: cache-misses per ms | 0 = 20000',
    'Rates/worker 1: cache-misses per ms | 2000 = 0',
    'Rates/worker 1: branches per ms | 0 = 500000',
    'Rates/worker 1: branches per ms | 2000 = 0',
    'Rates/worker 1: branch-misses per ms | 0 = 5000',
    'Rates/worker 1: branch-misses per ms | 2000 = 0',
    'Rates/worker 1: stalled-cycles-backend per ms | 0 = 1500000',
    'Rates/worker 1: stalled-cycles-backend per ms | 2000 = 0',
    'Rates/worker 1: software/config=2/ per ms | 0 = 9000',
    'Rates/worker 1: software/config=2/ per ms | 2000 = 0',
  ])
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
  const log = ended(writer)
  const args = ['operator', 'call', 'weight_bytes', 'weight_offset', 'minor_faults', 'major_faults', 'bytes_read']
  expect(await drawn(log, {}, { args: [...args, 'op'], rows: /worker/ })).toEqual([
    'worker 0 | 0–1000 Qcur MUL_MAT {call: 4, minor_faults: 3, major_faults: 1, bytes_read: 4096}',
    'worker 0 | 1000–2000 kq MUL_MAT {minor_faults: 2}',
    'Faults and I/O/worker 0 | 0–1000 blk.0.attn_q.weight {operator: Qcur-0, op: MUL_MAT, call: 4, ' +
      'weight_bytes: 2304, weight_offset: 12288, minor_faults: 3, major_faults: 1, bytes_read: 4096}',
    'Faults and I/O/worker 0: minor-faults per ms | 0 = 3000',
    'Faults and I/O/worker 0: minor-faults per ms | 1000 = 2000',
    'Faults and I/O/worker 0: major-faults per ms | 0 = 1000',
    'Faults and I/O/worker 0: major-faults per ms | 1000 = 0',
    'Faults and I/O/worker 0: bytes-read in MB/s | 0 = 4096',
    'Faults and I/O/worker 0: bytes-read in MB/s | 1000 = 0',
    'worker 1 | 1000–2000 kq MUL_MAT {call: 4, major_faults: 1}',
    'Faults and I/O/worker 1 | 1000–2000 no weights {operator: kq-0, op: MUL_MAT, call: 4, major_faults: 1}',
    'Faults and I/O/worker 1: major-faults per ms | 1000 = 1000',
  ])
  const trace = await openTrace(convert(log))
  expect(trace.problems()).toEqual([])
  const columns = args.map((key) => `extract_arg(arg_set_id, 'debug.${key}')`)
  expect(trace.query(`select name, ${columns} from slice where category = 'fault' order by track_id`).rows).toEqual([
    ['blk.0.attn_q.weight', 'Qcur-0', 4, 2304, 12288, 3, 1, 4096],
    ['no weights', 'kq-0', 4, null, null, null, 1, null],
  ])
  trace.close()
})

test('a log without counters has no such group; without arguments, faults keep their names', async () => {
  const plain = begun()
  plain.writer.thread(7, 0).operator({ tensor: plain.query, startNs: 0, endNs: 10 })
  const without = await openTrace(convert(ended(plain.writer)))
  expect(
    without.query("select count(*) from track where name glob 'worker * per *' or name = 'Faults and I/O'").rows,
  ).toEqual([[0]])
  without.close()
  const { writer, query } = begun()
  writer.counted('major-faults')
  writer.thread(7, 0).operator({ tensor: query, startNs: 0, endNs: 10, counts: [2] })
  const faults = await drawn(ended(writer), { detail: 'names' }, { args: ['major_faults'], rows: /Faults.*worker 0$/ })
  expect(faults).toEqual(['Faults and I/O/worker 0 | 0–10 blk.0.attn_q.weight'])
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
