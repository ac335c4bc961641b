import { PHASES, type Phase } from '../../model/call-events.ts'

/** Calls that are merged where they are too many: gaps between them count to neither. */
const SPANS_MAX = 1 << 18
/** The gap up to which calls of a phase are merged first. 0.1 ms. */
const FIRST_GAP_NS = 1e5

/** The time of calls, or of several with short gaps between them. */
export interface Span {
  readonly phase: number
  startNs: number
  endNs: number
  /** Part of the time in calls. */
  busyNs: number
}

/** When the calls of a run were, by phase: a list that does not grow with the length of the run where calls are dense. */
export class CallSpans {
  readonly calls = PHASES.map(() => 0)
  readonly tokens = PHASES.map(() => 0)
  readonly timeNs = PHASES.map(() => 0)
  private spans: Span[] = []
  /** They are merged where there are more. */
  private max = SPANS_MAX

  add(phase: Phase, tokens: number, startNs: number, endNs: number): void {
    const number = PHASES.indexOf(phase)
    if (number < 0 || endNs <= startNs) return
    this.calls[number]!++
    this.tokens[number]! += Math.max(tokens, 0)
    this.timeNs[number]! += endNs - startNs
    this.spans.push({ phase: number, startNs, endNs, busyNs: endNs - startNs })
    if (this.spans.length > this.max) this.merge()
  }

  /** All spans, by their starts. */
  sorted(): readonly Span[] {
    return this.spans.sort((a, b) => a.startNs - b.startNs)
  }

  /** Merges calls of the same phase with short gaps between them, up to a gap with which half of the spans remain, or 0.1 s. */
  private merge(): void {
    for (let gapNs = FIRST_GAP_NS; this.spans.length > this.max / 2 && gapNs <= 1e8; gapNs *= 2) {
      const merged: Span[] = []
      for (const span of this.sorted()) {
        const last = merged.at(-1)
        if (last && last.phase === span.phase && span.startNs - last.endNs <= gapNs) {
          last.endNs = Math.max(last.endNs, span.endNs)
          last.busyNs += span.busyNs
        } else merged.push({ ...span })
      }
      this.spans = merged
    }
    // Where phases alternate, little can be merged: it is tried again when there are twice as many.
    this.max = Math.max(SPANS_MAX, 2 * this.spans.length)
  }
}
