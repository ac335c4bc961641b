import type { HeldSlice } from './nesting.ts'

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
