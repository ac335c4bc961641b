import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { partsOfWorker } from '../../lib/cli.ts'
import { type Analysis, analyze, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { FIXTURE_NAMES, pathOf } from '../line/support.ts'
import { ROOT } from '../tables/of-logs.ts'

/** Verdict, findings, parts of calls, workers: one partition of time. */

const EXAMPLES = readdirSync(join(ROOT, 'examples')).filter((name) => name.endsWith('.gz'))
const FINDINGS = readdirSync(pathOf('findings')).filter((name) => name.endsWith('.gz'))
const LOGS: readonly (readonly string[])[] = [
  ...FIXTURE_NAMES.map((name) => [pathOf(name)]),
  ...EXAMPLES.map((name) => [join(ROOT, 'examples', name)]),
  ...FINDINGS.map((name) => [pathOf(`findings/${name}`)]),
  ['memory-samples/nano.ggtrace.gz'].map(pathOf),
  ['session/run.ggtrace.gz'].map(pathOf),
  ['session/run.ggtrace.gz', 'session/run.sched.dat.gz'].map(pathOf),
  ['before.ggtrace.gz', 'before.sched.dat.gz'].map((name) => join(ROOT, 'test/printed/logs', name)),
  ...['outside-graphs', 'preempted'].map((name) => [join(ROOT, 'test/recorded', `${name}.ggtrace.gz`)]),
]

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
/** Sums of thousands of times: equal but for their last digits. */
const expectEqual = (got: number, expected: number, whole: number) =>
  expect(Math.abs(got - expected)).toBeLessThanOrEqual(1e-9 * whole + 1e-3)

function check({ call_time, workers, scheduling, findings, verdict }: Analysis): number {
  let compared = 0
  for (const { phase, time_ns, parts } of call_time) {
    expectEqual(sum(parts.map((part) => part.time_ns)), time_ns, time_ns)
    if (time_ns > 0) expectEqual(sum(parts.map((part) => part.share)), 1, 1)
    const inParts = parts.find(({ what }) => what === 'preempted')?.time_ns ?? 0
    const caller = scheduling?.workers.find((worker) => worker.worker === 0 && worker.phase === phase)
    if (caller) expectEqual(inParts, caller.preempted_ns, time_ns)
    const found = findings.find(({ rule, evidence }) => rule === 'preempted' && evidence['phase'] === phase)
    if (found?.evidence['worker'] === 0) {
      expectEqual(found.time_ns, inParts, time_ns)
      expectEqual(found.evidence['preempted_share'] as number, inParts / time_ns, 1)
    }
    const outside = findings.find(({ rule, evidence }) => rule === 'outside-graphs' && evidence['phase'] === phase)
    if (outside && found) expect(outside.time_ns + inParts).toBeLessThanOrEqual(time_ns * (1 + 1e-9))
    if (inParts > 0) compared++
  }
  for (const worker of workers) {
    if (worker.idle_ns === null) continue
    const parts = partsOfWorker(worker)
    for (const { time_ns } of parts) expect(time_ns ?? 0).toBeGreaterThanOrEqual(0)
    expectEqual(sum(parts.map(({ share }) => share!)), 1, 1)
    const all = worker.operator_time_ns + worker.wait_ns + worker.idle_ns
    expectEqual(sum(parts.map(({ time_ns }) => time_ns ?? 0)), all, all)
    const own = scheduling?.workers.filter((scheduled) => scheduled.worker === worker.worker) ?? []
    // Blocked time in operators is in this part, too.
    const off = parts.find(({ what }) => what === 'without a CPU')!.share! * worker.call_time_ns
    expect(off).toBeGreaterThanOrEqual(sum(own.map(({ preempted_ns }) => preempted_ns)) * (1 - 1e-9) - 1)
  }
  // Who had the CPU meanwhile had it no longer than that.
  for (const { preempted_ns, takers, other_takers_ns, call_time_ns } of scheduling?.workers ?? []) {
    const takenNs = sum(takers.map(({ time_ns }) => time_ns)) + other_takers_ns
    expect(takenNs).toBeLessThanOrEqual(preempted_ns + 1e-9 * call_time_ns + 1e-3)
  }
  for (const { preempted_ns, takers, other_takers_ns, operator_time_ns } of scheduling?.roles ?? []) {
    const takenNs = sum(takers.map(({ time_ns }) => time_ns)) + other_takers_ns
    expect(takenNs).toBeLessThanOrEqual(preempted_ns + 1e-9 * operator_time_ns + 1e-3)
  }
  const { cause } = verdict
  if (cause?.rule === 'preempted') expect(findings.find(({ rule }) => rule === cause.rule)!.time_ns).toBe(cause.time_ns)
  return compared
}

test('of all fixtures and examples: the parts sum to the whole, preempted time is the same wherever it is printed', async () => {
  let compared = 0
  for (const paths of LOGS) {
    expect(paths.filter((path) => !existsSync(path))).toEqual([])
    compared += check(await analyze(paths.map(inputOf)))
  }
  expect(compared).toBeGreaterThanOrEqual(5)
}, 300_000)

describe('time without a CPU', () => {
  const where = { cpu: 0, tid: 100 } as const
  const MS = 1e6

  /** A call of 10 ms whose thread is preempted for 1 ms, from there on. */
  const callWith = (preemptedAt: number, more: (names: { id(text: string): number }) => TraceEvent[]): EventInput => ({
    name: 'made',
    *events(names) {
      const state = { kind: 'state', ...where } as const
      const call = { call: 0, inferred: 0 } as const
      yield [
        { kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
        { ...state, state: 'running', atNs: 0 },
        { ...state, state: 'runnable', atNs: preemptedAt },
        { ...state, state: 'running', atNs: preemptedAt + MS },
        { kind: 'graph', nodes: 1, ...call, startNs: 2 * MS, endNs: 8 * MS, backend: names.id('CPU') },
        ...more(names),
        { kind: 'token', phase: 'decode', tokens: 1, ...call, startNs: 0, endNs: 10 * MS, tid: 100 },
        { ...state, state: 'running', atNs: 11 * MS },
      ] as TraceEvent[]
    },
  })

  const operator = (names: { id(text: string): number }): TraceEvent[] => {
    const buffer = { buffer: -1, offset: undefined, address: 0, structAddress: 0, inferred: 0 } as const
    const times = { startNs: 3 * MS, endNs: 5 * MS, waitEndNs: 7 * MS }
    return [
      {
        ...{
          kind: 'tensor',
          id: 0,
          name: names.id('ffn_up-0'),
          layer: 0,
          op: names.id('MUL_MAT'),
          type: names.id('f32'),
        },
        ...{ ne: [64, 1, 1, 1], sources: [], sizeBytes: 256, ...buffer },
      },
      { kind: 'operator', tensor: 0, worker: 0, ...where, call: 0, experts: undefined, inferred: 0, ...times },
    ]
  }
  const part = (names: { id(text: string): number }): TraceEvent[] => [
    ...operator(names),
    {
      kind: 'part',
      what: 'recorder',
      call: 0,
      tid: 100,
      startNs: 0.5 * MS,
      endNs: 1.9 * MS,
      inferred: 0,
    } as TraceEvent,
  ]

  test.each([
    ['outside graphs', 0.6, 'outside graphs', operator],
    ['in the recorder', 0.6, 'recorder', part],
    ['in a graph, in no operator', 2, 'rest', operator],
    ['in an operator', 3.5, 'FFN', operator],
    ['at a barrier', 5.5, 'barrier wait', operator],
    ['in a graph without operators', 3, 'rest', () => []],
  ] as const)('%s', async (_, atMs, what, more) => {
    const without = await analyze(callWith(20 * MS, more))
    const { call_time } = await analyze(callWith(atMs * MS, more))
    const timeOf = (name: string, { parts }: Analysis['call_time'][number] = call_time[0]!) =>
      parts.find((part) => part.what === name)?.time_ns ?? 0
    expect(timeOf('preempted')).toBe(MS)
    for (const { what: name } of without.call_time[0]!.parts)
      expect(timeOf(name)).toBeCloseTo(timeOf(name, without.call_time[0]) - (name === what ? MS : 0), 3)
  })
})
