import { NumberList } from '../../bytes/number-list.ts'

/** Durations from here on (4.3 s) are in a separate map. */
const LONG = 0xffffffff

/** Durations in ns, in 4 bytes each. */
export class Durations {
  private readonly short = new NumberList(Uint32Array)
  private readonly long = new Map<number, number>()

  push(ns: number): void {
    if (ns >= LONG) this.long.set(this.short.length, ns)
    this.short.push(Math.min(ns, LONG))
  }

  /** Changes one that was pushed. */
  set(index: number, ns: number): void {
    if (ns >= LONG) this.long.set(index, ns)
    this.short.set(index, Math.min(ns, LONG))
  }

  at(index: number): number {
    const ns = this.short.at(index)
    return ns === LONG ? this.long.get(index)! : ns
  }
}
