import { expect, test } from '@jest/globals'
import { convert, type EventInput, type LogInput, summarize, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { everyRecord, read } from './ggtrace-logs.ts'

/** Work of a GPU in a log: its places, its nodes, what launched it. */
const log = everyRecord()
const shifted = (ns: number) => ns - 5_000_010_000

test('records of a GPU are read as they were written', async () => {
  const { of, names } = await read(log)
  const text = (id: number) => names.text(id)
  const tensors = of('tensor')
  const nameOf = (id: number | undefined) => (id === undefined ? '' : text(tensors[id]!.name))
  const works = of('gpu').map(({ what, name, startNs, endNs, node, call, correlation, facts }) => [
    ...[what, text(name), shifted(startNs), shifted(endNs), nameOf(node?.tensor), nameOf(node?.fusedTo)],
    ...[call, correlation, facts],
  ])
  expect(works).toEqual([
    ['kernel', 'mul_mat_f32', 1050, 2000, 'Qcur-0', '', 2, 1, { dispatches: 2 }],
    ['kernel', 'mul_mat_f32', 2000, 2500, 'Qcur-0', 'ffn_moe_up-0', 2, 1, { part: 1 }],
    ['memcpy', 'copy', 2500, 2600, '', '', 2, 1, { bytes: 4096 }],
    ['memset', 'fill', 2600, 2650, '', '', 2, 1, { bytes: 64 }],
    ['graph', 'submission', 2800, 3900, '', '', undefined, 2, {}],
  ])
  const calls = of('api').map(({ name, startNs, endNs, tid, launched, correlation, call, facts }) => [
    ...[text(name), shifted(startNs), shifted(endNs), tid, launched, correlation, call, facts],
  ])
  expect(calls).toEqual([
    ['vkCreateComputePipelines', 0, 900, 700, 0, -1, undefined, { shader: 'mul_mat_f32' }],
    ['vkQueueSubmit', 1000, 1100, 700, 4, 1, 2, { command_buffers: 1 }],
    ['vkQueueSubmit', 1200, 1300, 700, 1, 2, undefined, { command_buffers: 2 }],
    ['vkQueueSubmit', 1400, 1500, 700, 0, 3, undefined, { command_buffers: 1 }],
    ['vkWaitForFences', 1600, 4000, 700, 0, -1, 2, { device: 0 }],
  ])
  expect(of('facts').map(({ attributes }) => attributes)).toEqual(
    expect.arrayContaining([{ gpu_clock_error_ns: 33 }, { gpus: '0 llvmpipe (LLVM 15, 256 bits), 1 Old GPU' }]),
  )
})

test('a summary lists operators of a GPU by op', async () => {
  const { gpu_operators, gpu_ops } = await summarize({ name: 'log', source: log })
  expect([gpu_operators, gpu_ops]).toEqual([2, [{ op: 'MUL_MAT', count: 2, time_ns: 1450 }]])
})

test('a trace has the work on queues of the GPU, with nodes as arguments', async () => {
  const trace = await openTrace(convert({ name: 'log', source: log }, { detail: 'full' }))
  expect(trace.problems()).toEqual([])
  const arg = (key: string) => `extract_arg(g.arg_set_id, '${key}')`
  const columns = ['tensor', 'layer', 'fused_to', 'kernel', 'call', 'bytes'].map(arg)
  const from = 'gpu_slice g join track t on t.id = g.track_id'
  expect(trace.query(`select t.name, g.name, g.dur, ${columns.join()} from ${from} order by g.ts`).rows).toEqual(
    [
      ['Qcur MUL_MAT', 950, 'Qcur-0', '0', null, 'mul_mat_f32', '2', '256'],
      ['ffn_moe_up MUL_MAT+MUL_MAT_ID', 500, 'Qcur-0', '0', 'ffn_moe_up-0', 'mul_mat_f32', '2', '256'],
      ['copy', 100, null, null, null, null, '2', '4096'],
      ['fill', 50, null, null, null, null, '2', '64'],
      ['submission', 1100, null, null, null, null, null, null],
    ].map((row) => ['compute 0.0 · GPU 0', ...row]),
  )
  trace.close()
})

test('the run has a row of the GPU beside its calls: the busiest queue, of much work neighbours as one', async () => {
  const rowOf = async (input: EventInput | LogInput) => {
    const trace = await openTrace(convert(input))
    try {
      return trace.query(`select s.name, dur, extract_arg(arg_set_id, 'debug.count') from slice s join track t on t.id = track_id
        where category = 'gpu_busy' and t.name = 'GPU' and t.parent_id is null order by ts`).rows
    } finally {
      trace.close()
    }
  }
  expect(await rowOf({ name: 'log', source: log })).toEqual([
    ['Qcur MUL_MAT', 950, null],
    ['ffn_moe_up MUL_MAT+MUL_MAT_ID', 500, null],
    ['copy', 100, null],
    ['fill', 50, null],
    ['submission', 1100, null],
  ])
  // Two queues of pieces of 500 ns, 100 ns apart; after each 1000 pieces there is a pause.
  const PIECES = 20_000
  const work = (stream: number, i: number, ns: number): TraceEvent => {
    const startNs = 600 * i + 1_000_000 * Math.floor(i / 1000)
    const unknown = { device: 0, context: 0, contextName: 0, streamName: 0, pid: 9, correlation: -1, signature: 0 }
    return { kind: 'gpu', what: 'kernel', ...unknown, stream, name: 0, startNs, endNs: startNs + ns, facts: {} }
  }
  const much: EventInput = {
    name: 'much',
    events: () => [
      [
        { kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 10n ** 9n, attributes: {} },
        ...Array.from({ length: PIECES }, (_, i) => [work(1, i, 100), work(2, i, 500)]).flat(),
      ],
    ],
  }
  const rows = (await rowOf(much)) as [string, number, number | null][]
  expect(rows.length).toBeLessThan(PIECES)
  expect(rows.reduce((sum, [, , count]) => sum + (count ?? 1), 0)).toBe(PIECES)
  expect(Math.max(...rows.map(([, dur]) => Number(dur)))).toBeLessThan(1_000_000)
})
