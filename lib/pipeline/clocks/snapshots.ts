import type { Clock, ClocksEvent } from '../../model/events.ts'

/** The offset from one clock to another, from one or two readings. */
export interface Offsets {
  readonly atNs: bigint
  readonly offsetNs: bigint
  /** Growth of the offset per ns; 0 with one reading. */
  readonly drift: number
  /** Number of readings used. */
  readonly readings: 1 | 2
}

interface Pair {
  readonly first: Reading
  last: Reading
}

interface Reading {
  readonly atNs: bigint
  readonly offsetNs: bigint
}

/** Minimum distance of two readings that show the drift. One second. */
const SPAN_NS_MIN = 1_000_000_000n
/** With more than 0.1 % of drift, a clock was set between the readings: clocks of one machine drift by some 0.005 %. */
const DRIFT_MAX = 1e-3

/** Readings of several clocks at one instant, and the offsets between the clocks. */
export class Snapshots {
  private readonly pairs = new Map<string, Pair>()
  private readonly clocks = new Set<Clock>()

  add(readings: ClocksEvent['readings']): void {
    for (const from of readings) {
      this.clocks.add(from.clock)
      for (const to of readings) if (from.clock !== to.clock) this.addPair(from, to)
    }
  }

  /** The offset from one clock to another, directly or over a third one; undefined if no input has recorded it. */
  between(from: Clock, to: Clock): Offsets | undefined {
    const direct = this.direct(from, to)
    if (direct) return direct
    for (const over of this.clocks) {
      const [first, second] = [this.direct(from, over), this.direct(over, to)]
      if (first && second) return chain(first, second)
    }
    return undefined
  }

  private addPair(from: ClocksEvent['readings'][number], to: ClocksEvent['readings'][number]): void {
    const key = `${from.clock} ${to.clock}`
    const reading = { atNs: from.ns, offsetNs: to.ns - from.ns }
    const pair = this.pairs.get(key)
    if (!pair) this.pairs.set(key, { first: reading, last: reading })
    else if (reading.atNs > pair.last.atNs) pair.last = reading
  }

  private direct(from: Clock, to: Clock): Offsets | undefined {
    const pair = this.pairs.get(`${from} ${to}`)
    if (!pair) return undefined
    const { first, last } = pair
    const spanNs = last.atNs - first.atNs
    const drift = spanNs < SPAN_NS_MIN ? 0 : Number(last.offsetNs - first.offsetNs) / Number(spanNs)
    if (spanNs < SPAN_NS_MIN || Math.abs(drift) > DRIFT_MAX) return { ...first, drift: 0, readings: 1 }
    return { ...first, drift, readings: 2 }
  }
}

function chain(first: Offsets, second: Offsets): Offsets {
  const thereNs = first.atNs + first.offsetNs
  const offsetNs = first.offsetNs + offsetAt(second, thereNs)
  return {
    atNs: first.atNs,
    offsetNs,
    drift: first.drift + second.drift * (1 + first.drift),
    readings: first.readings === 2 && second.readings === 2 ? 2 : 1,
  }
}

/** The offset at a time of the first clock. */
export function offsetAt({ atNs, offsetNs, drift }: Offsets, ns: bigint): bigint {
  return offsetNs + BigInt(Math.round(drift * Number(ns - atNs)))
}
