import { describe, expect, test } from '@jest/globals'
import { convert, inputOf, type OpenTrace, openTrace, UNKNOWN } from '../../lib/index.ts'
import type { OperatorEvent, TensorEvent, TraceEvent } from '../../lib/model/events.ts'
import { Names } from '../../lib/model/names.ts'
import { Scheduler } from '../../lib/timeline/kernel/scheduler.ts'
import { ArgMaker } from '../../lib/timeline/labels.ts'
import { Timeline } from '../../lib/timeline/timeline.ts'
import { TrackTree } from '../../lib/timeline/tracks.ts'
import { PerfettoWriter } from '../../lib/write/perfetto/perfetto.ts'

/** What events become, for the kinds that no reader tells yet as well: through the writer, back through SQL. */
const ORIGIN_NS = 1_700_000_000_123_456_789n // beyond 2^53, as CLOCK_REALTIME is

const input: TraceEvent = {
  kind: 'input',
  format: 'test',
  clock: 'REALTIME',
  originNs: ORIGIN_NS,
  attributes: { why: 'a test' },
}

async function draw(names: Names, ...inputs: TraceEvent[][]): Promise<OpenTrace> {
  const writer = new PerfettoWriter(names)
  const tree = new TrackTree(writer)
  const make = new ArgMaker(names)
  const scheduler = new Scheduler(tree, make, {})
  inputs.forEach((events, i) => {
    const timeline = new Timeline(tree, make, { detail: 'full', opNaming: 'role', memory: 'counters' }, i, scheduler)
    timeline.take([input, ...events])
    timeline.finish()
  })
  const trace = await openTrace(writer.take())
  expect(trace.problems()).toEqual([])
  return trace
}

const slices = `select track.name, slice.name, ts - ${ORIGIN_NS}, dur, depth from slice join track on track_id = track.id
  order by track.name, ts, depth`

const tensor = (id: number, fields: Partial<TensorEvent>): TensorEvent => ({
  ...UNKNOWN.tensor,
  id,
  name: 0,
  ...fields,
})

const operator = (startNs: number, endNs: number, fields: Partial<OperatorEvent> = {}): OperatorEvent => ({
  kind: 'operator',
  tensor: 0,
  worker: 0,
  tid: 1,
  cpu: -1,
  call: 0,
  startNs,
  endNs,
  waitEndNs: endNs,
  experts: undefined,
  inferred: 0,
  ...fields,
})

describe('timeline', () => {
  test('nests ranges per thread, joins them by flows, and ends what stays open', async () => {
    const names = new Names()
    const [outer, inner] = [names.id('outer'), names.id('inner')]
    const trace = await draw(names, [
      { kind: 'range', edge: 'begin', tid: 7, name: outer, atNs: 100, flows: [5] },
      { kind: 'range', edge: 'begin', tid: 7, name: inner, atNs: 200 },
      { kind: 'range', edge: 'begin', tid: 8, name: inner, atNs: 250, flows: [5] },
      { kind: 'range', edge: 'end', tid: 7, name: 0, atNs: 300 },
      { kind: 'range', edge: 'end', tid: 8, name: 0, atNs: 350 },
      { kind: 'range', edge: 'end', tid: 9, name: 0, atNs: 360 },
      { kind: 'range', edge: 'begin', tid: 7, name: inner, atNs: 400 },
    ])
    expect(trace.query(slices).rows).toEqual([
      ['Issues', 'end without a start', 360, 0, 0],
      ['thread 7', 'outer', 100, 300, 0],
      ['thread 7', 'inner', 200, 100, 1],
      ['thread 7', 'inner', 400, 0, 1],
      ['thread 8', 'inner', 250, 100, 0],
    ])
    expect(trace.query('select count(*) from flow').rows).toEqual([[1]])
    trace.close()
  })

  test('keeps counters exact and several clocks in one snapshot', async () => {
    const names = new Names()
    const name = names.id('cache misses')
    const at = (atNs: number, value: number): TraceEvent => ({ kind: 'counter', name, unit: 'count', atNs, value })
    const trace = await draw(names, [
      {
        kind: 'clocks',
        readings: [
          { clock: 'REALTIME', ns: ORIGIN_NS },
          { clock: 'BOOTTIME', ns: 42n },
        ],
      },
      at(5, 2 ** 53 - 1),
      at(10, -3),
      at(7, 0.25), // back in time: written absolute
    ])
    expect(trace.query(`select ts - ${ORIGIN_NS}, value from counter order by ts`).rows).toEqual([
      [5, 2 ** 53 - 1],
      [7, 0.25],
      [10, -3],
    ])
    expect(trace.query("select clock_value from clock_snapshot where clock_name = 'BOOTTIME'").rows).toEqual([[42]])
    trace.close()
  })

  test('gives slices that overlap on a worker a row of their own, and loses none', async () => {
    const names = new Names()
    const mul = tensor(0, { name: names.id('Qcur-3'), op: names.id('MUL_MAT'), layer: 3 })
    const trace = await draw(names, [
      mul,
      operator(0, 100, { waitEndNs: 150 }),
      operator(120, 200),
      operator(150, 160),
      operator(40, 90),
    ])
    expect(trace.query(slices).rows).toEqual([
      ['worker 0', 'Qcur MUL_MAT', 0, 100, 0],
      ['worker 0', 'barrier', 100, 50, 0],
      ['worker 0', 'Qcur MUL_MAT', 150, 10, 0],
      ['worker 0 (2)', 'Qcur MUL_MAT', 120, 80, 0],
      ['worker 0 (3)', 'Qcur MUL_MAT', 40, 50, 0],
    ])
    trace.close()
  })

  test('shows pauses as idle, and joins calls of one phase', async () => {
    const names = new Names()
    const token = (phase: 'prefill' | 'decode', call: number, startNs: number, endNs: number): TraceEvent => ({
      kind: 'token',
      phase,
      call,
      tokens: phase === 'prefill' ? 4 : 1,
      startNs,
      endNs,
      tid: 1,
      inferred: 0,
    })
    const trace = await draw(names, [
      token('prefill', 0, 0, 10e6),
      token('decode', 1, 11e6, 12e6),
      token('decode', 2, 13e6, 14e6),
      token('decode', 3, 614e6, 615e6),
    ])
    const phases = trace.query(`${slices.replace('order by', "where track.name = 'Phase' order by")}`).rows
    expect(phases).toEqual([
      ['Phase', 'prefill', 0, 10e6, 0],
      ['Phase', 'decode', 11e6, 3e6, 0],
      ['Phase', 'idle', 14e6, 600e6, 0],
      ['Phase', 'decode', 614e6, 1e6, 0],
    ])
    trace.close()
  })

  test('keeps two inputs apart: own root, own arguments', async () => {
    const names = new Names()
    const one = tensor(0, { name: names.id('a-1'), op: names.id('ADD'), layer: 1 })
    const two = tensor(0, { name: names.id('b-2'), op: names.id('MUL'), layer: 2 })
    const trace = await draw(names, [one, operator(0, 10)], [two, operator(5, 15)])
    const rows = trace.query(`select root.name, slice.name, extract_arg(arg_set_id, 'debug.layer') from slice
      join track t on track_id = t.id join track g on t.parent_id = g.id join track root on g.parent_id = root.id`).rows
    expect(rows).toEqual([
      ['LLM run', 'a ADD', 1],
      ['LLM run (2)', 'b MUL', 2],
    ])
    trace.close()
  })

  test('draws the first thousand issues and counts the rest', async () => {
    const issues = Array.from(
      { length: 3000 },
      (_, i): TraceEvent => ({ kind: 'issue', title: 'bad', detail: `${i}`, at: { byte: i }, atNs: i }),
    )
    const trace = await draw(new Names(), issues)
    expect(trace.query('select name, count(*) from slice group by name order by 2').rows).toEqual([
      ['further issues are not shown', 1],
      ['bad', 1000],
    ])
    trace.close()
  })

  test('samples memory once per node, not once per worker', async () => {
    const names = new Names()
    const weight = tensor(0, { name: names.id('w'), buffer: 0, offset: 64, sizeBytes: 8 })
    const node = tensor(1, { name: names.id('a-0'), op: names.id('ADD'), sources: [0] })
    const buffer: TraceEvent = { kind: 'buffer', id: 0, usage: 'weights', label: 'file', offsetsFrom: 'its start' }
    const both = [operator(0, 5, { tensor: 1 }), operator(0, 5, { tensor: 1, worker: 1 })]
    const trace = await draw(names, [buffer, weight, node, ...both])
    expect(trace.query('select value from counter order by ts, value').rows).toEqual([[8], [64], [0]])
    trace.close()
  })

  test('numbers decodes as in the whole run, where only some calls are drawn', async () => {
    const trace = await openTrace(convert(inputOf('examples/moe.csv'), { tokens: [3, 4] }))
    expect(trace.query("select name from slice where category = 'token' order by ts").rows).toEqual([
      ['decode 3'],
      ['decode 4'],
    ])
    trace.close()
  })
})
