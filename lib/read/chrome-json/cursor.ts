import type { OwnSliceEvent } from '../../model/own-events.ts'
import type { ArrowEnd } from './arrows.ts'

/** A slice on its way. */
export interface HeldSlice extends OwnSliceEvent {
  /** Of two that look the same, the one with the lower number is the outer one. */
  readonly order: number
  /** Ends of arrows that the event itself has. */
  readonly arrows: readonly ArrowEnd[] | undefined
  flows: number[] | undefined
  flowEnds: number[] | undefined
}

/** Goes through the slices of a row with time: which one is around a time, and which one is next. */
export class Cursor {
  private readonly open: HeldSlice[] = []
  private place = 0

  /** `following`: the slice behind the last one. */
  constructor(
    readonly track: number,
    private readonly slices: readonly HeldSlice[],
    private readonly following: HeldSlice | undefined,
  ) {}

  /** The innermost slice around a time, which is not before the last one that was asked for; else one that ends there. */
  around(atNs: number): HeldSlice | undefined {
    const { slices, open } = this
    for (; this.place < slices.length && slices[this.place]!.startNs <= atNs; this.place++) {
      const slice = slices[this.place]!
      closeBefore(open, slice.startNs)
      open.push(slice)
    }
    closeBefore(open, atNs)
    for (let i = open.length - 1; i >= 0; i--) {
      const { startNs, endNs } = open[i]!
      if (endNs > atNs || startNs === atNs) return open[i]
    }
    return open.at(-1)
  }

  /** The next slice from a time on; {@link around} was asked for that time. */
  next(atNs: number): HeldSlice | undefined {
    const next = this.slices[this.place] ?? this.following
    return next && next.startNs >= atNs ? next : undefined
  }
}

function closeBefore(open: HeldSlice[], atNs: number): void {
  while (open.length > 0 && open.at(-1)!.endNs < atNs) open.pop()
}
