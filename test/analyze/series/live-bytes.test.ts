import { expect, test } from '@jest/globals'
import { analyze, convert } from '../../../lib/index.ts'
import { inputOf, openTrace } from '../../../lib/node.ts'
import { smallRun } from '../memory/small-run.ts'

/** Live bytes over one call, against the counter of the trace. */

test.each([undefined, 0, 5])('call %p of a recorded run: the samples of the trace', async (call) => {
  const log = inputOf('examples/moe.ggtrace.gz')
  const { series, memory } = await analyze(log, { series: ['memory'], call })
  const { buffers, ...of } = series!.memory!
  const shown = call ?? 1
  expect(of).toEqual({ call: shown, phase: shown === 0 ? 'prefill' : 'decode', samples_max: 65_536 })
  const trace = await openTrace(convert(log, { detail: 'full' }))
  const query = (sql: string) =>
    trace.query(sql).rows.map((row) => row.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell)))
  const [[firstNs]] = query("select min(ts) from slice where category = 'token'") as [[number]]
  const ends = query(
    "select extract_arg(arg_set_id, 'debug.call'), ts, ts + dur from slice where category = 'token'",
  ) as number[][]
  // Inputs are set after the end of the call before, results are fetched before the start of the next one.
  const from = ends.find(([number]) => number === shown - 1)?.[2] ?? 0
  const to = ends.find(([number]) => number === shown)![2]!
  const expected = query(`select ts, value from counter c join track t on c.track_id = t.id
    where t.name = 'compute buffer: live' and ts > ${from} and ts <= ${to} order by ts, c.id`) as [number, number][]
  trace.close()
  const [arena] = buffers
  const inCall = arena!.samples.filter(({ at_ns }) => at_ns + firstNs > from && at_ns + firstNs <= to)
  expect(inCall.map(({ at_ns, live_bytes }) => [at_ns + firstNs, live_bytes])).toEqual(expected)
  expect(inCall.length).toBeGreaterThan(100)
  expect(arena!.peak.call).toBe(shown)
  const peak = Math.max(...arena!.samples.map(({ live_bytes }) => live_bytes))
  expect(arena!.peak.live.reduce((sum, { bytes }) => sum + bytes, arena!.peak.further_bytes)).toBe(peak)
  if (shown === 0) expect(arena!.peak).toEqual(memory!.buffers.find(({ usage }) => usage === 'compute')!.arena!.peak)
})

test('a small run that was computed by hand', async () => {
  const { series } = await analyze(smallRun(), { series: ['memory'] })
  const [arena, ...others] = series!.memory!.buffers
  expect(others).toEqual([])
  expect(arena!.samples.map(({ at_ns, live_bytes, step, tensor }) => [at_ns + 50, live_bytes, step, tensor])).toEqual([
    [100, 500, 0, 'a-0'],
    [200, 800, 1, 'b-0'],
    [300, 700, 2, 'cache_k_l0 (view)'],
    [400, 300, 3, 'c-0'],
    [500, 350, 4, 'd-0'],
    [600, 50, -1, ''],
    [660, 0, -1, ''],
  ])
})
