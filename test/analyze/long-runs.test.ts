import { describe, expect, test } from '@jest/globals'
import { ThreadHistory } from '../../lib/analyze/threads/thread-history.ts'
import { UNKNOWN } from '../../lib/core.ts'
import { analyze, type EventInput, Names, type TraceEvent } from '../../lib/index.ts'
import { inLong } from '../long.ts'
import { switchOf } from '../sched/schedule.ts'
import { stateOf, tidOf } from './workers-log.ts'

/** Runs of more operators than are held. */

const [STEP_NS, OPERATOR_NS, PREEMPTED_NS] = [1000, 800, 100]
const PER_CALL = 100
const PER_BATCH = 4000

type Make = (names: Names, i: number) => TraceEvent[]

/** Without a spread: a million of them take seconds with one. */
const operatorOf = (call: number, startNs: number, endNs: number): TraceEvent => ({
  kind: 'operator',
  tensor: 0,
  worker: 0,
  tid: 101,
  cpu: -1,
  call,
  startNs,
  endNs,
  waitEndNs: endNs,
  experts: undefined,
  inferred: 0,
})

/** One worker computes operators; `more` adds events to each, `last` events at the end. */
const longLog = (
  count: number,
  more: Make = () => [],
  last: (names: Names) => TraceEvent[] = () => [],
): EventInput => ({
  name: 'long',
  *events(names) {
    const node = { ...UNKNOWN.tensor, id: 0, name: names.id('Qcur-0'), op: names.id('MUL_MAT') }
    yield [{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes: {} }, node]
    for (let from = 0; from < count; from += PER_BATCH) {
      const batch: TraceEvent[] = []
      for (let i = from; i < from + PER_BATCH; i++) {
        const startNs = i * STEP_NS
        const call = Math.floor(i / PER_CALL)
        const endNs = startNs + OPERATOR_NS
        batch.push(operatorOf(call, startNs, endNs))
        if (i % PER_CALL === PER_CALL - 1) {
          const callNs = (i + 1) * STEP_NS
          const times = { startNs: callNs - PER_CALL * STEP_NS, endNs: callNs }
          batch.push({ ...UNKNOWN.token, call, phase: 'decode', tokens: 1, tid: tidOf(0), ...times })
        }
        batch.push(...more(names, i))
      }
      yield batch
    }
    yield last(names)
  },
})

const states: Make = (_, i) => [
  stateOf(tidOf(0), i * STEP_NS + 200, 'runnable'),
  stateOf(tidOf(0), i * STEP_NS + 200 + PREEMPTED_NS, 'running'),
]

const recording = (count: number): EventInput => ({
  name: 'recording',
  *events(names) {
    yield [{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes: {} }]
    for (let from = 0; from < count; from += PER_BATCH) {
      yield Array.from({ length: 2 * PER_BATCH }, (_, k) => {
        const at = (from + (k >> 1)) * STEP_NS + 200
        if (k % 2 === 0) return switchOf(names, { cpu: 0, at, from: tidOf(0), to: 66 })
        return switchOf(names, { cpu: 0, at: at + PREEMPTED_NS, from: 66, left: 1, to: tidOf(0) })
      })
    }
  },
})

describe('of more operators than are held', () => {
  const COUNT = 160_000

  inLong(test)('each is compared with the states of its time, from the log or from a recording', async () => {
    for (const inputs of [[longLog(COUNT, states)], [longLog(COUNT), recording(COUNT)]]) {
      const { operators, scheduling, undetermined } = await analyze(inputs)
      const [row] = operators.rows
      expect([row!.executions, row!.preempted_ns, row!.blocked_ns]).toEqual([COUNT, COUNT * PREEMPTED_NS, 0])
      expect(scheduling!.workers[0]).toMatchObject({ preempted_ns: COUNT * PREEMPTED_NS, preemptions: COUNT })
      expect(undetermined.filter(({ what }) => what === 'scheduling.workers')).toEqual([])
    }
  })

  const LATE = [stateOf(tidOf(0), 0, 'running'), stateOf(tidOf(0), 300, 'runnable'), stateOf(tidOf(0), 340, 'running')]

  test('operators wait for states that the log contains later', async () => {
    const first: Make = (_, i) => (i === 0 ? [stateOf(tidOf(0), -1, 'running')] : [])
    const { operators, undetermined } = await analyze(longLog(COUNT, first, () => LATE))
    expect(operators.rows[0]!.preempted_ns).toBe(40)
    expect(undetermined.filter(({ what }) => what === 'scheduling.workers')).toEqual([])
  })

  inLong(test)('but not without end: the states that are too late are counted', async () => {
    const first: Make = (_, i) => (i === 0 ? [stateOf(tidOf(0), -1, 'running')] : [])
    const { operators, undetermined } = await analyze(longLog(1_060_000, first, () => LATE))
    expect(operators.rows[0]!.preempted_ns).toBe(0)
    expect(undetermined.find(({ what }) => what === 'scheduling.workers')?.why).toMatch(
      /^3 states of threads, late in the log, are missing in the times of operators$/,
    )
  })
})

describe('states that are held', () => {
  const names = new Names()
  const turn = (at: number) => [
    switchOf(names, { cpu: 0, at, from: tidOf(0), to: 66 }),
    switchOf(names, { cpu: 0, at: at + 50, from: 66, left: 1, to: tidOf(0) }),
  ]

  test('are dropped once no operator needs them', () => {
    const history = new ThreadHistory(names, { pids: [], hasSwitches: true }, 400_000)
    for (let i = 0; i < 1_000_000; i++) {
      for (const event of turn(i * 100_000)) if (event.kind === 'switch') history.switched(event)
      if (i % 1000 === 0) history.trim(i * 100_000)
    }
    expect([history.isFull, history.late]).toEqual([false, 0])
    const thread = history.of(tidOf(0))!
    expect(thread.count).toBeLessThan(100_000)
    expect(thread.state[thread.at(1e11 - 100_000 + 25)]).toBe(2)
  })

  test('have a maximum', async () => {
    const history = new ThreadHistory(names, { pids: [], hasSwitches: true }, 1000)
    for (let i = 0; i < 1000; i++) {
      for (const event of turn(i * 100)) if (event.kind === 'switch') history.switched(event)
    }
    expect(history.isFull).toBe(true)
  })
})
