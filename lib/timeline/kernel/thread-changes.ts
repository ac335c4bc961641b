import type { ThreadState } from '../../model/events.ts'
import type { Takers } from './takers.ts'

/**
 * Changes that are held: a trace.dat tells of one CPU after the other, so that what a thread did on several is in order only at
 * the end. 28 MB; with fewer changes, any order will do, with more, they may be late by half as many.
 */
const HELD_MAX = 500_000

/**
 * An input that tells of one CPU after the other goes from one to the next as often as there are CPUs (at most 8192); one that does so more
 * often is in order of time, but for some events.
 */
const TURNS_MIN = 1 << 14
/** Changes that are held in any case. */
const HELD_MIN = 4096

const KINDS: readonly ThreadState[] = ['running', 'runnable', 'woken', 'blocked', 'ended']

/** What the kernel's switches tell of one thread. */
export interface Change {
  readonly atNs: number
  readonly tid: number
  readonly state: ThreadState
  /** Where it runs, or ran last; -1 = not known. */
  readonly cpu: number
  /** Of the thread that took its CPU, or woke it; 0 = none. */
  readonly by: number
  /** Of the letter of the state that it waits in; 0 = none. */
  readonly wait: number
  /** All that had its CPU in turn, where a log tells of every switch there: `by` is the first of them. */
  readonly takers: Takers | undefined
}

/** Draws threads. */
export interface ChangeTaker {
  /** In order for each thread. */
  switched(change: Change): void
}

/** Puts the changes of threads in the order of their times, and hands them to whoever draws these threads. */
export class ThreadChanges {
  private columns = newColumns()
  private drawnNs = -Infinity
  private late = 0
  private cpu = -1
  private turns = 0

  /** `lateMax` changes may come before others were drawn that are later. */
  constructor(
    private readonly lanes: readonly ChangeTaker[],
    /** Is called when all is drawn that comes before a time. */
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

  /** Draws the first half of what is held, where hardly anything that comes will be earlier. */
  makeRoom(): void {
    const held = this.columns.atNs.length
    if (this.turns >= TURNS_MIN && held >= HELD_MIN) this.draw(held >>> 1)
  }

  /** Draws all. Returns how many came too late to be drawn. */
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

  /** Draws the first ones, and keeps the others. */
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
