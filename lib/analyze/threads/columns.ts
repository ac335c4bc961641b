import { resized } from '../../bytes/resized.ts'

/** Index of the last of `count` ascending times that is not after this one; -1: none. */
function lastAt(times: Float64Array, count: number, atNs: number): number {
  let [from, to] = [0, count]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (times[middle]! <= atNs) from = middle + 1
    else to = middle
  }
  return from - 1
}

/** States of a thread, as {@link ThreadStates} has them. The thread waits for a CPU in `Preempted` and `Woken`. */
export const State = { Unknown: 0, Running: 1, Preempted: 2, Woken: 3, Blocked: 4 } as const

/** The states of one thread, each until the next one, in order of time once they are settled. */
export class ThreadStates {
  count = 0
  atNs = new Float64Array(8)
  state = new Uint8Array(8)
  /** Where it runs, ran last or is to run; -1: not known. */
  cpu = new Int32Array(8)
  /** Name of the thread that took its CPU first; 0: not known. */
  by = new Int32Array(8)
  /** The first so many are settled. */
  private settled = 0
  private isSorted = true

  add(atNs: number, state: number, cpu: number, by: number): void {
    const at = this.count++
    if (at === this.atNs.length) {
      this.atNs = resized(this.atNs, 2 * at)
      this.state = resized(this.state, 2 * at)
      this.cpu = resized(this.cpu, 2 * at)
      this.by = resized(this.by, 2 * at)
    }
    this.atNs[at] = atNs
    this.state[at] = state
    this.cpu[at] = cpu
    this.by[at] = by
    if (at > 0 && atNs < this.atNs[at - 1]!) this.isSorted = false
  }

  /** Sorts the states. A thread that can run anyway does not change its state when it is woken. */
  settle(): void {
    const { count, state, cpu, by } = this
    if (!this.isSorted) this.sort()
    for (let i = Math.max(this.settled, 1); i < count; i++) {
      if (state[i] !== State.Woken) continue
      const before = state[i - 1]!
      if (before === State.Unknown || before === State.Blocked) continue
      state[i] = before
      cpu[i] = cpu[i - 1]!
      by[i] = by[i - 1]!
    }
    this.settled = count
  }

  private sort(): void {
    const { count, atNs } = this
    const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => atNs[a]! - atNs[b]! || a - b)
    for (const column of [this.atNs, this.state, this.cpu, this.by]) {
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

  /** Drops the states that end before this time, if they are half of all; returns their number. */
  trim(untilNs: number): number {
    this.settle()
    const first = this.at(untilNs)
    if (first <= 0 || 2 * first < this.count) return 0
    for (const column of [this.atNs, this.state, this.cpu, this.by]) column.copyWithin(0, first, this.count)
    this.count -= first
    this.settled = this.count
    return first
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
    if (at === this.atNs.length) {
      this.atNs = resized(this.atNs, 2 * at)
      this.tid = resized(this.tid, 2 * at)
      this.comm = resized(this.comm, 2 * at)
    }
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
    for (const column of [this.atNs, this.tid, this.comm]) column.copyWithin(0, first, this.count)
    this.count -= first
    return first
  }
}
