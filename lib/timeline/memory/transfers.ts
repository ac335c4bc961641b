import type { CopyEvent } from '../../model/events.ts'

/** Of one tensor, which nobody may ever ask for. */
const REMEMBERED_MAX = 256

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** What of tensors' data went in (set, copy) and out (get), until it was asked for. */
export class Transfers {
  private readonly writes = new Map<number, Span[]>()
  private readonly reads = new Map<number, Span[]>()

  /** `root` is the tensor that owns the memory. A copy's tensor is where it goes to. */
  add(root: number, { what, startNs, endNs }: CopyEvent): void {
    const side = what === 'get' ? this.reads : this.writes
    const spans = side.get(root)
    if (!spans) side.set(root, [{ startNs, endNs }])
    else if (spans.push({ startNs, endNs }) > REMEMBERED_MAX) spans.shift()
  }

  /** Number of tensors that transfers out of were seen of. */
  get tensorsRead(): number {
    return this.reads.size
  }

  /** Was a transfer out of this tensor seen, ever? */
  areRead(root: number): boolean {
    return this.reads.has(root)
  }

  /** The last transfer into a tensor that began by `untilNs`. It and earlier ones are forgotten. */
  written(root: number, untilNs: number): Span | undefined {
    return take(this.writes.get(root), untilNs).at(-1)
  }

  /** End of the last transfer out of a tensor that began from `fromNs` to `untilNs`, or -Infinity; likewise forgotten. */
  readUntil(root: number, fromNs: number, untilNs: number): number {
    const spans = take(this.reads.get(root), untilNs)
    return spans.reduce((last, { startNs, endNs }) => (startNs < fromNs ? last : Math.max(last, endNs)), -Infinity)
  }
}

const NONE: readonly Span[] = []

/** Takes those out that began by a time. */
function take(spans: Span[] | undefined, untilNs: number): readonly Span[] {
  if (!spans || spans.length === 0) return NONE
  const after = spans.findIndex(({ startNs }) => startNs > untilNs)
  return spans.splice(0, after < 0 ? spans.length : after)
}
