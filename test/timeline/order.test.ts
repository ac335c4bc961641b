import { expect, test } from '@jest/globals'
import { GgtraceWriter, UNKNOWN } from '../../lib/core.ts'
import { type ConvertOptions, convert, type EventInput, type Input, type TraceEvent } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'

/** The order of tracks, as the viewer shows them: what leads is at the top, what never changes is in a closed group. */

const US = 1000

const queried = async <T>(
  input: Input | Input[],
  query: (trace: OpenTrace) => T,
  options?: ConvertOptions,
): Promise<T> => {
  const trace = await openTrace(convert(input, options))
  try {
    return query(trace)
  } finally {
    trace.close()
  }
}

/** Names of the children of a group, in the order of the viewer. */
const children = (trace: OpenTrace, parent: string) =>
  trace
    .query(`select t.name from track t join track p on t.parent_id = p.id where p.name = '${parent}'
      order by extract_arg(t.source_arg_set_id, 'sibling_order_rank'), t.id`)
    .rows.flat()

const ROOT = 'LLM moe.gguf · 2 workers · CPU'

test('a run: called by model, workers and backend; calls, graphs, workers, rates, experts, memory', async () => {
  await queried(inputOf('examples/moe.ggtrace.gz'), (trace) => {
    expect(trace.query("select name from track where parent_id is null and name glob 'LLM*'").rows).toEqual([[ROOT]])
    const workers = ['worker 0', 'worker 0: state', 'worker 1', 'worker 1: state']
    const rows = [
      'Phase',
      'Loading',
      'Tokens',
      'tok/s',
      'Graphs',
      ...workers,
      'Copies',
      'thread 5634: functions',
      'GB/s',
      'GFLOP/s',
      ...[0, 1, 2, 3, 4, 5].map((layer) => `layer ${layer}: experts`),
      ...['bytes touched per operator', 'compute buffer: live'],
      ...['KV cache: cells used (inferred)', 'weights: offset read', 'KV cache: offset read'],
      'Memory',
    ]
    expect(children(trace, ROOT)).toEqual(rows)
    const sizes = ['compute buffer: size', ...['AMX', 'CPU_REPACK', 'CPU'].map((name) => `${name}: allocated`)]
    expect(children(trace, 'Sizes')).toEqual(sizes)
    const memory = children(trace, 'Memory')
    expect(memory.slice(0, 1)).toEqual(['weights (AMX): offset read'])
    expect(memory.at(-1)).toBe('Sizes')
    // Changes after the first call begins.
    const constant = trace.query(`with first as (select min(ts) as ts from slice where category = 'token'),
      changes as (select track_id, value <> lag(value) over (partition by track_id order by counter.ts) as changed
        from counter, first where counter.ts >= first.ts)
      select p.name, t.name from track t join track p on t.parent_id = p.id left join changes on track_id = t.id
      where t.id in (select track_id from counter) group by t.id having ifnull(sum(changed), 0) <= 1`).rows
    expect(constant.filter(([group]) => group !== 'Sizes')).toEqual([])
  })
})

test('two runs are distinct', async () => {
  const input = () => inputOf('examples/moe.ggtrace.gz')
  await queried([input(), input()], (trace) => {
    const roots = trace.query("select name from track where parent_id is null and name glob 'LLM*' order by name").rows
    expect(roots).toEqual([[ROOT], [`${ROOT} (2)`]])
  })
})

test.each([
  ['./main -m /models/tiny.gguf -p "Hi"', 'LLM tiny.gguf · 1 worker · CPU'],
  ['/usr/bin/python3 -m server --model=models/big.gguf', 'LLM big.gguf · 1 worker · CPU'],
  ['/usr/bin/python3 -m server', 'LLM python3 -m server'],
  ['', 'LLM run'],
])('the name of a run of "%s"', async (command, name) => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  writer.op(1, 'ADD')
  writer.type(0, 'f32')
  writer.run(command === '' ? {} : { command })
  const tensor = writer.tensor({
    name: 'a',
    op: 1,
    type: 0,
    ne: [1, 1, 1, 1],
    address: 0,
    bytes: 4,
    sources: [],
  } as never)
  const graph = writer.graph('CPU', [tensor])
  writer.thread(700, 0).operator({ tensor, startNs: 10, endNs: 20 })
  writer.thread(700).graph({ startNs: 5, endNs: 30, graph, call: 0 })
  writer.end(1000 * US)
  const source = writer.take()
  await queried({ name: 'log', source }, (trace) => {
    expect(trace.query('select name from track where parent_id is null').rows).toEqual([[name]])
  })
})

test('an nsys report: rows of each thread at the top, where the viewer closes groups', async () => {
  await queried(inputOf('test/fixtures/nsys/one-gpu.sqlite.gz'), (trace) => {
    const atTop = `select p.name from track t join track p on t.parent_id = p.id where t.name = 'at the top' order by 1`
    const ofThread = ['CUDA API', 'NVTX', 'NVTX CCCL', 'NVTX CCCL on the GPU', 'NVTX on the GPU', 'state']
    const ofOthers = [10051, 9953, 9954, 9969].map((tid) => `thread ${tid}: state`)
    expect(trace.query(atTop).rows.flat()).toEqual([
      ...['GPU', 'GPU 0 waits: stream 7 (default), pid 9946'],
      ...[...ofThread.map((what) => `python3 9946: ${what}`), ...ofOthers],
    ])
  })
})

test("PyTorch's profiler: threads are those of their process, events about the profiler are in its group", async () => {
  const slice = (cat: string, tid: number, ts: number, name: string) => ({
    ph: 'X',
    cat,
    name,
    pid: 7,
    tid,
    ts,
    dur: 1,
  })
  const about = { ph: 'i', s: 'g', ts: 9 }
  const source = JSON.stringify({
    schemaVersion: 1,
    baseTimeNanoseconds: 1_700_000_000_000_000_000,
    traceEvents: [
      slice('cpu_op', 8, 1, 'AddBackward0'),
      slice('cpu_op', 7, 2, 'aten::add'),
      { ...slice('Trace', 0, 3, 'PyTorch Profiler (0)'), pid: 'Spans', tid: 'PyTorch Profiler' },
      { ...about, name: 'Iteration Start: PyTorch Profiler', pid: 'Traces', tid: 'Trace PyTorch Profiler' },
      { ...about, name: 'Record Window End', pid: '', tid: '' },
      { ph: 'M', name: 'thread_name', pid: 7, tid: 7, ts: 0, args: { name: 'thread 7 (pt_main_thread)' } },
      { ph: 'M', name: 'thread_name', pid: 7, tid: 8, ts: 0, args: { name: 'thread 8 (pt_autograd_0)' } },
    ],
  })
  const input = { name: 'trace.json', source: new TextEncoder().encode(source) }
  const aboutProfiler = (trace: OpenTrace) => {
    expect(children(trace, 'PyTorch profiler')).toEqual(['Profiler'])
    expect(children(trace, 'Profiler').toSorted()).toEqual(['PyTorch Profiler', 'Trace PyTorch Profiler', 'events'])
  }
  const ofOpen = (trace: OpenTrace) => {
    aboutProfiler(trace)
    const threads = trace.query('select tid, name, is_main_thread from thread where tid > 0 order by tid').rows
    expect(threads).toEqual([
      [7, 'pt_main_thread', 1],
      [8, 'pt_autograd_0', 0],
    ])
  }
  await queried(input, ofOpen, { grouped: true })
  // Where the viewer closes groups, the first threads have rows beside them.
  await queried(input, (trace) => {
    aboutProfiler(trace)
    const rows = `select t.name, s.name from slice s join track t on t.id = s.track_id where s.category = 'cpu_op' order by 1`
    expect(trace.query(rows).rows).toEqual([
      ['pt_autograd_0 8: operators', 'AddBackward0'],
      ['pt_main_thread 7: operators', 'aten::add'],
    ])
  })
})

test('workers from the ninth on are in a group; SQL knows the run of all', async () => {
  const WORKERS = 10
  const log: EventInput = {
    name: 'log',
    events: (names) => [
      [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 10n ** 9n, attributes: {} },
        { ...UNKNOWN.tensor, id: 0, name: names.id('Qcur-3'), op: names.id('MUL_MAT') },
        ...Array.from({ length: WORKERS }, (_, worker): TraceEvent => {
          return { ...UNKNOWN.operator, tensor: 0, worker, startNs: 10, endNs: 100, waitEndNs: 150 }
        }),
      ],
    ],
  }
  await queried(log, (trace) => {
    const rowsOf = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `worker ${from + i}`)
    const [[name]] = trace.query('select name from track where parent_id is null').rows as [[string]]
    expect(children(trace, name).filter((row) => /orker/.test(`${row}`))).toEqual([...rowsOf(0, 8), 'Further workers'])
    expect(children(trace, 'Further workers')).toEqual(rowsOf(8, WORKERS))
    const runs = `include perfetto module ggml.operators; select worker, t.name from ggml_operators o join track t on t.id = run_id order by worker`
    expect(trace.query(runs).rows).toEqual(Array.from({ length: WORKERS }, (_, worker) => [worker, name]))
  })
})
