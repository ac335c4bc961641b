import type { ThreadState } from '../model/events.ts'
import type { Takers } from './takers.ts'

/**
 * Changes that are held: a trace.dat contains one CPU after the other, so the changes of a thread on several CPUs are complete
 * only at the end. 28 MB. Fewer changes may come in any order; with more, a change may be late by half of this number.
 */
const HELD_MAX = 500_000

/**
 * An input that contains one CPU after the other changes the CPU at most 8192 times, the maximum number of CPUs. One with more
 * changes is in order of time, except for some events.
 */
const TURNS_MIN = 1 << 14
/** Changes that are always held. */
const HELD_MIN = 4096

const KINDS: readonly ThreadState[] = ['running', 'runnable', 'woken', 'blocked', 'ended']

/** A state change of one thread, from the kernel's switches. */
export interface Change {
  readonly atNs: number
  readonly tid: number
  readonly state: ThreadState
  /** The CPU where it runs, or ran last; -1 = not known. */
  readonly cpu: number
  /** Name id of the thread that took its CPU, or woke it; 0 = none. */
  readonly by: number
  /** Name id of the letter of its wait state; 0 = none. */
  readonly wait: number
  /** The threads that had its CPU, if every switch of it is recorded; `by` is the first of them. */
  readonly takers: Takers | undefined
}

/** Draws threads. */
export interface ChangeTaker {
  /** Changes come in order for each thread. */
  switched(change: Change): void
}

/** Sorts the changes of threads by time, and passes them to the lanes. */
export class ThreadChanges {
  private columns = newColumns()
  private drawnNs = -Infinity
  private late = 0
  private cpu = -1
  private turns = 0

  constructor(
    private readonly lanes: readonly ChangeTaker[],
    /** Called when all changes before a time are drawn. */
    private readonly drawn: (untilNs: number) => void = () => {},
    private readonly heldMax = HELD_MAX,
  ) {}

  add(change: Change): void {
    const { atNs, state, cpu } = change
    if (atNs < this.drawnNs) {
      this.late++
      return
    }
    if (state === 'running' && cpu !== this.cpu) {
      this.cpu = cpu
      this.turns++
    }
    this.hold(change)
    if (this.columns.atNs.length >= this.heldMax) this.draw(this.heldMax >>> 1)
  }

  /** Draws the first half of the held changes, if the input is almost in order of time. */
  makeRoom(): void {
    const held = this.columns.atNs.length
    if (this.turns >= TURNS_MIN && held >= HELD_MIN) this.draw(held >>> 1)
  }

  /** Draws all changes. Returns the number of those that came too late to be drawn. */
  finish(): number {
    this.draw(this.columns.atNs.length)
    return this.late
  }

  private hold({ atNs, tid, state, cpu, by, wait, takers }: Change): void {
    const { columns } = this
    columns.atNs.push(atNs)
    columns.tid.push(tid)
    columns.state.push(KINDS.indexOf(state))
    columns.cpu.push(cpu)
    columns.by.push(by)
    columns.wait.push(wait)
    columns.takers.push(takers)
  }

  /** Draws the first `count` changes, and holds the others. */
  private draw(count: number): void {
    const { atNs, tid, state, cpu, by, wait, takers } = this.columns
    const order = Uint32Array.from(atNs.keys()).sort((a, b) => atNs[a]! - atNs[b]! || a - b)
    const changeAt = (i: number): Change => ({
      atNs: atNs[i]!,
      tid: tid[i]!,
      state: KINDS[state[i]!]!,
      cpu: cpu[i]!,
      by: by[i]!,
      wait: wait[i]!,
      takers: takers[i],
    })
    for (const i of order.subarray(0, count)) {
      const change = changeAt(i)
      for (const lane of this.lanes) lane.switched(change)
      this.drawnNs = change.atNs
    }
    this.columns = newColumns()
    this.drawn(this.drawnNs)
    for (const i of order.subarray(count)) this.hold(changeAt(i))
  }
}

const newColumns = () => ({
  atNs: [] as number[],
  tid: [] as number[],
  state: [] as number[],
  cpu: [] as number[],
  by: [] as number[],
  wait: [] as number[],
  takers: [] as (Takers | undefined)[],
})
