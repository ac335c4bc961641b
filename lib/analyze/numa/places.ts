import { firstIndex } from '../../bytes/search.ts'
import { NO_PAGE, type PagesEvent } from '../../model/page-events.ts'

/** Pages on one node that follow each other; of a sample of pages, each counts for those up to the next one. */
interface Span {
  readonly from: number
  readonly end: number
  /** {@link NO_PAGE}, or another number below 0: not known. */
  readonly node: number
}

/** The nodes of addresses, by one look at each buffer. */
export class PagePlaces {
  private readonly spans: Span[] = []
  private isSorted = true

  /** Later events replace earlier ones of the same addresses: a buffer may be where another one was. */
  add({ address, pageBytes, stride, runs }: PagesEvent): void {
    let from = address
    for (let i = 0; i < runs.length; i += 2) {
      const end = from + runs[i]! * pageBytes * stride
      this.spans.push({ from, end, node: runs[i + 1]! })
      from = end
    }
    this.isSorted = false
  }

  /** Calls `take` with the parts of these addresses, in order: the node is {@link NO_PAGE} where nothing is known. */
  in(from: number, end: number, take: (from: number, end: number, node: number) => void): void {
    this.sort()
    const { spans } = this
    let at = from
    for (let i = firstIndex(0, spans.length, (i) => spans[i]!.end > from); i < spans.length; i++) {
      const span = spans[i]!
      if (span.from >= end) break
      if (span.from > at) take(at, span.from, NO_PAGE)
      at = Math.min(end, span.end)
      take(Math.max(from, span.from), at, span.node)
    }
    if (at < end) take(at, end, NO_PAGE)
  }

  private sort(): void {
    if (this.isSorted) return
    this.isSorted = true
    const later = this.spans
      .map((span, order) => ({ span, order }))
      .sort((a, b) => a.span.from - b.span.from || b.order - a.order)
    this.spans.length = 0
    for (const { span } of later) {
      const before = this.spans.at(-1)
      if (!before || span.from >= before.end) this.spans.push(span)
      else if (span.end > before.end) this.spans.push({ ...span, from: before.end })
    }
  }
}

/** Bytes by node. */
export class NodeBytes {
  readonly known: Float64Array
  unknown = 0

  constructor(nodes: number) {
    this.known = new Float64Array(nodes)
  }

  add(node: number, bytes: number): void {
    if (node >= 0 && node < this.known.length) this.known[node]! += bytes
    else this.unknown += bytes
  }

  addAll(other: NodeBytes, factor: number): void {
    for (const [node, bytes] of other.known.entries()) this.add(node, bytes * factor)
    this.unknown += other.unknown * factor
  }

  get sum(): number {
    return this.known.reduce((sum, bytes) => sum + bytes, this.unknown)
  }
}
