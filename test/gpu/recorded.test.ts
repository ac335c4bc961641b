import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { dagOf } from '../../lib/dag/dag.ts'
import { draw } from '../../lib/dag/draw.ts'
import { analyze, convert, eventsOf, Names } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'

/**
 * Stored recordings of CUDA, their traces and statistics: of the GPU of README.md, and of an H100. cuda.long.test.ts records anew, and holds the
 * log against the bed's list; scripts/gpu/verify.mjs does so on a real GPU.
 */

const logOf = (name: string) => fileURLToPath(new URL(`logs/${name}.ggtrace.gz`, import.meta.url))

test('of an H100: copies of weights are no part of the time of calls, and of no finding', async () => {
  const { gpu, findings, verdict } = await analyze(inputOf(logOf('h100')))
  const { work, calls, time, transfers, name } = gpu!.devices[0]!
  expect([name, work, calls!.work]).toEqual(['NVIDIA H100 80GB HBM3', 3330, 3129])
  expect(time!.exposed_copy_ns).toBeGreaterThan(5 * calls!.time.exposed_copy_ns)
  const bytes = (list: typeof transfers) => list.find(({ direction }) => direction === 'HtoD')!.bytes
  expect(bytes(transfers)).toBeGreaterThan(10_000_000)
  expect(bytes(calls!.transfers)).toBeLessThan(1_000_000)
  const rules = findings.map(({ rule }) => rule)
  expect(rules).toContain('gpu-launches')
  expect(rules).not.toContain('gpu-copies')
  // 580 MB of weights a token, at 3.35 TB/s.
  expect(verdict.sentence).toMatch(
    /^decode [23]\d\d tok\/s, [4-6](?:\.\d)? % of the 5 \d\d\d tok\/s that CUDA0's memory allows/,
  )
})

test.each([
  ['nano', ['CPU, split 0', 'CUDA0, split 1', 'layer 0 · CUDA0, split 1']],
  ['h100', ['CPU, split 0', 'CUDA0, split 1']],
])('%s: the graph of a call has the nodes of the device, with their times, by split', async (name, frames) => {
  const { series } = await analyze(inputOf(logOf(name)), { series: ['graph'] })
  const graph = series!.graph!
  let ns = 0
  for await (const batch of eventsOf(inputOf(logOf(name)), new Names()))
    for (const event of batch)
      if (event.kind === 'gpu' && event.node && event.call === graph.call) ns += event.endNs - event.startNs
  const onDevice = graph.nodes.filter(({ backend }) => backend === 'CUDA0')
  expect(onDevice.reduce((sum, { wall_ns }) => sum + (wall_ns ?? 0), 0)).toBeCloseTo(ns, 3)
  expect(new Set(onDevice.map(({ kind }) => kind))).toEqual(new Set(['operator', 'fused']))
  // What the scheduler copied to the device is read from the node that computed it.
  const embedding = graph.nodes.find(({ backend }) => backend === 'CPU')!
  expect(onDevice.some(({ sources }) => sources.includes(embedding.id))).toBe(true)
  const { groups } = draw(dagOf(graph), { name: 'x', views: false })
  expect(groups.map(({ title }) => title).slice(0, frames.length)).toEqual(frames)
})

test('in the trace, each split with its backend, layers and ops', async () => {
  const trace = await openTrace(convert(inputOf(logOf('nano')), { detail: 'full' }))
  try {
    const arg = (key: string) => `extract_arg(arg_set_id, 'debug.${key}')`
    const splits = `select ${arg('backend')}, ${arg('layers')}, ${arg('ops')} from slice where category = 'graph' and ${arg('call')} = 2`
    expect(trace.query(splits).rows).toEqual([
      ['CPU', 'none', 'GET_ROWS 1'],
      ['CUDA0', '0', expect.stringMatching(/^MUL_MAT \d+, /)],
    ])
  } finally {
    trace.close()
  }
})

test.each(['nano', 'h100'])('%s: a call reads the weights of all fused nodes', async (name) => {
  const { memory } = await analyze(inputOf(logOf(name)))
  const { tensor_bytes: loaded } = memory!.buffers.find(({ usage, name }) => usage === 'weights' && name !== '')!
  for (const { bytes, calls, by_block: blocks } of memory!.weights_read) {
    // Of the token embeddings, which remain on the CPU, the rows of the tokens.
    const embedding = blocks.find(({ block }) => block === 'embedding')!.bytes
    expect((bytes! - embedding) / calls).toBe(loaded)
  }
})

test.each(['nano', 'h100'])(
  '%s: each kernel, copy and fill is on the row of its stream, with its operator',
  async (name) => {
    const LOG = logOf(name)
    const { gpu } = await analyze(inputOf(LOG))
    const { work, kinds } = gpu!.devices[0]!
    const counts = new Map(kinds.map(({ kind, count }) => [kind, count]))
    expect(work).toBe([...counts.values()].reduce((sum, count) => sum + count, 0))
    const trace = await openTrace(convert(inputOf(LOG)))
    const numbers = (sql: string) => trace.query(sql).rows.map((row) => row.map(Number))
    try {
      expect(numbers("select count(*) from stats where severity = 'error' and value > 0")).toEqual([[0]])
      expect(numbers('select count(*) from gpu_slice')).toEqual([[work]])
      // Copies between device memory are operators (CONT); of weights, inputs and results they are not.
      const ofNodes = counts.get('kernel')! + (counts.get('memcpy DtoD') ?? 0)
      expect(numbers("select count(*) from gpu_slice where extract_arg(arg_set_id, 'tensor') is not null")).toEqual([
        [ofNodes],
      ])
      const overlapping = `select count(*) from (
      select ts + dur as finish, lead(ts) over (partition by track_id order by ts) as next from gpu_slice) where next < finish`
      expect(numbers(overlapping)).toEqual([[0]])
      // An arrow from each launch to its work, or to the works of its graph.
      const arrows = 'select count(distinct slice_in) from flow join gpu_slice on gpu_slice.id = slice_in'
      expect(numbers(arrows)).toEqual([[work]])
    } finally {
      trace.close()
    }
  },
)
