import { gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from '@jest/globals'
import { type Analysis, analyze, convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { plainBytes, storedBytes } from '../line/support.ts'
import { expectedFaults } from './expected.ts'

/** Page faults of a real run: where they are, by an independent join of what perf prints with the addresses in the log. */

const log = { name: 'nano.ggtrace', source: plainBytes('memory-samples/nano.ggtrace.gz') }
const data = { name: 'nano.data', source: storedBytes('memory-samples/nano.data.gz') }
const script = gunzipSync(storedBytes('memory-samples/nano.txt.gz')).toString()

let analysis: Analysis
beforeAll(async () => {
  analysis = await analyze([log, data])
})

test('every fault in a weight or a cache is at its tensor', async () => {
  const faults = analysis.page_faults!
  const alone = faults.by_tensor.filter(({ usage }) => usage === 'weights' || usage === 'kv-cache')
  const expected = await expectedFaults(log, script, '/nano.gguf')
  expect(Object.keys(expected).length).toBeGreaterThan(10)
  expect(Object.fromEntries(alone.map(({ tensor, events }) => [tensor, events]))).toEqual(expected)
  expect([faults.further_tensors, faults.not_held]).toEqual([0, 0])
})

test('each fault is counted once in each table', () => {
  const faults = analysis.page_faults!
  const all = script.match(/^ *decode .*page-faults: /gm)!.length
  const total = (of: readonly { readonly events: number }[]) => of.reduce((sum, { events }) => sum + events, 0)
  expect([faults.samples + faults.other_processes, faults.events]).toEqual([all, faults.samples])
  for (const table of [faults.by_time, faults.by_usage, faults.by_worker, faults.by_node, faults.by_kind]) {
    expect(total(table)).toBe(faults.events)
  }
  expect([total(faults.by_tensor), total(faults.by_layer)]).toEqual([faults.in_tensors, faults.in_tensors])
  expect(total(faults.elsewhere)).toBe(faults.events - faults.in_tensors)
  expect(faults.elsewhere.map(({ place }) => place)).toContain('[heap]')
  expect(analysis.data_accesses).toBeNull()
  expect(analysis.inputs.map(({ issues }) => issues)).toEqual([{}, {}])
})

test('results in the compute buffer are those that their workers write', () => {
  const results = analysis.page_faults!.by_tensor.filter(({ usage }) => usage === 'compute')
  expect(results.length).toBeGreaterThan(2)
  expect(results.every(({ layer, tensor }) => layer >= 0 || tensor !== '')).toBe(true)
  expect(analysis.page_faults!.by_worker.map(({ worker }) => worker)).toEqual([-1, 0, 1])
})

test("the text of perf script gives the same, but for the CPUs' nodes, which it does not have", async () => {
  const text = { name: 'nano.txt', source: new TextEncoder().encode(script) }
  const { page_faults, inputs } = await analyze([text, log])
  expect(inputs.map(({ issues }) => issues)).toEqual([{}, {}])
  expect({ ...page_faults, by_node: [] }).toEqual({ ...analysis.page_faults, by_node: [] })
})

test('the trace has a row for each role, and rates; their sums are the counted faults', async () => {
  const trace = await openTrace(convert([log, data]))
  const faults = analysis.page_faults!
  const rows = trace.query(
    "select track.name, sum(extract_arg(arg_set_id, 'debug.events')) from slice join track on track.id = track_id " +
      "where category = 'access' group by 1",
  ).rows as [string, number][]
  // The first rows are drawn outside of their group, and name it.
  const byRow = new Map(rows.map(([name, events]) => [name.replace(/: samples$/, ''), events]))
  const roles = new Map<string, number>([['no tensor', faults.events - faults.in_tensors]])
  for (const { role, usage, events } of faults.by_tensor) {
    const row = usage === 'compute' ? `${role} (result)` : role
    roles.set(row, (roles.get(row) ?? 0) + events)
  }
  expect(byRow).toEqual(new Map([...byRow.keys()].map((role) => [role, roles.get(role)])))
  expect(byRow.size).toBe(roles.size)
  const [[rate, width]] = trace.query(
    `select sum(value), (select max(dur) from slice where category = 'access') from counter join track on track.id = track_id
      where name = 'page faults per ms'`,
  ).rows as [[number, number]]
  expect((rate * width) / 1e6).toBeCloseTo(faults.events, 6)
  expect(trace.problems()).toEqual([])
  trace.close()
})
