import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { describe, expect, test } from '@jest/globals'
import type { StateEvent } from '../../lib/core.ts'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { Cell } from '../../lib/sql.ts'
import { hasLlama, type Run } from '../llama/testbed.ts'
import { hasTaskset, ON_CPU, startHog, stealing } from '../machine.ts'
import { AS_USER, denied, MLOCK, PARANOID, perfTest, settable, useRecorderOfUser, withSetting } from './as-user.ts'
import { readLog as readBlocks } from './log-checker.ts'
import type { Recording } from './recording.ts'
import '../live.ts'
import { inLong, inParts, someOf } from '../long.ts'

const llama = hasLlama() ? describe : describe.skip

/** The number of a STATE record. */
const STATE = 46

interface Times {
  readonly at: number
  readonly cpu: Readonly<Record<string, number>>
}

const timesOf = ({ lines }: Run) =>
  lines.filter(({ event }) => (event as string) === 'times') as unknown as readonly Times[]

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

/** How long each thread was in a state between two times, in ns. */
function timeIn(states: readonly StateEvent[], state: string, from: number, to: number): Map<number, number> {
  const spent = new Map<number, number>()
  const last = new Map<number, StateEvent>()
  const add = (event: StateEvent | undefined, endNs: number) => {
    const ns = event?.state === state ? Math.min(endNs, to) - Math.max(event.atNs, from) : 0
    if (event && ns > 0) spent.set(event.tid, (spent.get(event.tid) ?? 0) + ns)
  }
  for (const event of states) {
    add(last.get(event.tid), event.atNs)
    last.set(event.tid, event)
  }
  for (const event of last.values()) add(event, to)
  return spent
}

interface Row {
  readonly worker: string
  readonly ts: number
  readonly dur: number
  readonly wait: number
}

const rowOf = ([worker, ts, dur, wait]: readonly Cell[]): Row => ({
  worker: `${worker}`,
  ts: Number(ts),
  dur: Number(dur),
  wait: Number(wait ?? 0),
})

/** Does a slice end before that time of that worker? */
const isBefore = (row: Row, worker: string, ts: number) =>
  row.worker < worker || (row.worker === worker && row.ts + row.dur <= ts)

const workersOf = ({ of }: Recording) => new Set(of('operator').map(({ tid }) => tid))

llama('thread states, as an ordinary user (needs linux-x64 and cc)', () => {
  const record = useRecorderOfUser()

  perfTest('running time is the thread’s CPU time (needs perf_event_open)', async () => {
    const stolenNs = stealing()
    // Workers that wait for each other on one CPU take milliseconds at each barrier.
    const tokens = availableParallelism() < 2 ? 20 : 440
    const steps = [...['decode', 0, 20, 'times'], ...['decode', 0, tokens, 'times'], ...['decode', 0, 2]]
    const { log, recording, result } = await record(steps)
    const stolen = stolenNs()
    const { of } = recording
    const [input] = of('input')
    expect(input!.attributes['states']).toBe('by perf_event_open, without root: it does not show who took a CPU')
    const [first, second] = timesOf(result).map((times) => ({ ...times, at: times.at - Number(input!.originNs) }))
    // Blocks of two writers are read in no order, and a thread's states must be in order.
    const told = readBlocks(readFileSync(log)).blocks.filter(({ records }) =>
      records.some(({ type }) => type === STATE),
    )
    expect(new Set(told.map(({ writer }) => writer)).size).toBe(1)
    const running = timeIn(of('state'), 'running', first!.at, second!.at)
    expect(recording.hasAllStates).toBe(true)
    const workers = workersOf(recording)
    expect(workers.size).toBe(2)
    for (const tid of workers) {
      const used = second!.cpu[tid]! - first!.cpu[tid]!
      expect(used).toBeGreaterThan(20e6)
      const more = running.get(tid)! - used
      expect([tid, more > -0.02 * used && more < 0.02 * used + stolen]).toEqual([tid, true])
    }
    expect(recording.issues).toEqual([])
  })

  const pinned = hasTaskset ? perfTest : test.skip
  inLong(pinned)(
    'who takes a CPU is seen in the operators that it hits, and in no other (needs taskset, perf_event_open)',
    async () => {
      const hog = startHog()
      // One worker: two would spin at barriers for as long as the other one waits for its CPU. Most turns
      // of the hog are between operators: in 60 calls it hit 3 to 19 operators, in 300 enough.
      const before = [...AS_USER, 'taskset', ...ON_CPU]
      const recorded = record(['decode', 0, 300], { before, threads: 1 })
      const { log, recording } = await recorded.finally(() => hog.kill('SIGKILL'))
      expect(recording.hasAllStates).toBe(true)
      const trace = await openTrace(convert(inputOf(log)))
      expect(trace.problems()).toEqual([])
      const select = (what: string, where: string) =>
        trace.query(`select substr(t.name, 1, 8), ts, dur, ${what} from slice s join track t on t.id = s.track_id
                   where ${where} order by 1, 2`).rows
      const preempted = select('0', "s.name = 'runnable (preempted)'").map(rowOf)
      const operators = select("extract_arg(arg_set_id, 'debug.inner_wait_ns')", "category = 'operator'").map(rowOf)
      trace.close()
      let next = 0
      const found = operators.map(({ worker, ts, dur, wait }) => {
        while (next < preempted.length && isBefore(preempted[next]!, worker, ts)) next++
        let hit = 0
        for (let i = next; preempted[i]?.worker === worker && preempted[i]!.ts < ts + dur; i++) {
          hit += Math.min(ts + dur, preempted[i]!.ts + preempted[i]!.dur) - Math.max(ts, preempted[i]!.ts)
        }
        return { dur, own: dur - wait - hit, preempted: hit }
      })
      expect(found.length).toBe(recording.of('operator').length)
      const hit = found.filter(({ preempted }) => preempted > 1e6)
      expect(hit.length).toBeGreaterThan(5)
      expect(sum(hit.map(({ preempted }) => preempted))).toBeGreaterThan(20e6)
      // Without it, what they took is what such operators take: a millisecond is much.
      const odd = found.filter(({ dur, own, preempted }) => own > 2e6 || dur < preempted)
      expect(odd.length).toBeLessThan(found.length / 500)
    },
  )

  perfTest(
    'switches before the log fill the kernel’s buffer: nothing of the log is lost (needs perf_event_open)',
    async () => {
      // Two records of each thread each time; the buffer of a CPU has space for 16 384.
      const { recording } = await record(['decode', 0, 3], { first: ['switch', 10_000] })
      expect(recording.of('state').length).toBeGreaterThan(0)
      expect(recording.hasAllStates).toBe(true)
    },
  )

  perfTest('a burst of switches is read while the kernel’s buffer has space (needs perf_event_open)', async () => {
    const { recording } = await record(['decode', 0, 3, 'switch', 30_000, 'decode', 0, 3])
    // A busy machine may keep the reader waiting; with a reading every 100 ms, half of them were lost.
    expect(recording.of('state').length).toBeGreaterThan(0.8 * 4 * 30_000)
  })

  test('a filter that denies perf_event_open costs the states alone, and the log says why', async () => {
    const { of, issues } = (await record(['decode', 0, 3], { before: [...AS_USER, ...denied(['perf_event_open'])] }))
      .recording
    expect(of('input')[0]!.attributes['states']).toMatch(/perf_event_open is not allowed here/)
    expect([of('state').length, of('token').length, issues]).toEqual([0, 3, []])
  })

  perfTest('few file descriptors are no obstacle (needs prlimit, perf_event_open)', async () => {
    const { of } = (await record(['decode', 0, 3], { before: ['prlimit', '--nofile=12', ...AS_USER] })).recording
    expect([of('state').length > 0, of('token').length]).toEqual([true, 3])
  })

  inParts(settable).each(someOf([3, 4], 2))(
    'perf_event_paranoid %i: with states or without, and the log says which',
    async (level) => {
      const { of, issues } = (await withSetting(PARANOID, level, () => record(['decode', 0, 3]))).recording
      // Debian's and Android's kernels deny from 3 on, others do not know more than 2.
      const isTold = of('state').length > 0
      expect(of('input')[0]!.attributes['states']).toMatch(isTold ? /^by perf_event_open/ : /perf_event_paranoid/)
      expect([of('token').length, issues]).toEqual([3, []])
    },
  )

  inParts(settable).each(someOf([0, 4], 2))(
    'perf_event_mlock_kb %i: with fewer pages or without, and the log says which',
    async (kb) => {
      const limited = ['prlimit', '--memlock=0', ...AS_USER]
      const { of, issues } = (await withSetting(MLOCK, kb, () => record(['decode', 0, 3], { before: limited })))
        .recording
      const isTold = of('state').length > 0
      expect(of('input')[0]!.attributes['states']).toMatch(isTold ? /^by perf_event_open/ : /perf_event_mlock_kb/)
      expect([of('token').length, issues]).toEqual([3, []])
    },
  )
})
