/** An interval, in ns. */
export interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** The time of a call without intervals in which its thread had no CPU: what is computed in it is measured by this time. */
export class RunningTime {
  /** Time of the first so many intervals, by their number. */
  private readonly lostNs: number[] = [0]

  /** `times`: starts and ends of the intervals, in order. */
  constructor(private readonly times: readonly number[]) {
    for (let i = 0; i < times.length; i += 2) this.lostNs.push(this.lostNs.at(-1)! + times[i + 1]! - times[i]!)
  }

  /** Time of all intervals. */
  get allLostNs(): number {
    return this.lostNs.at(-1)!
  }

  at(ns: number): number {
    const { times, lostNs } = this
    if (times.length === 0) return ns
    let [first, end] = [0, times.length / 2]
    while (first < end) {
      const middle = (first + end) >> 1
      if (times[2 * middle]! < ns) first = middle + 1
      else end = middle
    }
    // The last interval that begins before it may end after it.
    const after = first === 0 ? 0 : Math.max(times[2 * first - 1]! - ns, 0)
    return ns - lostNs[first]! + after
  }

  of<T extends Span>(span: T): T {
    if (this.times.length === 0) return span
    return { ...span, startNs: this.at(span.startNs), endNs: this.at(span.endNs) }
  }
}
