import { growColumns } from '../../bytes/resized.ts'
import { firstIndex } from '../../bytes/search.ts'
import type { ThreadOfCpu } from '../../model/kernel-events.ts'

/** Index of the last of `count` ascending times that is not after this one; -1: none. */
const lastAt = (times: Float64Array, count: number, atNs: number) => firstIndex(0, count, (i) => times[i]! > atNs) - 1

/** States of a thread, as {@link ThreadStates} has them. The thread waits for a CPU in `Preempted` and `Woken`. */
export const State = { Unknown: 0, Running: 1, Preempted: 2, Woken: 3, Blocked: 4 } as const

const STATES = ['atNs', 'state', 'cpu', 'byTid', 'byComm'] as const
const TURNS = ['atNs', 'tid', 'comm'] as const

/** The states of one thread, each until the next one, in order of time once they are settled. */
export class ThreadStates {
  count = 0
  atNs = new Float64Array(8)
  state = new Uint8Array(8)
  /** Where it runs, ran last or is to run; -1: not known. */
  cpu = new Int32Array(8)
  /** The thread that took its CPU first, and its name; -1: not known. */
  byTid = new Int32Array(8)
  byComm = new Int32Array(8)
  /** The first so many are settled. */
  private settled = 0
  private isSorted = true

  add(atNs: number, state: number, cpu: number, by: ThreadOfCpu | undefined): void {
    const at = this.count++
    if (at === this.atNs.length) growColumns(this, STATES, 2 * at)
    this.atNs[at] = atNs
    this.state[at] = state
    this.cpu[at] = cpu
    this.byTid[at] = by ? by.tid : -1
    this.byComm[at] = by ? by.comm : 0
    if (at > 0 && atNs < this.atNs[at - 1]!) this.isSorted = false
  }

  /**
   * Sorts the states, and returns how many it drops: a thread that can run anyway does not change its state when it is woken, nor where a second
   * recording of it repeats what the first one shows.
   */
  settle(): number {
    const { count, state } = this
    if (!this.isSorted) this.sort()
    let last = Math.max(this.settled, 1) - 1
    for (let i = last + 1; i < count; i++) {
      const isWoken = state[i] === State.Woken && state[last] !== State.Unknown && state[last] !== State.Blocked
      if (isWoken || this.repeats(i, last)) continue
      last++
      if (i > last) for (const key of STATES) this[key][last] = this[key][i]!
    }
    this.count = this.settled = Math.min(count, last + 1)
    return count - this.count
  }

  /** Is it the same state as an earlier one? What only it contains is added to that one. */
  private repeats(i: number, before: number): boolean {
    const { state, cpu, byTid, byComm } = this
    const areEqual = (values: Int32Array) => values[i]! < 0 || values[before]! < 0 || values[i] === values[before]
    if (state[i] !== state[before] || !areEqual(cpu) || !areEqual(byTid)) return false
    cpu[before] = Math.max(cpu[before]!, cpu[i]!)
    if (byTid[before]! < 0) byComm[before] = byComm[i]!
    byTid[before] = Math.max(byTid[before]!, byTid[i]!)
    return true
  }

  private sort(): void {
    const { count, atNs } = this
    const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => atNs[a]! - atNs[b]! || a - b)
    for (const column of STATES.map((key) => this[key])) {
      const copy = column.slice(0, count)
      for (let i = 0; i < count; i++) column[i] = copy[order[i]!]!
    }
    this.isSorted = true
    this.settled = 0
  }

  /** Did the thread end before this time? */
  isOver(atNs: number): boolean {
    const last = this.count - 1
    return last >= 0 && this.state[last] === State.Unknown && this.atNs[last]! < atNs
  }

  /** Index of the state at this time; -1: not known. */
  at(atNs: number): number {
    return lastAt(this.atNs, this.count, atNs)
  }

  /** Drops the states that end before this time, if they are half of all; returns the number of all that it dropped. */
  trim(untilNs: number): number {
    const dropped = this.settle()
    const first = this.at(untilNs)
    if (first <= 0 || 2 * first < this.count) return dropped
    for (const key of STATES) this[key].copyWithin(0, first, this.count)
    this.count -= first
    this.settled = this.count
    return dropped + first
  }
}

/** The threads that have a CPU, each until the next one, in order of time. */
export class CpuTurns {
  count = 0
  atNs = new Float64Array(64)
  tid = new Int32Array(64)
  comm = new Int32Array(64)

  add(atNs: number, tid: number, comm: number): void {
    const at = this.count++
    if (at === this.atNs.length) growColumns(this, TURNS, 2 * at)
    this.atNs[at] = atNs
    this.tid[at] = tid
    this.comm[at] = comm
  }

  /** Index of the turn at this time; -1: not known. */
  at(atNs: number): number {
    return lastAt(this.atNs, this.count, atNs)
  }

  /** Drops the turns that end before this time, if they are half of all; returns their number. */
  trim(untilNs: number): number {
    const first = this.at(untilNs)
    if (first <= 0 || 2 * first < this.count) return 0
    for (const key of TURNS) this[key].copyWithin(0, first, this.count)
    this.count -= first
    return first
  }
}
