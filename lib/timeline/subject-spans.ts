import { DefaultMap } from '../model/default-map.ts'

/** SubjectSpans that are kept of one kind: more are one, from the first to the last. */
const SPANS_MAX = 64
/** Kinds that are kept: phases, and requests of a server. */
const KINDS_MAX = 1 << 14

/** A stretch of time, on the clock of the trace. */
export interface Span {
  readonly startNs: number
  readonly endNs: number
}

interface Kind {
  readonly spans: Span[]
  count: number
  startNs: number
  endNs: number
}

/** When each phase was, and each request: what findings are about. */
export class SubjectSpans {
  private readonly kinds = new DefaultMap<string, Kind>(() => ({
    spans: [],
    count: 0,
    startNs: Infinity,
    endNs: -Infinity,
  }))

  /** `kind`: a phase of the row Phase, or `request <id>`. */
  add(kind: string, startNs: number, endNs: number): void {
    if (this.kinds.size >= KINDS_MAX && !this.kinds.has(kind)) return
    const known = this.kinds.of(kind)
    known.count++
    known.startNs = Math.min(known.startNs, startNs)
    known.endNs = Math.max(known.endNs, endNs)
    if (known.count <= SPANS_MAX) known.spans.push({ startNs, endNs })
  }

  /** The spans of a kind, in order, or the one from the first to the last; none of a kind that is not known. */
  of(kind: string): readonly Span[] {
    const known = this.kinds.get(kind)
    if (!known) return []
    return known.count > SPANS_MAX ? [known] : known.spans
  }
}
