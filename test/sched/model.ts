import fc from 'fast-check'
import type { Names, TraceEvent } from '../../lib/index.ts'
import { switchOf, wakingOf } from './schedule.ts'

/** Random schedules that could happen, and what follows from them: worked out here once more, in the simplest way. */

/** Something happens on a CPU: a thread takes it, or is woken from it. */
export type Act =
  | {
      readonly what: 'switch'
      readonly cpu: number
      readonly at: number
      readonly from: number
      readonly left: number
      readonly to: number
    }
  | { readonly what: 'waking'; readonly cpu: number; readonly at: number; readonly by: number; readonly tid: number }

const STATES = [0, 0, 1, 1, 2, 0x100]

export interface Size {
  readonly cpus: number
  readonly tids: number
  readonly length: number
  /** Acts that are tried for at least; some of them cannot happen. */
  readonly shortest?: number
}

/** Acts in order of time, no two at once; no thread is on two CPUs. */
export function actsOf({ cpus, tids, length, shortest = 1 }: Size): fc.Arbitrary<Act[]> {
  const nat = (max: number) => fc.nat({ max })
  const step = fc.tuple(
    nat(2),
    nat(cpus - 1),
    nat(tids),
    nat(STATES.length - 1),
    fc.integer({ min: 1, max: 3_000_000 }),
  )
  return fc.array(step, { minLength: shortest, maxLength: length }).map((steps) => {
    const running = new Map<number, number>()
    let at = 0
    return steps.flatMap(([kind, cpu, pick, state, gap]): Act[] => {
      at += gap
      const from = running.get(cpu) ?? (isFree(running, 900 + cpu) ? 900 + cpu : 0) // a thread from before
      const tid = pick === 0 ? 0 : 100 + pick
      if (kind === 0) return tid === 0 ? [] : [{ what: 'waking', cpu, at, by: from, tid }]
      if (tid === from || (tid !== 0 && !isFree(running, tid))) return []
      running.set(cpu, tid)
      return [{ what: 'switch', cpu, at, from, left: from === 0 ? 0 : STATES[state]!, to: tid }]
    })
  })
}

const isFree = (running: ReadonlyMap<number, number>, tid: number) => ![...running.values()].includes(tid)

export function eventsOf(names: Names, acts: readonly Act[], cpuAfterCpu = false): TraceEvent[] {
  const ordered = cpuAfterCpu ? [...acts].sort((a, b) => a.cpu - b.cpu || a.at - b.at) : acts
  return ordered.map((act) =>
    act.what === 'switch' ? switchOf(names, act) : wakingOf(names, act.cpu, act.at, act.by, act.tid),
  )
}

const LETTERS = new Map([
  [0, 'R'],
  [1, 'S'],
  [2, 'D'],
  [0x100, 'R+'],
])

type Row = (number | string | null)[]

/** Start, length, CPU, end state, thread. */
export function expectedSlices(acts: readonly Act[]): Row[] {
  const switches = acts.filter((act) => act.what === 'switch').sort((a, b) => a.cpu - b.cpu || a.at - b.at)
  return switches.map((act, i) => {
    const next = switches[i + 1]?.cpu === act.cpu ? switches[i + 1] : undefined
    return [act.at, next ? next.at - act.at : -1, act.cpu, next ? LETTERS.get(next.left)! : null, act.to]
  })
}

/** Start, length, state, CPU, thread, waker. As trace_processor has it, what is R stays so when it is woken, R+ does not. */
export function expectedStates(acts: readonly Act[]): Row[] {
  const open = new Map<number, Row>()
  const all: Row[] = []
  const change = (tid: number, at: number, state: string, cpu: number | null, waker: number | null) => {
    if (tid === 0) return
    const before = open.get(tid)
    if (before) before[1] = at - (before[0] as number)
    const row: Row = [at, -1, state, cpu, tid, waker]
    open.set(tid, row)
    all.push(row)
  }
  for (const act of acts) {
    if (act.what === 'switch') {
      change(act.from, act.at, LETTERS.get(act.left)!, null, null)
      change(act.to, act.at, 'Running', act.cpu, null)
    } else if (!/^(Running|R)$/.test(`${open.get(act.tid)?.[2]}`)) change(act.tid, act.at, 'R', null, act.by)
  }
  return all.sort((a, b) => (a[4] as number) - (b[4] as number) || (a[0] as number) - (b[0] as number))
}
