import { describe, expect, test } from '@jest/globals'
import { groupOperators } from '../../lib/analysis.ts'
import { computingNs } from '../../lib/analyze/operators/computing.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { comm, switchOf, wakingOf } from '../sched/schedule.ts'
import { type Call, eventsOf, logOf, stateOf, tidOf } from './workers-log.ts'

/** Times of the threads of workers, against small runs that were computed by hand. */

/** One step: worker 0 computes 200 of 1000 ns, worker 1 300; worker 0 waits, and longer than for worker 1. */
const CALL: Call = {
  phase: 'decode',
  at: [0, 1000],
  parts: [
    { worker: 0, node: 'Qcur-0', at: [100, 300, 460], cpu: 0 },
    { worker: 1, node: 'Qcur-0', at: [100, 400, 410], cpu: 1 },
  ],
}

const partsOf = ({ call_time }: Analysis) =>
  Object.fromEntries(call_time[0]!.parts.map(({ what, time_ns }) => [what, time_ns]))

describe('states that the log contains', () => {
  const log = () =>
    logOf((names) => [
      stateOf(tidOf(0), 0, 'running', 0),
      stateOf(tidOf(1), 50, 'running', 1),
      stateOf(tidOf(0), 150, 'runnable', 0), // in the operator
      stateOf(tidOf(0), 200, 'running', 0),
      stateOf(tidOf(1), 210, 'blocked', 1),
      stateOf(tidOf(1), 220, 'running', 1),
      stateOf(tidOf(0), 320, 'blocked', 0), // sleeps in the barrier
      stateOf(tidOf(0), 350, 'running', 0),
      stateOf(tidOf(0), 380, 'runnable', 0), // in the barrier, 20 ns of it while worker 1 computes
      stateOf(tidOf(0), 450, 'running', 1), // on another CPU
      ...eventsOf(names, [CALL]),
    ])

  test('split the time of the call, and that of operators', async () => {
    const analysis = await analyze(log())
    expect(partsOf(analysis)).toEqual({
      attention: 150,
      preempted: 50 + 70,
      'barrier wait': 150 - 70,
      'barrier open': 10,
      'outside graphs': 640,
    })
    const [row] = analysis.operators.rows
    expect([row!.operator_time_ns, row!.wait_ns, row!.preempted_ns, row!.blocked_ns]).toEqual([500, 170, 50, 10])
  })

  test('are no time of computing', async () => {
    const analysis = await analyze(log())
    expect(groupOperators(analysis, ['op']).map(({ computing_ns }) => computing_ns)).toEqual([500 - 50 - 10])
    const ofWorkers = [200 - 50, 300 - 10]
    expect(groupOperators(analysis, ['worker']).map(({ computing_ns }) => computing_ns)).toEqual(ofWorkers)
    expect(analysis.workers.map(computingNs)).toEqual(ofWorkers)
    expect(analysis.workers.map(({ off_cpu_share }) => off_cpu_share)).toEqual([0.05, 0.01])
    expect(analysis.workers[0]!.by_phase.decode).toMatchObject({ operator_time_ns: 200, off_cpu_ns: 50 })
  })

  test('are summed by worker and phase, without the threads that took the CPU', async () => {
    const { scheduling, undetermined } = await analyze(log())
    const same = { phase: 'decode', call_time_ns: 1000, woken_ns: null, takers: [], other_takers_ns: 0 }
    expect(scheduling).toEqual({
      source: 'log',
      takers: 'none',
      workers: [
        {
          ...{ ...same, worker: 0, running_ns: 850, preempted_ns: 120, preemptions: 2, blocked_ns: 30 },
          ...{ unknown_ns: 0, migrations: 1 },
        },
        {
          ...{ ...same, worker: 1, running_ns: 940, preempted_ns: 0, preemptions: 0, blocked_ns: 10 },
          ...{ unknown_ns: 50, migrations: 0 },
        },
      ],
      roles: [
        {
          ...{ role: 'Qcur', op: 'MUL_MAT', phase: 'decode', operator_time_ns: 500, preempted_ns: 50, blocked_ns: 10 },
          ...{ takers: [], other_takers_ns: 0 },
        },
      ],
    })
    expect(undetermined.map(({ what }) => what)).toEqual(
      expect.arrayContaining(['scheduling.workers.takers', 'scheduling.workers.woken_ns']),
    )
  })

  test('may be missing: then nothing is known', async () => {
    const { scheduling, operators, workers, undetermined } = await analyze(logOf((names) => eventsOf(names, [CALL])))
    expect([scheduling, operators.rows[0]!.preempted_ns, operators.rows[0]!.blocked_ns]).toEqual([null, null, null])
    expect(workers.map(({ off_cpu_ns, off_cpu_share }) => [off_cpu_ns, off_cpu_share])).toEqual([
      [null, null],
      [null, null],
    ])
    expect(undetermined.find(({ what }) => what === 'scheduling')?.why).toBe('the log contains no states of threads')
    const refused = { attributes: { states: 'perf_event_open is not allowed here' } }
    const other = await analyze(logOf((names) => eventsOf(names, [CALL]), refused))
    expect(other.undetermined.find(({ what }) => what === 'scheduling')?.why).toMatch(
      /: perf_event_open is not allowed/,
    )
  })
})

describe('switches of a recording', () => {
  const [HOG, RCU] = [66, 17]
  const log = () => logOf((names) => eventsOf(names, [CALL]), { attributes: { pid: '100' } })
  const recording = (capabilities = {}) =>
    logOf(
      (names) => [
        { kind: 'thread', what: 'known', atNs: 0, tid: tidOf(0), tgid: 100, comm: 0, parentTid: -1 },
        { kind: 'thread', what: 'known', atNs: 0, tid: tidOf(1), tgid: 100, comm: 0, parentTid: -1 },
        { kind: 'thread', what: 'known', atNs: 0, tid: HOG, tgid: HOG, comm: 0, parentTid: -1 },
        switchOf(names, { cpu: 0, at: 0, from: 5, to: tidOf(0) }),
        switchOf(names, { cpu: 0, at: 150, from: tidOf(0), to: RCU }),
        switchOf(names, { cpu: 0, at: 160, from: RCU, left: 1, to: HOG }),
        switchOf(names, { cpu: 0, at: 200, from: HOG, to: tidOf(0) }),
        switchOf(names, { cpu: 0, at: 320, from: tidOf(0), left: 1, to: HOG }),
        wakingOf(names, 1, 330, tidOf(1), tidOf(0), { targetCpu: 0 }),
        switchOf(names, { cpu: 0, at: 350, from: HOG, to: tidOf(0) }),
        switchOf(names, { cpu: 0, at: 380, from: tidOf(0), to: HOG }),
        switchOf(names, { cpu: 0, at: 990, from: HOG, to: 0 }),
        switchOf(names, { cpu: 1, at: 50, from: 0, to: tidOf(1) }),
        switchOf(names, { cpu: 1, at: 430, from: tidOf(1), to: tidOf(0) }), // moves, and takes the other worker's CPU
        switchOf(names, { cpu: 1, at: 950, from: tidOf(0), left: 0x10, to: tidOf(1) }),
        switchOf(names, { cpu: 1, at: 2000, from: tidOf(1), left: 1, to: 0 }),
      ],
      { name: 'recording', capabilities },
    )

  test.each([{}, { order: false }])('name who had the CPU (%j)', async (capabilities) => {
    const { scheduling, undetermined } = await analyze([log(), recording(capabilities)])
    expect([scheduling!.source, scheduling!.takers]).toEqual(['scheduler', 'all'])
    const by = (tid: number, time_ns: number, is_own = false) => ({
      ...{ comm: comm(tid), tid, threads: 1, is_own, time_ns, share: time_ns / 1000 },
    })
    const [first, second] = scheduling!.workers
    expect(first).toEqual({
      ...{ worker: 0, phase: 'decode', call_time_ns: 1000, running_ns: 150 + 120 + 30 + 520 },
      ...{ preempted_ns: 50 + 50, preemptions: 2, woken_ns: 20, blocked_ns: 10, unknown_ns: 50, migrations: 1 },
      ...{ takers: [by(HOG, 40 + 50), by(RCU, 10)], other_takers_ns: 0 },
    })
    expect(second).toEqual({
      ...{ worker: 1, phase: 'decode', call_time_ns: 1000, running_ns: 380 + 50, preempted_ns: 520, preemptions: 1 },
      ...{ woken_ns: 0, blocked_ns: 0, unknown_ns: 50, migrations: 0 },
      ...{ takers: [by(tidOf(0), 520, true)], other_takers_ns: 0 },
    })
    const [role] = scheduling!.roles
    expect([role!.preempted_ns, role!.blocked_ns, role!.takers.map(({ comm, time_ns }) => [comm, time_ns])]).toEqual([
      50,
      0,
      [
        [comm(HOG), 40],
        [comm(RCU), 10],
      ],
    ])
    expect(undetermined.filter(({ what }) => what.startsWith('scheduling'))).toEqual([])
  })

  test('of another run determine nothing', async () => {
    const other = logOf((names) => [switchOf(names, { cpu: 0, at: 100, from: 1000, to: 1001 })], { name: 'other' })
    const { scheduling, undetermined } = await analyze([log(), other])
    expect(scheduling).toBeNull()
    expect(undetermined.find(({ what }) => what === 'scheduling')?.why).toBe(
      'the recording of the scheduler contains no thread of a worker',
    )
  })

  test('complete the states of the log, which are used where no switch is recorded', async () => {
    const states = logOf((names) => [stateOf(tidOf(1), 0, 'blocked'), ...eventsOf(names, [CALL])])
    const { scheduling } = await analyze([states, recording()])
    expect(scheduling!.source).toBe('both')
    expect(scheduling!.workers[1]).toMatchObject({ blocked_ns: 50, running_ns: 380 + 50, unknown_ns: 0 })
  })
})

describe('workers', () => {
  const step = (node: string, at: number, ns: readonly number[]) =>
    ns.map((ns, worker) => ({ worker, node, at: [at, at + ns, at + 100] as const, cpu: worker }))

  test('compute, wait, or are idle in their calls', async () => {
    const calls: Call[] = [
      {
        phase: 'prefill',
        at: [0, 300],
        parts: [...step('Qcur-0', 0, [50, 90, 10]), ...step('Kcur-0', 150, [100, 90])],
      },
      { phase: 'decode', at: [400, 600], parts: step('Qcur-0', 400, [60, 80]) },
    ]
    const { workers, imbalance } = await analyze(logOf((names) => eventsOf(names, calls)))
    expect(
      workers.map(({ worker, calls, call_time_ns, operator_time_ns, wait_ns, idle_ns, steps, last }) => {
        return [worker, calls, call_time_ns, operator_time_ns, wait_ns, idle_ns, steps, last]
      }),
    ).toEqual([
      [0, 2, 500, 210, 90, 200, 3, 1],
      [1, 2, 500, 260, 40, 200, 3, 2],
      [2, 1, 300, 10, 90, 200, 1, 0],
    ])
    for (const of of [...workers, ...workers.flatMap(({ by_phase }) => Object.values(by_phase))]) {
      expect(of.operator_share! + of.wait_share! + of.idle_share!).toBeCloseTo(1, 12)
    }
    expect(workers[2]!.by_phase.prefill).toMatchObject({ idle_ns: 200, wait_share: 0.3 })
    expect(imbalance.map(({ op: _, ...of }) => of)).toEqual([
      {
        ...{ role: 'Qcur', phase: 'prefill', workers: 3, steps: 1, slowest_ns: 90, mean_ns: 50 },
        ...{ imbalance_share: 40 / 90, last_worker: 1, last_share: 1 },
      },
      {
        ...{ role: 'Qcur', phase: 'decode', workers: 2, steps: 1, slowest_ns: 80, mean_ns: 70 },
        ...{ imbalance_share: 1 / 8, last_worker: 1, last_share: 1 },
      },
      {
        ...{ role: 'Kcur', phase: 'prefill', workers: 2, steps: 1, slowest_ns: 100, mean_ns: 95 },
        ...{ imbalance_share: 0.05, last_worker: 0, last_share: 1 },
      },
    ])
  })

  test('that move begin operators on another CPU', async () => {
    const parts = [0, 0, 1, 1, 0].map((cpu, i) => {
      return { worker: 0, node: `n-${i}`, at: [10 * i, 10 * i + 5, 10 * i + 5] as const, cpu }
    })
    const calls: Call[] = [{ phase: 'decode', at: [0, 100], parts }]
    const { workers } = await analyze(logOf((names) => eventsOf(names, calls)))
    expect(workers[0]).toMatchObject({ moved_operators: 2, moved_operator_time_ns: 10 })
  })
})
