import { firstIndex } from '../../bytes/search.ts'
import type { Range } from './estimate.ts'

/** Times of lines are cut to 1 µs, as is the start from which they count. */
const CUT_NS = 2000
/** Pauses of 2 to this power ns, and longer ones, between calls that are taken as one. */
const LEVEL_MAX = 62

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** Finds offsets of a log's times at which no call of another input is during times of the log. */
export class CallGaps {
  /** What the search has cost so far. */
  steps = 0
  /** Calls with short pauses as one, by the power of 2 of these. */
  private readonly merged = new Map<number, readonly Span[]>()

  /** The calls of one thread, in order. */
  constructor(private readonly calls: readonly Span[]) {}

  /** The parts of ranges, within `part`, at which no call is during one of the times of the log, which are in order. */
  withoutAll(ranges: readonly Range[], part: Range, times: readonly Range[]): Range[] {
    const [startNs, endNs] = [this.calls[0]!.startNs, this.calls.at(-1)!.endNs]
    let left = [...ranges]
    for (let i = firstIndex(0, times.length, (i) => times[i]!.to + part.to > startNs); i < times.length; i++) {
      const { from, to } = times[i]!
      if (from + part.from >= endNs || left.length === 0) return left
      left = this.without(left, from, to)
    }
    return left
  }

  /** The parts of ranges of the offset at which no call is between `fromNs` and `toNs` of the log. */
  private without(ranges: readonly Range[], fromNs: number, toNs: number): Range[] {
    const calls = this.callsFor(toNs - fromNs)
    const left: Range[] = []
    for (const { from, to } of ranges) {
      let start = from
      for (let i = callsUntil(calls, from + fromNs); i < calls.length; i++) {
        this.steps++
        const { startNs, endNs } = calls[i]!
        const [refusedFrom, refusedTo] = [startNs - toNs + CUT_NS, endNs - fromNs - CUT_NS]
        if (refusedFrom >= to || start >= to) break
        if (refusedFrom >= refusedTo) continue
        if (refusedFrom > start) left.push({ from: start, to: refusedFrom })
        start = Math.max(start, refusedTo)
      }
      this.steps++
      if (start < to) left.push({ from: start, to })
    }
    return left
  }

  /** The calls; pauses that are shorter than `ns` refuse the same offsets as calls: many are taken for parts of calls. */
  private callsFor(ns: number): readonly Span[] {
    const pauseNs = ns - 2 * CUT_NS
    if (pauseNs < 1) return this.calls
    const level = Math.min(Math.floor(Math.log2(pauseNs)), LEVEL_MAX)
    const known = this.merged.get(level)
    if (known) return known
    const merged: { startNs: number; endNs: number }[] = []
    for (const { startNs, endNs } of this.calls) {
      const last = merged.at(-1)
      if (last && startNs - last.endNs <= 2 ** level) last.endNs = Math.max(last.endNs, endNs)
      else merged.push({ startNs, endNs })
    }
    this.merged.set(level, merged)
    return merged
  }
}

/** The number of calls that end before a time. */
export const callsUntil = (calls: readonly Span[], atNs: number) =>
  firstIndex(0, calls.length, (i) => calls[i]!.endNs > atNs)
