import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Analysis, analyze, convert, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { type Act, actsOf, eventsOf as scheduleOf } from '../sched/model.ts'
import { switchOf } from '../sched/schedule.ts'
import { type Call, eventsOf, logOf, stateOf, tidOf } from './workers-log.ts'

/** Several inputs of one run, read together. */

/** Calls of two workers, one after the other, over a time. */
function callsOver(endNs: number, count: number): Call[] {
  const stepNs = Math.floor(endNs / (count * 4))
  return Array.from({ length: count }, (_, call): Call => {
    const from = call * 4 * stepNs
    const part = (worker: number, node: string, i: number) => {
      const at = from + stepNs * (1 + i)
      const ns = Math.floor((stepNs * (2 + ((call + worker + i) % 5))) / 8)
      return { worker, node, at: [at, at + ns, at + Math.floor(stepNs * 0.9)] as const }
    }
    const nodes = ['Qcur-0', 'ffn_up-0']
    const parts = [0, 1].flatMap((worker) => nodes.map((node, i) => part(worker, node, i)))
    return { phase: call % 3 === 0 ? 'prefill' : 'decode', at: [from, from + 4 * stepNs], parts }
  })
}

const log = (calls: readonly Call[], sizes: readonly number[] = []) =>
  logOf((names) => eventsOf(names, calls), { attributes: { pid: '100' }, sizes })

const recording = (acts: readonly Act[], sizes: readonly number[] = [], cpuAfterCpu = false) =>
  logOf((names) => scheduleOf(names, acts, cpuAfterCpu), {
    ...{ name: 'recording', sizes, capabilities: cpuAfterCpu ? { order: false } : {} },
  })

/** Acts of the two workers and others. */
const ACTS = actsOf({ cpus: 2, tids: 5, length: 150, shortest: 100 })
const SIZES = fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 60 })

/** What depends on events alone, not on how they are batched. */
const figuresOf = ({ inputs: _, ...figures }: Analysis) => figures

describe('any batches and any order of arguments', () => {
  test('of a log and a recording give the same analysis', async () => {
    const property = async (acts: Act[], one: number[], two: number[], isSwapped: boolean, cpuAfterCpu: boolean) => {
      const calls = callsOver(acts.at(-1)!.at, 12)
      const inputs = [log(calls, one), recording(acts, two, cpuAfterCpu)]
      const expected = await analyze([log(calls), recording(acts)])
      const found = await analyze(isSwapped ? inputs.reverse() : inputs)
      expect(figuresOf(found)).toEqual(figuresOf(expected))
    }
    await fc.assert(fc.asyncProperty(ACTS, SIZES, SIZES, fc.boolean(), fc.boolean(), property), { numRuns: 40 })
  })

  test('of two recordings: each CPU is of one of them', async () => {
    const property = async (acts: Act[], one: number[], two: number[], three: number[]) => {
      const calls = callsOver(acts.at(-1)!.at, 12)
      const [first, second] = [0, 1].map((cpu) => acts.filter((act) => act.cpu === cpu && act.what === 'switch'))
      if (first!.length === 0 || second!.length === 0) return
      const switches = acts.filter(({ what }) => what === 'switch')
      const name = (input: EventInput, name: string): EventInput => ({ ...input, name })
      const found = await analyze([
        ...[log(calls, one), name(recording(first!, two), 'a'), name(recording(switches, three), 'b')],
      ])
      const { scheduling } = await analyze([log(calls), recording(switches)])
      expect(found.scheduling?.workers).toEqual(scheduling?.workers)
    }
    await fc.assert(fc.asyncProperty(ACTS, SIZES, SIZES, SIZES, property), { numRuns: 20 })
  })
})

describe('figures of scheduling are those of the trace', () => {
  /** States of workers by phase: those of the lanes below workers, within calls. */
  const STATES = `with calls as (select ts, ts + dur as stop, extract_arg(arg_set_id, 'debug.phase') as phase from slice
      where category = 'token'),
    states as (select substr(t.name, 8, 1) as worker, s.ts, s.ts + s.dur as stop,
      iif(s.name glob 'running*', 'running', iif(s.name glob 'blocked*', 'blocked', s.name)) as state
      from slice s join track t on t.id = s.track_id where t.name glob 'worker *: state')
    select worker, phase, state, sum(min(c.stop, s.stop) - max(c.ts, s.ts)) from states s
      join calls c on c.ts < s.stop and s.ts < c.stop group by 1, 2, 3`
  /** Threads that had the CPU of a worker while it was preempted, by the slices of CPUs. */
  const TAKERS = `with calls as (select ts, ts + dur as stop, extract_arg(arg_set_id, 'debug.phase') as phase from slice
      where category = 'token'),
    waits as (select substr(t.name, 8, 1) as worker, s.ts, s.ts + s.dur as stop, extract_arg(s.arg_set_id, 'debug.cpu') as cpu
      from slice s join track t on t.id = s.track_id where t.name glob 'worker *: state' and s.name = 'runnable (preempted)')
    select worker, phase, tid, sum(min(c.stop, w.stop, o.ts + o.dur) - max(c.ts, w.ts, o.ts)) from waits w
      join calls c on c.ts < w.stop and w.ts < c.stop
      join sched_slice o on o.cpu = w.cpu and o.dur > 0 and o.ts < min(c.stop, w.stop) and o.ts + o.dur > max(c.ts, w.ts)
      join thread using (utid) where tid != 100 + worker + 1 group by 1, 2, 3`
  const OPERATORS = `select sum(min(o.ts + o.dur, s.ts + s.dur) - max(o.ts, s.ts)) from slice o join track w on w.id = o.track_id
    join track t on t.name = w.name || ': state' join slice s on s.track_id = t.id
    where o.category = 'operator' and s.name = 'runnable (preempted)' and s.ts < o.ts + o.dur and o.ts < s.ts + s.dur`

  test('for any schedule', async () => {
    let compared = 0
    const property = async (acts: Act[], cpuAfterCpu: boolean) => {
      // Until then all states are complete.
      const lastOf = (tid: number) =>
        acts.findLast((act) => act.what === 'switch' && (act.from === tid || act.to === tid))?.at ?? 0
      const endNs = Math.min(lastOf(tidOf(0)), lastOf(tidOf(1)))
      if (endNs < 1e6) return
      const inputs = [log(callsOver(endNs, 9)), recording(acts, [], cpuAfterCpu)]
      const { scheduling, operators } = await analyze(inputs)
      const trace = await openTrace(convert(inputs, { allThreads: true }))
      expect(trace.problems()).toEqual([])
      const sums: Record<string, number> = {}
      for (const { worker, phase, ...of } of scheduling!.workers) {
        const key = `${worker} ${phase}`
        sums[`${key} running`] = of.running_ns
        sums[`${key} runnable (preempted)`] = of.preempted_ns
        sums[`${key} runnable (woken)`] = of.woken_ns!
        sums[`${key} blocked`] = of.blocked_ns
        for (const { tid, time_ns, threads } of of.takers) {
          expect(threads).toBe(1)
          sums[`${key} ${tid}`] = time_ns
        }
        const all = of.running_ns + of.preempted_ns + (of.woken_ns ?? 0) + of.blocked_ns + of.unknown_ns
        expect(all).toBe(of.call_time_ns)
      }
      const expected: Record<string, number> = {}
      for (const sql of [STATES, TAKERS]) {
        for (const [worker, phase, what, ns] of trace.query(sql).rows) {
          // What is inferred is what the recording does not contain.
          if (/^(?:starting|ended|not running)$/.test(`${what}`)) continue
          expected[`${worker} ${phase} ${what}`] = Number(ns)
        }
      }
      const isPositive = ([, ns]: [string, number]) => ns > 0
      expect(Object.fromEntries(Object.entries(sums).filter(isPositive))).toEqual(expected)
      const preempted = operators.rows.reduce((sum, { preempted_ns }) => sum + preempted_ns!, 0)
      expect(preempted).toBe(Number(trace.query(OPERATORS).rows[0]![0] ?? 0))
      trace.close()
      compared += Object.keys(expected).length
    }
    await fc.assert(fc.asyncProperty(ACTS, fc.boolean(), property), { numRuns: 10 })
    expect(compared).toBeGreaterThan(50)
  })
})

describe('a recording on another clock', () => {
  /** Runs of worker 0 at irregular times, which both inputs record. */
  const RUNS: number[] = [0]
  for (let i = 1, gap = 1; i < 200; i++) {
    gap = (gap * 48271) % 2147483647 // Lehmer's generator
    RUNS.push(RUNS[i - 1]! + 1_000_000 + (gap % 9_000_000))
  }
  const END_NS = RUNS.at(-1)! + 1_000_000
  const OFFSET_NS = 3_000_000
  const states = () =>
    RUNS.flatMap((ns) => [stateOf(tidOf(0), ns, 'running', 0), stateOf(tidOf(0), ns + 300_000, 'runnable', 0)])
  const other = () =>
    logOf(
      (names) =>
        RUNS.flatMap((ns) => [
          switchOf(names, { cpu: 0, at: ns + OFFSET_NS, from: 66, to: tidOf(0) }),
          switchOf(names, { cpu: 0, at: ns + OFFSET_NS + 300_000, from: tidOf(0), to: 66 }),
        ]),
      { name: 'other', clock: 'unknown' },
    )
  const filler = (count: number): TraceEvent[] =>
    Array.from({ length: count }, (_, i) => ({ kind: 'counter', name: 1, unit: 'count', atNs: i, value: i }))

  test('is placed by what the beginning of the log contains', async () => {
    const log = logOf((names) => [...states(), ...eventsOf(names, callsOver(END_NS, 12))], { sizes: [100, 100, 100] })
    const { scheduling } = await analyze([log, other()])
    expect([scheduling!.source, scheduling!.workers[0]!.takers[0]!.tid]).toEqual(['both', 66])
  })

  test('is not used where its relation is known only at the end of a long log, and this is stated', async () => {
    const log = logOf((names) => [...filler(200_001), ...states(), ...eventsOf(names, callsOver(END_NS, 12))], {
      sizes: [200_000],
    })
    const { scheduling, inputs, undetermined } = await analyze([log, other()])
    expect(scheduling!.source).toBe('log')
    expect(inputs.map(({ name }) => name)).toEqual(['log', 'other'])
    expect(undetermined.filter(({ what }) => what === 'scheduling')).toEqual([
      { what: 'scheduling', why: 'other: the relation of its clock to the log is known only after both were read' },
    ])
  })
})
