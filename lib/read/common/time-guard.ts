import { isTime, STAMP_END } from '../../model/limits.ts'

/** A record further than this from its neighbours is damaged: one day, in ns. */
const JUMP_NS_MAX = 86_400e9

/** Detects damaged timestamps, so that one flipped bit does not make a trace centuries long. */
export class TimeGuard {
  /** The last plausible time. */
  lastNs = 0
  private doubtedNs: number | undefined

  /** Why `atNs` is not plausible, or undefined. Two times in a row that are near each other are plausible. */
  doubt(atNs: number): string | undefined {
    const near = (other: number) => Math.abs(atNs - other) <= JUMP_NS_MAX
    if (isTime(atNs) && (near(this.lastNs) || (this.doubtedNs !== undefined && near(this.doubtedNs)))) {
      this.lastNs = atNs
      this.doubtedNs = undefined
      return undefined
    }
    this.doubtedNs = atNs
    return `expected a time within a day of its neighbours, found ${atNs / 1e9} s from the log's start`
  }
}

/** The origin of a log: the first of its timestamps with another one near it. Absolute nanoseconds. */
export function pickOrigin(seen: readonly bigint[]): bigint {
  const stamps = seen.filter((stamp) => stamp < STAMP_END)
  const near = (a: bigint, b: bigint) => a > 0n && b > 0n && Math.abs(Number(a - b)) <= JUMP_NS_MAX
  const agreed = stamps.find((stamp, i) => stamps.some((other, j) => i !== j && near(stamp, other)))
  return agreed ?? stamps[0] ?? 0n
}
