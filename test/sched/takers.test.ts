import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { UNKNOWN } from '../../lib/core.ts'
import type { EventInput, Names, TraceEvent } from '../../lib/index.ts'
import { WaitedCpus } from '../../lib/threads/takers.ts'
import { inLong } from '../long.ts'
import { drawn } from '../printing-sink.ts'
import { type Act, actsOf, eventsOf, expectedSlices } from './model.ts'
import { comm, input, inputEvent, type Step, switchOf } from './schedule.ts'

/** While a thread waits for the CPU that was taken from it, several others may have that CPU, one after the other. */

const WORKER = 101

/** A log of one worker, that lived until then. */
const log = (endNs: number): EventInput =>
  input(
    'log',
    (names): TraceEvent[] => [
      { ...UNKNOWN.tensor, id: 0, name: names.id('Qcur-0'), layer: 0, op: names.id('MUL_MAT') },
      {
        ...{ ...UNKNOWN.operator, tensor: 0, worker: 0, tid: WORKER, call: 0 },
        ...{ startNs: endNs - 1, endNs, waitEndNs: endNs },
      },
    ],
    inputEvent({ attributes: { pid: '100', kernel: '6.1.0' } }),
  )

/** The waits of the worker for a CPU, with who had it. */
async function waitsOf(make: (names: Names) => TraceEvent[], endNs: number): Promise<string[]> {
  const shown = { rows: /worker 0: state/, args: ['taken_by', 'taken_by_ns', 'taken_by_all'] }
  const lines = await drawn([log(endNs), input('switches', make)], {}, shown)
  return lines.filter((line) => line.includes('preempted')).map((line) => line.replace(/.* \| /, ''))
}

const WAIT = /^(\d+)–(\d+) runnable \(preempted\) {taken_by: (.*?), taken_by_ns: (\d+)(?:, taken_by_all: (.*))?}$/

const label = (tid: number) => (tid === 0 ? 'idle' : `${comm(tid)} ${tid}`)

/** Who had the CPU of a wait, for how long: worked out from all slices of that CPU. */
function sharesOf(acts: readonly Act[], startNs: number, endNs: number): Map<string, number> {
  const cpu = acts.find((act) => act.what === 'switch' && act.from === WORKER && act.at === startNs)!.cpu
  const shares = new Map<string, number>()
  for (const [at, dur, onCpu, , tid] of expectedSlices(acts) as [number, number, number, string, number][]) {
    const ns = Math.min(endNs, dur < 0 ? Infinity : at + dur) - Math.max(startNs, at)
    if (onCpu === cpu && ns > 0) shares.set(label(tid), (shares.get(label(tid)) ?? 0) + ns)
  }
  return shares
}

describe('who had the CPU instead', () => {
  test('is the one that had it longest, of all that had it', async () => {
    const step = (at: number, from: number, to: number): Step => ({ cpu: 2, at, from, to })
    const [RCU, HOG] = [17, 66]
    const waits = await waitsOf(
      (names) => [
        switchOf(names, step(1_000, 0, WORKER)),
        switchOf(names, step(2_000, WORKER, RCU)),
        switchOf(names, { ...step(22_000, RCU, HOG), left: 1 }),
        switchOf(names, step(1_200_022_000, HOG, WORKER)),
        switchOf(names, step(1_300_000_000, WORKER, RCU)),
        switchOf(names, { ...step(1_300_005_000, RCU, WORKER), left: 1 }),
        switchOf(names, { ...step(1_400_000_000, WORKER, 0), left: 1 }),
      ],
      1_400_000_000,
    )
    expect(waits).toEqual([
      '2000–1200022000 runnable (preempted) {taken_by: task 66 66, taken_by_ns: 1200000000, ' +
        'taken_by_all: task 66 66: 1.2 s, task 17 17: 20 µs}',
      '1300000000–1300005000 runnable (preempted) {taken_by: task 17 17, taken_by_ns: 5000}',
    ])
  })

  test('is right for any schedule, in whatever order CPUs come', async () => {
    let waits = 0
    const property = async (acts: Act[], cpuAfterCpu: boolean) => {
      const endNs = acts.at(-1)?.at ?? 1
      for (const line of await waitsOf((names) => eventsOf(names, acts, cpuAfterCpu), endNs)) {
        if (/–(\d+)/.exec(line)![1] === `${endNs}`) continue // it may have lasted longer
        const [, from, to, by = '', ns, all] = WAIT.exec(line)!
        const shares = sharesOf(acts, Number(from), Number(to))
        const longest = Math.max(...shares.values())
        expect([shares.get(by), Number(ns)]).toEqual([longest, longest])
        expect(all ? all.split(', ').length : 1).toBe(all ? Math.min(6, shares.size) : shares.size)
        waits++
      }
    }
    await fc.assert(fc.asyncProperty(actsOf({ cpus: 2, tids: 5, length: 120, shortest: 80 }), fc.boolean(), property), {
      numRuns: 12,
    })
    expect(waits).toBeGreaterThan(20)
  })

  /** Two take turns on CPU 0, a third one has it first; the worker gets a CPU after so many turns. */
  const turns = (count: number, backOn: number) => (names: Names) => [
    switchOf(names, { cpu: 0, at: 0, from: 0, to: WORKER }),
    switchOf(names, { cpu: 0, at: 1000, from: WORKER, to: 50 }),
    ...Array.from({ length: count }, (_, i) => {
      const [from, to] = [i === 0 ? 50 : 51 + ((i + 1) % 2), 51 + (i % 2)]
      return switchOf(names, { cpu: 0, at: 2000 + 10 * i, from, to })
    }),
    switchOf(names, {
      cpu: backOn,
      at: 2000 + 10 * count,
      from: backOn === 0 ? 51 + ((count - 1) % 2) : 0,
      to: WORKER,
    }),
    switchOf(names, { cpu: backOn, at: 9000, from: WORKER, left: 1, to: 0 }),
  ]

  test.each([0, 1])('is known exactly of many that take turns, until the thread is back on CPU %i', async (backOn) => {
    const all = 'task 51 51: 1.5 µs, task 52 52: 1.5 µs, task 50 50: 1 µs'
    expect(await waitsOf(turns(300, backOn), 9000)).toEqual([
      `1000–5000 runnable (preempted) {taken_by: task 51 51, taken_by_ns: 1500, taken_by_all: ${all}}`,
    ])
  })

  inLong(test)('is known of more waits than are held, in order of time', async () => {
    const WAITS_MADE = 26_000
    /** Waits on two CPUs in turn, of 20 runs each. */
    const make = (names: Names) =>
      Array.from({ length: WAITS_MADE }, (_, i) => {
        const [cpu, at] = [i % 2, i * 1000]
        const step = (ns: number, from: number, to: number) => switchOf(names, { cpu, at: at + ns, from, to })
        const others = Array.from({ length: 20 }, (_, j) => step(120 + 10 * j, 200 + (j % 4), 200 + ((j + 1) % 4)))
        return [step(0, 0, WORKER), step(110, WORKER, 200), ...others, step(400, 200, 0)]
      }).flat()
    const waits = await waitsOf(make, WAITS_MADE * 1000)
    const all = 'idle: 600 ns, task 200 200: 140 ns, task 201 201: 50 ns, task 202 202: 50 ns, task 203 203: 50 ns'
    const expected = Array.from({ length: WAITS_MADE - 1 }, (_, i) => {
      const times = `${1000 * i + 110}–${1000 * i + 1000}`
      return `${times} runnable (preempted) {taken_by: idle, taken_by_ns: 600, taken_by_all: ${all}}`
    })
    const latest = 'task 200 200: 140 ns, task 201 201: 50 ns, task 202 202: 50 ns, task 203 203: 50 ns'
    const last = `25999110–25999400 runnable (preempted) {taken_by: task 200 200, taken_by_ns: 140, taken_by_all: ${latest}}`
    expect(waits).toEqual([...expected, last]) // to the end of the recording
  })

  test('is not known while too many runs are held', () => {
    const waited = new WaitedCpus(3)
    const takers = waited.wait(0, 100, WORKER, { tid: 50, comm: 5 })
    for (const [i, at] of [110, 130, 160, 200, 250].entries()) waited.take(0, at, 51 + i, 6 + i)
    expect(takers.sharesUntil(180)).toEqual({
      known: [
        { tid: 52, comm: 7, ns: 30 },
        { tid: 51, comm: 6, ns: 20 },
        { tid: 53, comm: 8, ns: 20 },
        { tid: 50, comm: 5, ns: 10 },
      ],
      unknownNs: 0,
    })
    expect(takers.sharesUntil(300).unknownNs).toBe(100)
    waited.release(160)
    waited.take(0, 320, 60, 9)
    expect(takers.sharesUntil(400)).toMatchObject({
      known: [{ tid: 60, comm: 9, ns: 80 }, {}, {}, {}, {}],
      unknownNs: 120,
    })
  })

  test('names five, and counts the others', async () => {
    const make = (names: Names) => [
      switchOf(names, { cpu: 0, at: 0, from: 0, to: WORKER }),
      ...Array.from({ length: 8 }, (_, i) =>
        switchOf(names, { cpu: 0, at: 1000 + 100 * i, from: i === 0 ? WORKER : 49 + i, to: 50 + i }),
      ),
      switchOf(names, { cpu: 0, at: 2000, from: 57, to: WORKER }),
      switchOf(names, { cpu: 0, at: 9000, from: WORKER, left: 1, to: 0 }),
    ]
    const [wait = ''] = await waitsOf(make, 9000)
    expect(wait).toMatch(/taken_by: task 57 57, taken_by_ns: 300, .*_all: task 57 57: 300 ns, task 50 50: 100 ns, /)
    expect(wait).toMatch(/, 3 more: 300 ns}$/)
    expect(wait.split('taken_by_all')[1]!.split(', ')).toHaveLength(6)
  })
})
