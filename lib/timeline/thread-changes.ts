import type { ThreadState } from '../model/events.ts'
import type { States } from './states.ts'

/**
 * Changes that are held: a trace.dat tells of one CPU after the other, so that what a thread did on several is in order only at
 * the end. 24 MB; with fewer changes, any order will do, with more, they may be late by half as many.
 */
const HELD_MAX = 500_000

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
}

/** Puts the changes of threads in the order of their times, and hands them to whoever draws these threads. */
export class ThreadChanges {
  private columns = newColumns()
  private drawnNs = -Infinity
  private late = 0

  /** `lateMax` changes may come before others were drawn that are later. */
  constructor(
    private readonly lanes: readonly States[],
    private readonly heldMax = HELD_MAX,
  ) {}

  add({ atNs, tid, state, cpu, by, wait }: Change): void {
    if (atNs < this.drawnNs) {
      this.late++
      return
    }
    const { columns } = this
    columns.atNs.push(atNs)
    columns.tid.push(tid)
    columns.state.push(KINDS.indexOf(state))
    columns.cpu.push(cpu)
    columns.by.push(by)
    columns.wait.push(wait)
    if (columns.atNs.length >= this.heldMax) this.draw(this.heldMax >>> 1)
  }

  /** Draws all. Returns how many came too late to be drawn. */
  finish(): number {
    this.draw(this.columns.atNs.length)
    return this.late
  }

  /** Draws the first ones, and keeps the others. */
  private draw(count: number): void {
    const { atNs, tid, state, cpu, by, wait } = this.columns
    const order = Uint32Array.from(atNs.keys()).sort((a, b) => atNs[a]! - atNs[b]! || a - b)
    const changeAt = (i: number): Change => ({
      atNs: atNs[i]!,
      tid: tid[i]!,
      state: KINDS[state[i]!]!,
      cpu: cpu[i]!,
      by: by[i]!,
      wait: wait[i]!,
    })
    for (const i of order.subarray(0, count)) {
      const change = changeAt(i)
      for (const lane of this.lanes) lane.switched(change)
      this.drawnNs = change.atNs
    }
    this.columns = newColumns()
    for (const i of order.subarray(count)) this.add(changeAt(i))
  }
}

const newColumns = () => ({
  atNs: [] as number[],
  tid: [] as number[],
  state: [] as number[],
  cpu: [] as number[],
  by: [] as number[],
  wait: [] as number[],
})
