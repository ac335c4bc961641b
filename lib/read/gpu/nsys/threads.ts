/** A thread of a process, as nsys numbers them: `globalTid` is (hardware, machine, pid, tid) in 64 bits. */
export interface Thread {
  readonly pid: number
  readonly tid: number
  /** Number of the process, from 0. */
  readonly owner: number
}

/** Gives the threads and processes of a report small numbers. */
export class Threads {
  readonly list: Thread[] = []
  private readonly ids = new Map<number, number>()
  private readonly processes = new Map<number, number>()
  private readonly machines = new Map<number, number>()
  private lastHigh = -1
  private lastLow = -1
  private last = 0

  /** The number of a thread, from 0, by the two halves of its `globalTid`. */
  of(high: number, low: number): number {
    if (high === this.lastHigh && low === this.lastLow) return this.last
    this.lastHigh = high
    this.lastLow = low
    const owner = this.processOf(high, low)
    const tid = low & 0xffffff
    this.last = numberOf(this.ids, owner * 0x1000000 + tid)
    this.list[this.last] ??= { pid: pidOf(high, low), tid, owner }
    return this.last
  }

  /** The number of a process, from 0, by the two halves of its `globalPid` or of a thread's `globalTid`. */
  processOf(high: number, low: number): number {
    const machine = numberOf(this.machines, high >>> 16)
    return numberOf(this.processes, machine * 0x1000000 + pidOf(high, low))
  }
}

/** Bits 24 to 47 of a global id. */
export function pidOf(high: number, low: number): number {
  return ((high & 0xffff) << 8) | (low >>> 24)
}

function numberOf(numbers: Map<number, number>, key: number): number {
  const known = numbers.get(key)
  if (known !== undefined) return known
  numbers.set(key, numbers.size)
  return numbers.size - 1
}
