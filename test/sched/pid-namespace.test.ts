import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type EventInput, type Names, type TraceEvent, UNKNOWN } from '../../lib/core.ts'
import { type Act, actsOf, eventsOf, expectedSlices } from './model.ts'
import { input, inputEvent, ORIGIN_NS, traceOf } from './schedule.ts'

/**
 * A program in a PID namespace: its log has other numbers of threads than the recording of the scheduler. On the machine, other threads have the numbers
 * of the log.
 */

/** By number in the schedule: that of the log, or of the machine. */
const OWN = new Map([
  [101, 1],
  [102, 2],
])
const OTHERS = new Map([
  [103, 1],
  [104, 2],
])
const SHIFT = 10_000_000

/** The log of the program: the states of its threads, each some time after the kernel's tracepoint. */
const logOf = (acts: readonly Act[]): EventInput =>
  input(
    'log',
    (names): TraceEvent[] => [
      { ...UNKNOWN.tensor, id: 0, name: names.id('Qcur-0'), layer: 0, op: names.id('MUL_MAT') },
      ...[1, 2].map((tid) => ({
        ...{ ...UNKNOWN.operator, tensor: 0, worker: tid - 1, tid, call: 0 },
        ...{ startNs: 1, endNs: acts.at(-1)!.at, waitEndNs: acts.at(-1)!.at },
      })),
      ...acts.flatMap((act, i): TraceEvent[] => {
        if (act.what !== 'switch') return []
        const [to, from] = [OWN.get(act.to), OWN.get(act.from)]
        const atNs = act.at + (i % 10) * 1000
        return [
          ...(from ? [{ kind: 'state' as const, tid: from, cpu: act.cpu, state: 'blocked' as const, atNs }] : []),
          ...(to ? [{ kind: 'state' as const, tid: to, cpu: act.cpu, state: 'running' as const, atNs }] : []),
        ]
      }),
    ],
    inputEvent({ format: 'ggtrace', attributes: { pid: '1', pid_namespace: 'pid:[4026532178]', kernel: '6.1.0' } }),
  )

const recordingOf = (acts: readonly Act[], numberOf: (tid: number) => number) =>
  input('switches', (names: Names) =>
    eventsOf(
      names,
      acts.map((act) =>
        act.what === 'switch'
          ? { ...act, from: numberOf(act.from), to: numberOf(act.to) }
          : { ...act, by: numberOf(act.by), tid: numberOf(act.tid) },
      ),
    ),
  )

const switchesTo = (acts: readonly Act[], tid: number) =>
  acts.filter((act) => act.what === 'switch' && act.to === tid).length

/** No thread has a CPU for less time than the log's lag. */
const schedules = actsOf({ cpus: 2, tids: 4, length: 200, shortest: 120 })
  .map((acts) => acts.map((act, i) => ({ ...act, at: act.at + i * 20_000 })))
  .filter((acts) => [101, 102].every((tid) => switchesTo(acts, tid) > 3))

const SLICES = `select ts - ${ORIGIN_NS}, dur, cpu, end_state, tid from sched join thread using (utid) where tid != 0 order by 3, 1`

const ISSUES = `select extract_arg(arg_set_id, 'debug.detail') from slice where category = 'issue'`

const slicesAs = (acts: readonly Act[], numberOf: (tid: number) => number) =>
  expectedSlices(acts)
    .map((row) => row.with(4, numberOf(row[4] as number)))
    .filter((row) => row[4] !== 0)

test('threads of the log have its numbers, others with such numbers have others', () =>
  fc.assert(
    fc.asyncProperty(schedules, async (acts) => {
      const recording = recordingOf(acts, (tid) => OTHERS.get(tid) ?? tid)
      const trace = await traceOf([logOf(acts), recording], { allThreads: true })
      const inTrace = (tid: number) => OWN.get(tid) ?? (OTHERS.has(tid) ? OTHERS.get(tid)! + SHIFT : tid)
      expect(trace.query(SLICES).rows).toEqual(slicesAs(acts, inTrace))
      expect(trace.query(ISSUES).rows).toEqual([
        [
          expect.stringMatching(
            /^pid:\[4026532178\]: 2 of 2 threads of the log found(; [12] other threads? with such numbers: 10000000 is added)?$/,
          ),
        ],
      ])
      trace.close()
    }),
    { numRuns: 10 },
  ))

test('a recording with the numbers of the namespace is as it is', () =>
  fc.assert(
    fc.asyncProperty(schedules, async (acts) => {
      const trace = await traceOf([logOf(acts), recordingOf(acts, (tid) => OWN.get(tid) ?? tid)], { allThreads: true })
      expect(trace.query(SLICES).rows).toEqual(slicesAs(acts, (tid) => OWN.get(tid) ?? tid))
      trace.close()
    }),
    { numRuns: 5 },
  ))
