import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { OperatorEvent, TensorEvent } from '../../lib/core.ts'
import { TaskState, UNKNOWN } from '../../lib/core.ts'
import type { EventInput, Names, TraceEvent } from '../../lib/index.ts'
import { convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { drawn } from '../printing-sink.ts'
import { actsOf, eventsOf } from './model.ts'
import { comm, input, inputEvent, ORIGIN_NS, switchOf, traceOf, wakingOf } from './schedule.ts'

const rows = (trace: OpenTrace, sql: string) => trace.query(sql).rows

const tensor = (names: Names): TensorEvent => ({
  ...UNKNOWN.tensor,
  id: 0,
  name: names.id('Qcur-0'),
  layer: 0,
  op: names.id('MUL_MAT'),
})

const operator = (worker: number, tid: number, startNs: number, endNs: number): OperatorEvent => ({
  ...UNKNOWN.operator,
  tensor: 0,
  worker,
  tid,
  call: 0,
  startNs,
  endNs,
  waitEndNs: endNs,
})

/** A log of workers by their threads, as `[worker, tid]`, that lived until then. */
const log = (workers: readonly (readonly [number, number])[], endNs: number, more: TraceEvent[] = []): EventInput =>
  input(
    'log',
    (names) => [tensor(names), ...more, ...workers.map(([worker, tid]) => operator(worker, tid, endNs - 1, endNs))],
    inputEvent({ attributes: { pid: '100', command: '/usr/bin/llama-cli -m x', kernel: '6.1.0' } }),
  )

const LANES = `select track.name, slice.name, ts - ${ORIGIN_NS}, dur from slice join track on track_id = track.id
  where track.name like 'worker%: state%' order by track.name, ts`

describe("a worker's state lane", () => {
  test('tells what the thread states do, for any schedule, in whatever order CPUs come', async () => {
    await fc.assert(
      fc.asyncProperty(actsOf({ cpus: 3, tids: 4, length: 80 }), fc.boolean(), async (acts, cpuAfterCpu) => {
        const endNs = acts.length === 0 ? 1 : acts.at(-1)!.at
        const switches = input('switches', (names) => eventsOf(names, acts, cpuAfterCpu))
        const trace = await traceOf([
          switches,
          log(
            [
              [0, 101],
              [1, 102],
            ],
            endNs,
          ),
        ])
        try {
          for (const [worker, tid] of [
            [0, 101],
            [1, 102],
          ])
            expectSame(trace, worker!, tid!)
        } finally {
          trace.close()
        }
      }),
      { numRuns: 20 },
    )
  })

  test('says on which CPU, preempted by whom, woken by whom, blocked how, until when', async () => {
    const inputs = [
      log([[0, 101]], 1000),
      input('switches', (names) => [
        switchOf(names, { cpu: 2, at: 100, from: 7, left: 1, to: 101 }),
        switchOf(names, { cpu: 2, at: 200, from: 101, to: 66 }),
        switchOf(names, { cpu: 2, at: 300, from: 66, left: 1, to: 101 }),
        switchOf(names, { cpu: 2, at: 350, from: 101, left: TaskState.D, to: 0 }),
        switchOf(names, { cpu: 1, at: 360, from: 0, to: 55 }),
        wakingOf(names, 1, 400, 55, 101, { targetCpu: 2 }),
        switchOf(names, { cpu: 2, at: 450, from: 0, to: 101 }),
        switchOf(names, { cpu: 2, at: 500, from: 101, left: TaskState.X, to: 0 }),
        switchOf(names, { cpu: 2, at: 900, from: 0, to: 101 }), // another thread of that number, in another life
      ]),
    ]
    const lines = await drawn(inputs, {}, { rows: /worker 0: state/, args: ['cpu', 'taken_by', 'woken_by'] })
    expect(lines).toEqual([
      'worker 0: state | 100–200 running on CPU 2 {cpu: 2}',
      'worker 0: state | 200–300 runnable (preempted) {cpu: 2, taken_by: task 66 66}',
      'worker 0: state | 300–350 running on CPU 2 {cpu: 2}',
      'worker 0: state | 350–400 blocked (D) {cpu: 2}',
      'worker 0: state | 400–450 runnable (woken) {cpu: 2, woken_by: task 55 55}',
      'worker 0: state | 450–500 running on CPU 2 {cpu: 2}',
    ])
  })

  test('takes the switches, and the states of the log where switches are missing', async () => {
    const states: TraceEvent[] = [
      { kind: 'state', tid: 101, cpu: 3, state: 'running', atNs: 10 },
      { kind: 'state', tid: 101, cpu: 3, state: 'runnable', atNs: 20 },
      { kind: 'state', tid: 101, cpu: 3, state: 'ended', atNs: 30 },
    ]
    const make = (names: Names) => [
      switchOf(names, { cpu: 2, at: 12, from: 0, to: 101 }),
      switchOf(names, { cpu: 2, at: 22, from: 101, left: TaskState.X, to: 0 }),
    ]
    const linesOf = (inputs: EventInput | EventInput[]) => drawn(inputs, {}, { rows: /worker 0: state/ })
    expect(await linesOf(log([[0, 101]], 40, states))).toEqual([
      'worker 0: state | 10–20 running on CPU 3',
      'worker 0: state | 20–30 runnable (preempted)',
    ])
    expect(await linesOf([log([[0, 101]], 40, states), input('switches', make)])).toEqual([
      'worker 0: state | 10–12 running on CPU 3',
      'worker 0: state | 12–20 running on CPU 2',
      'worker 0: state | 20–22 runnable (preempted)',
    ])
  })
})

/** The lane of a worker against what trace_processor makes of the same switches. */
function expectSame(trace: OpenTrace, worker: number, tid: number): void {
  const names = new Map([
    ['R', 'runnable (preempted)'],
    ['R+', 'runnable (preempted)'],
    ['S', 'blocked (S)'],
    ['D', 'blocked (D)'],
  ])
  const states = rows(
    trace,
    `select ts - ${ORIGIN_NS}, dur, state, cpu, waker_utid is not null from thread_state join thread using (utid)
      where tid = ${tid} order by ts`,
  )
  const expected: [string, number, number][] = []
  for (const [ts, dur, state, cpu, isWoken] of states as [number, number, string, number | null, number][]) {
    const name = state === 'Running' ? `running on CPU ${cpu}` : isWoken === 1 ? 'runnable (woken)' : names.get(state)!
    const last = expected.at(-1)
    // To be woken changes nothing for a thread that may run anyway.
    if (name === 'runnable (woken)' && last?.[0] === 'runnable (preempted)') last[2] = dur < 0 ? -1 : last[2] + dur
    else expected.push([name, ts, dur])
  }
  const lane = rows(trace, LANES)
    .filter(([track]) => track === `worker ${worker}: state`)
    .map(([, ...slice]) => slice)
  const open = expected.findIndex(([, , dur]) => dur < 0 || !Number.isFinite(dur))
  expect(lane.slice(0, expected.length - 1)).toEqual(
    expected.slice(0, open < 0 ? undefined : open).slice(0, lane.length),
  )
  expect(lane.length).toBeGreaterThanOrEqual(expected.length - 1)
}

describe('what is drawn', () => {
  const HOG = 66
  /** CPU 0: the hog before, the worker, the hog; CPU 1: others; CPU 2: where the worker is woken to. */
  const switches = input('switches', (names) => [
    { kind: 'thread', what: 'known', atNs: 0, tid: 300, tgid: 300, comm: names.id('elsewhere'), parentTid: -1 },
    { kind: 'thread', what: 'known', atNs: 0, tid: HOG, tgid: 60, comm: names.id('hog'), parentTid: -1 },
    switchOf(names, { cpu: 0, at: 10, from: 0, to: 5 }),
    switchOf(names, { cpu: 1, at: 15, from: 0, to: 300 }),
    switchOf(names, { cpu: 0, at: 20, from: 5, left: 1, to: HOG }),
    switchOf(names, { cpu: 2, at: 25, from: 0, to: 70 }),
    switchOf(names, { cpu: 0, at: 30, from: HOG, to: 101 }),
    wakingOf(names, 1, 32, 300, 9),
    switchOf(names, { cpu: 0, at: 40, from: 101, left: 1, to: HOG }),
    wakingOf(names, 1, 45, 300, 101, { targetCpu: 2 }),
    switchOf(names, { cpu: 1, at: 50, from: 300, left: 1, to: 0 }),
    switchOf(names, { cpu: 2, at: 55, from: 70, left: 1, to: 0 }),
    switchOf(names, { cpu: 0, at: 60, from: HOG, left: 1, to: 101 }),
    switchOf(names, { cpu: 0, at: 70, from: 101, left: TaskState.X, to: HOG }),
    switchOf(names, { cpu: 0, at: 200, from: HOG, to: 400 }),
    switchOf(names, { cpu: 0, at: 210, from: 400, to: HOG }),
  ])
  const SLICES = `select cpu, tid, ts - ${ORIGIN_NS}, dur from sched_slice join thread using (utid)
    where tid != 0 order by cpu, ts`

  test('is what concerns the traced process: its threads, and who had its CPUs while it lived', async () => {
    const trace = await traceOf([log([[0, 101]], 100), switches])
    expect(rows(trace, SLICES)).toEqual([
      [0, HOG, 20, 10],
      [0, 101, 30, 10],
      [0, HOG, 40, 20],
      [0, 101, 60, 10],
      [0, HOG, 70, 130],
      [2, 70, 25, 30],
    ])
    expect(
      rows(trace, 'select state, waker.tid from thread_state join thread waker on waker.utid = waker_utid').flat(),
    ).toEqual(['R', 300])
    expect(rows(trace, 'select count(*) from thread where tid in (400, 9)')).toEqual([[0]])
    expect(rows(trace, 'select pid, process.name from process where pid > 0 order by pid')).toEqual([
      [100, 'llama-cli'],
      [2 ** 22, 'threads of unknown processes'], // 70 had the CPU that the worker was woken to
      [2 ** 22 + 1, 'other programs'],
    ])
    const about = `select extract_arg(source_arg_set_id, 'description') from track where name = 'worker 0: state'`
    expect(rows(trace, about).flat().join()).toMatch(
      /scheduler's events.*where some are missing, from the states in the log/,
    )
    trace.close()
  })

  test('is all with allThreads, and where no process is known to be traced', async () => {
    for (const trace of [
      await traceOf([log([[0, 101]], 100), switches], { allThreads: true }),
      await traceOf(switches),
    ]) {
      expect(rows(trace, 'select count(*) from sched_slice')).toEqual([[12]])
      expect(rows(trace, 'select distinct cpu from sched_slice order by cpu').flat()).toEqual([0, 1, 2])
      trace.close()
    }
  })

  test('is rows of slices in Chrome JSON, and the lanes of workers', async () => {
    const trace = await openTrace(convert([log([[0, 101]], 100), switches], { to: 'json', allThreads: true }))
    expect(trace.problems()).toEqual([])
    const sql = `select process.name, thread.name, slice.name, ts - 86400000000000, dur
      from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
      where process.name = 'CPUs' order by thread.name, ts`
    expect(rows(trace, sql)).toEqual([
      ['CPUs', 'CPU 0', comm(5), 10, 10],
      ['CPUs', 'CPU 0', comm(HOG), 20, 10],
      ['CPUs', 'CPU 0', comm(101), 30, 10],
      ['CPUs', 'CPU 0', comm(HOG), 40, 20],
      ['CPUs', 'CPU 0', comm(101), 60, 10],
      ['CPUs', 'CPU 0', comm(HOG), 70, 130],
      ['CPUs', 'CPU 0', comm(400), 200, 10],
      ['CPUs', 'CPU 0', comm(HOG), 210, 0],
      ['CPUs', 'CPU 1', comm(300), 15, 35],
      ['CPUs', 'CPU 2', comm(70), 25, 30],
    ])
    const lane = `select slice.name from slice join thread_track on track_id = thread_track.id join thread using (utid)
      where thread.name = 'worker 0: state' order by ts`
    expect(rows(trace, lane).flat()).toEqual([
      'running on CPU 0',
      'blocked (S)',
      'runnable (woken)',
      'running on CPU 0',
    ])
    trace.close()
  })
})
