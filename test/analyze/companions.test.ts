import { describe, expect, test } from '@jest/globals'
import {
  type Analysis,
  analyze,
  convert,
  type EventInput,
  eventsOf,
  type Finding,
  type Input,
} from '../../lib/index.ts'
import { issueOf } from '../../lib/model/issues.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { comm, input, inputEvent, switchOf } from '../sched/schedule.ts'
import { type Call, eventsOf as callsOf, logOf, stateOf, tidOf } from './workers-log.ts'

/**
 * More evidence takes no answer away: what a log shows alone, it shows with a recording of the scheduler, too, at no lower confidence; also with one
 * that has lost switches.
 */

const HOG = 900
const SURE: readonly Finding['confidence'][] = ['low', 'medium', 'high']

/** A worker of which another program takes the CPU for 4 of 10 ns, in each of ten calls. */
const CALLS = Array.from({ length: 10 }, (_, i): Call => {
  const at = 1000 * i
  return {
    phase: 'decode',
    at: [at, at + 1000],
    parts: [{ worker: 0, node: 'Qcur-0', at: [at, at + 1000, at + 1000], cpu: 0 }],
  }
})
const TAKEN = CALLS.map(({ at: [from] }) => [from + 300, from + 700] as const)

const log = () =>
  logOf((names) => [
    stateOf(tidOf(0), 0, 'running', 0),
    ...TAKEN.flatMap(([from, to]) => [
      stateOf(tidOf(0), from + 1, 'runnable', 0),
      stateOf(tidOf(0), to + 1, 'running', 0),
    ]),
    ...callsOf(names, CALLS),
  ])

/** The switches of the same run. */
const scheduler = () =>
  input(
    'switches',
    (names) => [
      switchOf(names, { cpu: 0, at: 0, from: 0, to: tidOf(0) }),
      ...TAKEN.flatMap(([from, to]) => [
        switchOf(names, { cpu: 0, at: from, from: tidOf(0), to: HOG }),
        switchOf(names, { cpu: 0, at: to, from: HOG, to: tidOf(0) }),
      ]),
    ],
    inputEvent(),
  )

/** Without each n-th switch, which is a loss. */
const lossy = (of: Input, n: number): EventInput => ({
  name: `${of.name} without each ${n}th switch`,
  async *events(names) {
    let count = 0
    for await (const batch of eventsOf(of, names))
      yield batch.flatMap((event) => {
        if (event.kind !== 'switch' || ++count % n > 0) return [event]
        return [issueOf('lost-records', 'a switch', { byte: 0 }, event.atNs)]
      })
  },
})

const [LOG, SCHED] = ['run.ggtrace.gz', 'run.sched.dat.gz'].map((name) => inputOf(`test/fixtures/session/${name}`))
const PAIRS: [string, () => Input, () => Input][] = [
  ['made', log, scheduler],
  ['session', () => LOG!, () => SCHED!],
]
const CASES = PAIRS.flatMap(([name, log, of]): [string, () => Input, () => Input][] => [
  [`${name}: complete`, log, of],
  ...[2, 3, 7].map((n): [string, () => Input, () => Input] => [
    `${name}: 1 of ${n} switches lost`,
    log,
    () => lossy(of(), n),
  ]),
])

const keyOf = ({ rule, evidence }: Finding) => `${rule} ${evidence['phase']} ${evidence['worker']}`
const preemptedOf = ({ scheduling }: Analysis) => scheduling!.workers.map(({ preempted_ns }) => preempted_ns)

describe('a log, with a recording of the scheduler', () => {
  test.each(CASES)('%s: each finding of the log is still there', async (_, log, companion) => {
    const alone = await analyze(log())
    const both = await analyze([log(), companion()])
    const found = new Map(both.findings.map((finding) => [keyOf(finding), SURE.indexOf(finding.confidence)]))
    for (const finding of alone.findings)
      expect([keyOf(finding), found.get(keyOf(finding)) ?? -1]).toEqual([
        keyOf(finding),
        Math.max(SURE.indexOf(finding.confidence), found.get(keyOf(finding)) ?? -1),
      ])
  })

  test.each(CASES)('%s: the trace shows what the analysis states', async (_, log, companion) => {
    const { findings } = await analyze([log(), companion()])
    expect(findings.map(({ rule }) => rule)).toContain('preempted')
    const trace = await openTrace(convert([log(), companion()]))
    for (const { rule, evidence, check } of findings)
      if (rule === 'preempted')
        // A wake-up that is read ahead of the block with the log's states of its time counts in one of them only.
        expect(Number(trace.query(check.sql!).rows[0]![0]) / Number(evidence[check.evidence])).toBeCloseTo(1, 2)
    trace.close()
  })

  test.each([3, 7])(
    '1 of %i switches lost: the time without a CPU is that of the log, and who took it is added',
    async (n) => {
      const alone = await analyze(log())
      const both = await analyze([log(), lossy(scheduler(), n)])
      expect([alone.scheduling!.source, both.scheduling!.source]).toEqual(['log', 'both'])
      const [[own], [together]] = [preemptedOf(alone), preemptedOf(both)]
      expect(Math.abs(together! - own!)).toBeLessThanOrEqual(TAKEN.length)
      expect(both.findings.find(({ rule }) => rule === 'preempted')).toMatchObject({
        confidence: 'high',
        sentence: expect.stringContaining(comm(HOG)),
        confidence_reason: expect.stringContaining('losses of the kernel'),
      })
    },
  )

  test('a block of operators that comes seconds after the switches of its time', async () => {
    const [calls, turns, turnNs] = [300, 120, 100_000]
    const callNs = turns * turnNs
    const late = logOf(
      (names) => {
        const made = Array.from({ length: calls }, (_, i): Call => {
          const at = [callNs * i, callNs * (i + 1)] as const
          return { phase: 'decode', at, parts: [{ worker: 0, node: 'Qcur-0', at: [...at, at[1]], cpu: 0 }] }
        })
        const events = callsOf(names, made)
        const isCall = ({ kind }: { kind: string }) => kind === 'token'
        return [...events.filter(isCall), ...events.filter((event) => !isCall(event))]
      },
      { sizes: [1, ...Array.from({ length: calls - 1 }, () => 1)] },
    )
    const switches = input(
      'switches',
      (names) =>
        Array.from({ length: calls * turns }, (_, i) => i * turnNs).flatMap((at) => [
          switchOf(names, { cpu: 0, at, from: HOG, to: tidOf(0) }),
          switchOf(names, { cpu: 0, at: at + turnNs / 2, from: tidOf(0), to: HOG }),
        ]),
      inputEvent(),
    )
    const batches: EventInput = {
      name: switches.name,
      async *events(names) {
        for await (const batch of eventsOf(switches, names))
          for (let at = 0; at < batch.length; at += 1000) yield batch.slice(at, at + 1000)
      },
    }
    const { scheduling } = await analyze([late, batches])
    // The recording ends with its last switch.
    expect(scheduling!.workers.map(({ preempted_ns }) => preempted_ns)).toEqual([(calls * callNs - turnNs) / 2])
  })
})
