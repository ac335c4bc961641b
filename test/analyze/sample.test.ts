import { expect, test } from '@jest/globals'
import { describeFindings } from '../../bin/findings.ts'
import { CallSample } from '../../lib/analyze/common/sampled-calls.ts'
import { analyze, type EventInput, summarize } from '../../lib/index.ts'
import { inLong } from '../long.ts'
import { type Call, eventsOf, logOf, stateOf, tidOf } from './workers-log.ts'

/** The findings of record and convert, which look at a sample of the calls: its figures are those of all calls. */

const FIRST_MS = 40
const LATER_MS = 10

/** Nodes of a call: 3 000 calls have more operators than are all looked at. */
const NODES = 64

/** Decode calls of two workers: the first one is long and mostly preempted, and one worker waits in it; later ones lose 8 % and wait little. */
function runOf(count: number): EventInput {
  const calls: Call[] = []
  const states = [0, 1].map((worker) => stateOf(tidOf(worker), 0, 'running', worker))
  let now = 1e6
  for (let i = 0; i < count; i++) {
    const ns = (i === 0 ? FIRST_MS : LATER_MS) * 1e6
    const [end, lost] = [now + ns, ns * (i === 0 ? 0.9 : 0.08)]
    const isLate = i === 0 ? 0.2 : 0.95
    const stepNs = ns / NODES
    calls.push({
      ...{ phase: 'decode', at: [now, end] },
      parts: Array.from({ length: NODES }, (_, node) => now + node * stepNs).flatMap((at) =>
        [0, 1].map((worker) => {
          const toNs = worker === 0 ? at + stepNs : at + stepNs * isLate
          return { worker, node: 'ffn_up-0', at: [at, toNs, at + stepNs] as const }
        }),
      ),
    })
    states.push(stateOf(tidOf(0), now, 'runnable'), stateOf(tidOf(0), now + lost, 'running'))
    now = end + 1000
  }
  return logOf(
    (names) => {
      const events = eventsOf(names, calls)
      const first = events.findIndex(({ kind }) => kind === 'operator')
      return [...events.slice(0, first), ...states, ...events.slice(first)]
    },
    { attributes: { cpus: '4' } },
  )
}

async function isAsWhole(count: number): Promise<void> {
  const whole = (await analyze(runOf(count))).findings
  const { findings: sampled = [], findings_are_estimates } = await summarize(runOf(count), { findings: true })
  expect(findings_are_estimates).toBe(count > 2000)
  expect(describeFindings(sampled, 'why', findings_are_estimates!).at(-1)).toBe(
    `     ${count > 2000 ? 'estimated from some of the calls; of all calls, with ' : ''}evidence and checks: why`,
  )
  expect(sampled.map(({ rule }) => rule)).toEqual(whole.map(({ rule }) => rule))
  expect(whole.map(({ rule }) => rule)).toContain('preempted')
  const close = (a: number, b: number) => Math.abs(a - b) <= (count > 2000 ? 0.02 : 1e-9) * Math.abs(b)
  for (const [i, { time_ns, evidence }] of whole.entries()) {
    const of = sampled[i]!
    expect(close(of.time_ns, time_ns)).toBe(true)
    const differ = Object.entries(evidence).filter(([key, value]) =>
      typeof value === 'number' ? !close(Number(of.evidence[key]), value) : of.evidence[key] !== value,
    )
    expect(differ).toEqual([])
  }
}

test.each([16, 150])('of %i calls: shares and times are those of all', isAsWhole)
inLong(test).each([3000])('of %i calls: shares and times are those of all', isAsWhole)

test('a sample takes all calls first, then fewer, and its weights sum to the number of calls', () => {
  for (const calls of [10, 100, 1000, 20_000]) {
    const sample = new CallSample(1000)
    let [taken, sum, changed] = [0, 0, 0]
    for (let call = 0; call < calls; call++) {
      const weight = sample.weightOf(call)
      for (let i = 0; i < 50; i++) if (sample.operator(call) !== weight > 0) changed++
      if (sample.call(call) !== weight > 0 || sample.weightOf(call) !== weight) changed++
      if (weight > 0) taken++
      sum += weight
    }
    expect(changed).toBe(0)
    expect(Math.abs(sum - calls)).toBeLessThan(64)
    expect(taken).toBeLessThan(200 + calls / 50)
    if (calls <= 10) expect(taken).toBe(calls)
  }
})
