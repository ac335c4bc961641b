import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../../lib/index.ts'
import { type Call, eventsOf, logOf, stateOf, tidOf } from '../workers-log.ts'

/** A program that is stopped and continued, as cpulimit does: wherever its workers are then, none of them waits for another one. */

const MS = 1e6
const STEPS = 10
/** The whole program is stopped from here to there, in each call of 130 ms. */
const [FROM, TO] = [45 * MS, 105 * MS]
const CALL_NS = 130 * MS

/** A call of steps of 7 ms, of which one contains the stop: there, workers end at these times, and the barrier's waits end at others. */
function callOf(i: number, stopped: readonly (readonly [endNs: number, waitEndNs: number])[]): Call {
  const at = i * CALL_NS
  const parts = Array.from({ length: STEPS }, (_, step) => {
    const [start, end] =
      step < 6 ? [step * 7 * MS, (step + 1) * 7 * MS] : [TO + (step - 6) * 5 * MS, TO + (step - 5) * 5 * MS]
    return [0, 1].map((worker) => {
      const [workEnd, waitEnd] = step === 6 ? [stopped[worker]![0], stopped[worker]![1]] : [end, end]
      const from = step === 6 ? 42 * MS : step === 7 ? TO + 5 * MS : start
      return { worker, node: `Qcur-${step}`, at: [at + from, at + workEnd, at + waitEnd] as const, cpu: worker }
    })
  }).flat()
  return { phase: 'decode', at: [at, at + CALL_NS], parts }
}

const OPEN = TO + 5 * MS
const WHERE: Record<string, readonly (readonly [number, number])[]> = {
  'both at an open barrier': [
    [44 * MS, OPEN],
    [44 * MS, OPEN],
  ],
  'one at an open barrier, of which the other one has passed': [
    [43 * MS, OPEN],
    [OPEN - MS, OPEN],
  ],
  'one in an operator, the other one at the barrier': [
    [43 * MS, OPEN],
    [OPEN, OPEN],
  ],
}

const logWith = (where: readonly (readonly [number, number])[]) => {
  const calls = Array.from({ length: 12 }, (_, i) => callOf(i, where))
  return logOf((names) => [
    ...[0, 1].map((worker) => stateOf(tidOf(worker), 0, 'running', worker)),
    ...calls.flatMap(({ at: [at] }) =>
      [0, 1].flatMap((worker) => [
        stateOf(tidOf(worker), at + FROM, 'blocked', worker),
        stateOf(tidOf(worker), at + TO, 'running', worker),
      ]),
    ),
    ...eventsOf(names, calls),
  ])
}

describe('a program that is stopped', () => {
  test.each(Object.entries(WHERE))('%s: its workers are blocked, and do not wait for each other', async (_, where) => {
    const { findings, call_time } = await analyze(logWith(where))
    expect(findings.map(({ rule }) => rule)).toEqual(['blocked-workers'])
    const [finding] = findings
    expect(Number(finding!.evidence['blocked_share'])).toBeCloseTo(60 / 130, 2)
    expect(finding!.sentence).toMatch(/^decode: workers are blocked 46 % of it, mostly all at once \(stopped, /)
    expect(finding!.advice).toMatch(/cpulimit/)
    const parts = call_time[0]!.parts
    expect(parts.reduce((sum, { time_ns }) => sum + time_ns, 0)).toBeCloseTo(call_time[0]!.time_ns, 0)
    expect(parts.find(({ what }) => what === 'blocked')!.time_ns / call_time[0]!.time_ns).toBeCloseTo(60 / 130, 2)
  })

  test('also in its first call: that is long for no other reason', async () => {
    const [longNs, where] = [700 * MS, WHERE['both at an open barrier']!]
    const calls = Array.from({ length: 12 }, (_, i) => callOf(i, where))
    const parts = [0, 1].flatMap((worker) => [
      { worker, node: 'Qcur-0', at: [-longNs, -longNs + 44 * MS, -10 * MS] as const, cpu: worker },
      { worker, node: 'Qcur-1', at: [-10 * MS, -MS, -MS] as const, cpu: worker },
    ])
    const first: Call = { phase: 'prefill', at: [-longNs, 0], parts }
    const log = logOf((names) => [
      ...[0, 1].map((worker) => stateOf(tidOf(worker), -longNs, 'running', worker)),
      ...[first, ...calls].flatMap(({ phase, at: [at] }) =>
        [0, 1].flatMap((worker) => [
          stateOf(tidOf(worker), at + FROM, 'blocked', worker),
          stateOf(tidOf(worker), phase === 'prefill' ? -15 * MS : at + TO, 'running', worker),
        ]),
      ),
      ...eventsOf(names, [first, ...calls]),
    ])
    const { findings, first_calls } = await analyze(log)
    expect(first_calls.find(({ phase }) => phase === 'prefill')!.time_ns).toBe(longNs)
    expect([...new Set(findings.map(({ rule }) => rule))]).toEqual(['blocked-workers'])
  })
})
