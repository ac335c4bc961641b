import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { GpuEvent } from '../../lib/core.ts'
import { analyze, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { Preset } from '../llama/gguf.mjs'
import { cudaEnvironment, hasLlama, model, run } from '../llama/testbed.ts'
import { newLog, RECORDER, readLog } from '../native/recording.ts'
import type { BedWork } from './bed-list.ts'
import { ARGS, BED, CALLS, type Environment, type Recorded, record, useBed } from './recording.ts'

/**
 * Times of CUDA's devices where there is no CUPTI: by events around graph runs, or around nodes. The truth is the list of what the bed ran,
 * whose kernels a recording with CUPTI assigns to nodes.
 */

const BUSY = { BED_FAULT: 'busy-cupti' }
const NODES = { ...BUSY, GGML2PERFETTO_GPU_EVENTS: '1' }
/** A time in ms is a float: of up to a second, it is exact to 61 ns. */
const FLOAT_NS = 130
const OVERLAPPING = `select count(*) from (
  select ts + dur as finish, lead(ts) over (partition by track_id order by ts) as next from gpu_slice) where next < finish`

const endOf = ({ start, ns }: BedWork) => start + ns

/** What a device computes for a node, in a call. */
interface OfNode {
  readonly call: number | undefined
  readonly node: string
}

const nodeOf = ({ nodeName }: Recorded, { call, node }: GpuEvent): OfNode => {
  const range = node && [node.tensor, ...(node.fusedTo === undefined ? [] : [node.fusedTo])]
  return { call, node: range?.map(nodeName).join(' … ') ?? '' }
}

/** What the bed ran in a recording for each node, by what it runs for it in one with CUPTI: stream by stream, the works are the same. */
function nodesOf(truth: Recorded, { listed }: Recorded, device: number): (OfNode & { ran: BedWork[] })[] {
  const nodes: (OfNode & { ran: BedWork[] })[] = []
  for (const stream of new Set(listed.filter((work) => work.device === device).map((work) => work.stream))) {
    const known = truth.works.filter((work) => work.device === device && work.stream === stream)
    const ran = listed.filter((work) => work.device === device && work.stream === stream)
    expect(known.length).toBe(ran.length)
    for (const [i, work] of ran.entries()) {
      if (!known[i]!.node) continue
      const { call, node } = nodeOf(truth, known[i]!)
      const latest = nodes.at(-1)
      if (latest?.call === call && latest?.node === node) latest!.ran.push(work)
      else nodes.push({ call, node, ran: [work] })
    }
  }
  return nodes
}

/** How much of the time that the log states may be wrong. */
const clockErrorOf = ({ of }: Recorded) =>
  Math.max(...of('facts').map(({ attributes }) => Number(attributes['gpu_clock_error_ns'] ?? 0))) + FLOAT_NS

const cuda = hasLlama() ? describe : describe.skip

cuda('times by events (needs linux-x64, cc, c++ and make)', () => {
  useBed()

  test.each<readonly [Preset, Environment]>([
    ['tinyDense', {}],
    ['tinyMoe', {}],
    ['exact', {}],
    ['tinyDense', { GGML_CUDA_DISABLE_GRAPHS: '1' }],
    ['tinyMoe', { GGML_CUDA_DISABLE_GRAPHS: '1' }],
    ['tinyDense', { BED_DEVICES: '2' }],
  ])('%s %o: a node lasts from its first to the end of its last kernel', async (preset, env) => {
    const [truth, recorded] = [await record(preset, env), await record(preset, { ...env, ...NODES })]
    const originNs = Number(recorded.of('input')[0]!.originNs ?? 0)
    const errorNs = clockErrorOf(recorded)
    for (const device of new Set(recorded.listed.map((work) => work.device))) {
      const spans = recorded.works.filter((span) => span.device === device)
      const nodes = nodesOf(truth, recorded, device)
      expect(spans.map((span) => nodeOf(recorded, span))).toEqual(nodes.map(({ call, node }) => ({ call, node })))
      expect(new Set(nodes.map(({ call }) => call)).size).toBe(CALLS)
      for (const [i, span] of spans.entries()) {
        const { ran } = nodes[i]!
        const sum = ran.reduce((total, { ns }) => total + ns, 0)
        expect(span.startNs).toBeLessThanOrEqual(ran[0]!.start - originNs + errorNs)
        expect(span.endNs).toBeGreaterThanOrEqual(endOf(ran.at(-1)!) - originNs - errorNs)
        if (ran[0]!.isOfGraph) expect(Math.abs(span.endNs - span.startNs - sum)).toBeLessThanOrEqual(FLOAT_NS)
        else expect(span.endNs - span.startNs).toBeGreaterThanOrEqual(sum - FLOAT_NS)
      }
    }
  })

  test('on several streams, a node is on the row of its stream, for as long as its kernels', async () => {
    const several = { GGML_CUDA_GRAPH_OPT: '1' }
    const [truth, recorded] = [await record('tinyDense', several), await record('tinyDense', { ...several, ...NODES })]
    const sums = (from: Recorded) => {
      const all = new Map<string, number>()
      for (const work of from.works) {
        const { call, node } = nodeOf(from, work)
        const key = `${call} ${node}`
        if (work.node && call! > 2) all.set(key, (all.get(key) ?? 0) + work.endNs - work.startNs) // replays
      }
      return all
    }
    const [expected, found] = [sums(truth), sums(recorded)]
    expect([...found.keys()].sort()).toEqual([...expected.keys()].sort())
    for (const [key, ns] of expected) expect(Math.abs(found.get(key)! - ns)).toBeLessThanOrEqual(FLOAT_NS)
    const trace = await openTrace(convert(inputOf(recorded.log)))
    try {
      expect(trace.query('select count(distinct track_id) from gpu_slice').rows.flat().map(Number)).toEqual([4])
      expect(trace.query(OVERLAPPING).rows.flat().map(Number)).toEqual([0])
    } finally {
      trace.close()
    }
  })

  test('by default, events are around graph runs', async () => {
    const recorded = await record('tinyDense', BUSY)
    const { works, listed, of, text, fact } = recorded
    const originNs = Number(of('input')[0]!.originNs ?? 0)
    const errorNs = clockErrorOf(recorded)
    expect(fact('gpu.times')).toBe('events around graph runs')
    expect(works.map(({ what, call }) => [what, call])).toEqual(Array.from({ length: CALLS }, (_, i) => ['graph', i]))
    const launched = new Map(of('api').map(({ correlation, name }) => [correlation, text(name)]))
    const graphEnds = new Map(of('graph').map(({ call, endNs }) => [call, endNs]))
    for (const { startNs, endNs, correlation, call } of works) {
      const ran = listed.filter(({ start }) => start - originNs > startNs - errorNs && start - originNs < endNs)
      const sum = ran.reduce((total, { ns }) => total + ns, 0)
      expect(ran.length).toBeGreaterThan(50)
      expect(endNs - startNs).toBeGreaterThanOrEqual(sum - FLOAT_NS)
      if (launched.get(correlation) === 'cudaGraphLaunch')
        // A host that is preempted behind the launch records the event later, inside the graph run.
        expect(endNs).toBeLessThanOrEqual(Math.max(endOf(ran.at(-1)!) - originNs, graphEnds.get(call!)!) + errorNs)
    }
  })

  test('traces and analyses state that times are those of events, and rows do not overlap', async () => {
    const { log, works } = await record('tinyMoe', NODES)
    const { gpu } = await analyze(inputOf(log))
    expect(gpu!.devices[0]).toMatchObject({ times: 'events around nodes', work: works.length })
    const trace = await openTrace(convert(inputOf(log)))
    const numbers = (sql: string) => trace.query(sql).rows.map((row) => row.map(Number))
    try {
      expect(numbers("select count(*) from stats where severity = 'error' and value > 0")).toEqual([[0]])
      const marked = "select count(*) from gpu_slice where extract_arg(arg_set_id, 'times') = 'events'"
      expect(numbers(marked)).toEqual([[works.length]])
      expect(numbers('select sum(dur) from gpu_slice')).toEqual([
        [works.reduce((sum, { startNs, endNs }) => sum + endNs - startNs, 0)],
      ])
      expect(numbers(OVERLAPPING)).toEqual([[0]])
      const arrows = 'select count(distinct slice_in) from flow join gpu_slice on gpu_slice.id = slice_in'
      expect(numbers(arrows)).toEqual([[works.length]])
    } finally {
      trace.close()
    }
  })

  test('only calls that are recorded have times, also of graphs that others captured', async () => {
    const { works } = await record('tinyDense', { ...NODES, GGML2PERFETTO_TOKENS: '4..' })
    const all = await record('tinyDense', NODES)
    const of = ({ call }: GpuEvent) => call! >= 4
    expect(works.every(of)).toBe(true)
    expect(works.length).toBe(all.works.filter(of).length)
  })

  test('without an installed CUPTI, the reason is another one', async () => {
    const { fact } = await record('tinyDense', { GGML2PERFETTO_CUPTI: '/nonexistent/libcupti.so' })
    expect(fact('gpu.missing')).toMatch(/CUPTI is not installed.*graph runs are timed by events/)
  })

  test.each([
    ['launch-error', 'SIGABRT'],
    ['device-lost', 'SIGABRT'],
  ])('%s: the program ends as without the recorder', async (fault, signal) => {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const { path } = await model('tinyDense')
    const env = { ...cudaEnvironment(BED), ...NODES, BED_FAULT: `busy-cupti,${fault}`, GGML_NO_BACKTRACE: '1' }
    const plain = await run(path, ARGS, { env })
    const recorded = await run(path, ARGS, { preload: RECORDER, env: { ...env, GGML2PERFETTO_OUT: log } })
    expect([recorded.code, recorded.signal]).toEqual([plain.code, plain.signal])
    expect(plain.signal).toBe(signal)
    expect((await readLog(log)).of('facts').length).toBeGreaterThan(0)
  })
})
