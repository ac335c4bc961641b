import { DefaultMap } from '../../model/default-map.ts'
import type { CopyEvent } from '../../model/events.ts'

/** Transfers of one tensor that are kept, as no life may need them. */
const REMEMBERED_MAX = 256

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** Transfers of tensors' data, in (set, copy) and out (get), until a life uses them. */
export class Transfers {
  private readonly writes = new DefaultMap<number, Span[]>(() => [])
  private readonly reads = new DefaultMap<number, Span[]>(() => [])

  /** `root`: the tensor that owns the memory. The tensor of a copy is its destination. */
  add(root: number, { what, startNs, endNs }: CopyEvent): void {
    const spans = (what === 'get' ? this.reads : this.writes).of(root)
    if (spans.push({ startNs, endNs }) > REMEMBERED_MAX) spans.shift()
  }

  /** Number of tensors with transfers out. */
  get tensorsRead(): number {
    return this.reads.size
  }

  /** Has there been a transfer out of this tensor? */
  areRead(root: number): boolean {
    return this.reads.has(root)
  }

  /** The last transfer into a tensor that began by `untilNs`. It and earlier ones are removed. */
  written(root: number, untilNs: number): Span | undefined {
    return take(this.writes.get(root), untilNs).at(-1)
  }

  /** End of the last transfer out of a tensor that began from `fromNs` to `untilNs`, or -Infinity. Removes those up to it. */
  readUntil(root: number, fromNs: number, untilNs: number): number {
    const spans = take(this.reads.get(root), untilNs)
    return spans.reduce((last, { startNs, endNs }) => (startNs < fromNs ? last : Math.max(last, endNs)), -Infinity)
  }
}

const NONE: readonly Span[] = []

/** Removes and returns the spans that began by a time. */
function take(spans: Span[] | undefined, untilNs: number): readonly Span[] {
  if (!spans || spans.length === 0) return NONE
  const after = spans.findIndex(({ startNs }) => startNs > untilNs)
  return spans.splice(0, after < 0 ? spans.length : after)
}
