import { DefaultMap } from '../model/default-map.ts'

/** Spans that are kept of one phase: more are one, from the first to the last. */
const SPANS_MAX = 64
/** Requests whose times are kept; findings name the slowest, which may be a later one: it is over the whole run then. */
const REQUESTS_MAX = 1 << 14

/** A stretch of time, on the clock of the trace. */
export interface Span {
  readonly startNs: number
  readonly endNs: number
  /** Spans that this one covers, with what is between them. */
  readonly covers?: number | undefined
}

interface OfPhase {
  readonly spans: Span[]
  covers: number
  startNs: number
  endNs: number
}

/** When each phase was, and each request: what findings are about. */
export class SubjectSpans {
  private readonly phases = new DefaultMap<string, OfPhase>(() => ({
    spans: [],
    covers: 0,
    startNs: Infinity,
    endNs: -Infinity,
  }))
  private readonly requests = new Map<number, Span>()

  /** A span of the row Phase. */
  phase(what: string, startNs: number, endNs: number): void {
    const known = this.phases.of(what)
    known.covers++
    known.startNs = Math.min(known.startNs, startNs)
    known.endNs = Math.max(known.endNs, endNs)
    if (known.covers <= SPANS_MAX) known.spans.push({ startNs, endNs })
  }

  request(id: number, startNs: number, endNs: number): void {
    if (this.requests.size < REQUESTS_MAX) this.requests.set(id, { startNs, endNs })
  }

  /** The spans of a phase, in order, or the one from the first to the last; none of one that is not known. */
  ofPhase(what: string): readonly Span[] {
    const known = this.phases.get(what)
    if (!known) return []
    return known.covers > SPANS_MAX ? [known] : known.spans
  }

  ofRequest(id: number): readonly Span[] {
    const span = this.requests.get(id)
    return span ? [span] : []
  }
}
