import type { RequestPart, RequestPartKind } from '../request-events.ts'

/** A part that is added; fields that are left out are not known, or 0. */
export type NewPart = Pick<RequestPart, 'what' | 'startNs' | 'endNs'> & Partial<RequestPart>

type Growing = { -readonly [Key in keyof RequestPart]: RequestPart[Key] }

/** A literal: spread objects take three times the memory. */
function partOf(part: NewPart, startNs = part.startNs): Growing {
  const { what, endNs, call = -1, tokens = -1, accepted = -1, othersTokens = 0, others = 0 } = part
  return { what, startNs, endNs, call, tokens, accepted, othersTokens, others }
}

/**
 * The parts of one request, in the order of time, without gaps or overlaps: what is between two of them is a part of its own.
 * Times in ns.
 */
export class Parts {
  private readonly list: Growing[] = []

  constructor(
    private startNs: number,
    private endNs = startNs,
  ) {}

  /** The last part, which may be changed. */
  get last(): Growing | undefined {
    return this.list.at(-1)
  }

  /**
   * Adds a part; `gap`: what the time before it is, from the end of the last one. The time that a part before covers is left out.
   * Parts of one kind that are not calls become one, together with what is between them.
   */
  add(part: NewPart, gap: RequestPartKind): void {
    const { last } = this
    const startNs = Math.max(part.startNs, this.endNs)
    if (part.endNs <= startNs) return
    if (last && last.what === part.what && last.call < 0 && (part.call ?? -1) < 0) {
      last.othersTokens += part.othersTokens ?? 0
      last.others = Math.max(last.others, part.others ?? 0)
      this.extend(part.endNs)
      return
    }
    this.fill(startNs, gap)
    this.list.push(partOf(part, startNs))
    this.endNs = part.endNs
  }

  /** What the time from the end of the last part to a later time is. */
  fill(toNs: number, what: RequestPartKind): void {
    if (toNs <= this.endNs) return
    if (this.last?.what === what && this.last.call < 0) return this.extend(toNs)
    this.list.push(partOf({ what, startNs: this.endNs, endNs: toNs }))
    this.endNs = toNs
  }

  /** The last part ends later. */
  extend(toNs: number): void {
    if (!this.last || toNs <= this.endNs) return
    this.last.endNs = toNs
    this.endNs = toNs
  }

  /** The request began earlier than known before: it was queued. */
  queuedFrom(startNs: number): void {
    if (startNs >= this.startNs) return
    this.list.unshift(partOf({ what: 'queued', startNs, endNs: this.startNs }))
    this.startNs = startNs
  }

  /** The parts up to the end of the request; `rest`: what the time after the last one is. */
  finish(endNs: number, rest: RequestPartKind): RequestPart[] {
    const { list } = this
    while (list.length > 0 && list.at(-1)!.startNs >= endNs) list.pop()
    this.endNs = Math.min(list.at(-1)?.endNs ?? this.startNs, endNs)
    if (list.length > 0) list.at(-1)!.endNs = this.endNs
    this.fill(endNs, rest)
    return list.slice() // a list that grew has space for more
  }
}
