import type { Arg } from '../../model/args.ts'
import { putAt } from '../../model/by-id.ts'
import { Inferred } from '../../model/events.ts'
import type { Label } from '../../sink/label.ts'
import type { TrackContext } from '../context.ts'
import { PALE } from '../labels.ts'
import type { Detail } from '../options.ts'

/** Shorter waits at barriers, and shorter parts of waits, are not drawn, unless all are. */
export const BARRIER_NS_MIN = 1000
/** From this on, a wait for a worker names it as an argument, too, and an arrow leads to it; in full, all do. */
const NAMED_NS_MIN = 5000

/** The same at a level of detail. */
export function namedFromNs(detail: Detail): number {
  if (detail === 'names') return Infinity
  return detail === 'full' ? 0 : NAMED_NS_MIN
}

/** Bit of a wait: the next operator begins where the wait ends, and may be written before it. */
export const TIED = 1
/** Bit of a wait: it is the first one of its row. */
export const FIRST = 2

/**
 * Draws waits at barriers in two parts: until the last worker arrives, and from then on, while the barrier is open and the worker that waits
 * has no CPU or has not noticed. A wait of which the last arrival is not known is one slice.
 */
export class Barriers {
  /** By the bits of `inferred` that concern the wait. */
  private readonly open: (Label | undefined)[] = []
  private readonly unknown: (Label | undefined)[] = []
  /** The same by the worker that was waited for. */
  private readonly forWorker: ((Label | undefined)[] | undefined)[] = []
  /** The argument of a wait, by worker. */
  private readonly names: (readonly Arg[] | undefined)[] = []
  /** The argument of the first wait of a row. */
  private readonly drawnFrom: readonly Arg[] | undefined
  readonly namedFromNs: number

  /** `isWhole`: all waits are drawn, however short. */
  constructor(
    private readonly context: TrackContext,
    readonly isWhole: boolean,
  ) {
    this.namedFromNs = namedFromNs(context.detail)
    if (!isWhole) this.drawnFrom = [context.make.int('drawn_from_ns', BARRIER_NS_MIN)]
  }

  /**
   * Draws a wait; `flags`: see {@link TIED}, `worker` and `lastNs`: the last one, and when it arrived; -1: not known. Of the two parts, one below
   * {@link BARRIER_NS_MIN} is the gap between the other one and the operator. As the next operator may be written before, the wait ends 1 ns
   * before it: trace_processor would else nest the operator in it.
   */
  place(
    track: number,
    fromNs: number,
    toNs: number,
    inferred: number,
    flags: number,
    worker: number,
    lastNs: number,
    arrows?: readonly number[],
  ): void {
    const isCut = (flags & TIED) !== 0 && !this.isWhole
    const untilNs = isCut ? toNs - 1 : toNs
    const bits = inferred & Inferred.Wait
    const first = (flags & FIRST) !== 0 ? this.drawnFrom : undefined
    const { writer } = this.context
    if (worker < 0) return writer.slice(track, fromNs, untilNs, this.unknown[bits] ?? this.unknownLabel(bits), first)
    const openNs = lastNs < fromNs ? fromNs : lastNs > toNs ? toNs : lastNs
    const [forNs, afterNs] = [openNs - fromNs, toNs - openNs]
    const areBoth = !isCut || first !== undefined
    const isForDrawn = areBoth ? forNs > 0 : forNs >= BARRIER_NS_MIN || forNs >= afterNs
    if (isForDrawn) {
      const label = this.forWorker[bits]?.[worker] ?? this.forLabel(worker, bits)
      const extra = first ?? (forNs >= this.namedFromNs ? this.named(worker) : undefined)
      const linked = arrows ? this.context.make.with(label, extra, arrows) : label
      writer.slice(track, fromNs, openNs < untilNs ? openNs : untilNs, linked, extra)
    }
    if (areBoth ? afterNs > 0 : afterNs >= BARRIER_NS_MIN || afterNs > forNs) {
      writer.slice(track, openNs, untilNs, this.open[bits] ?? this.openLabel(bits), isForDrawn ? undefined : first)
    }
  }

  private forLabel(worker: number, bits: number): Label {
    const labels = this.forWorker[bits] ?? []
    this.forWorker[bits] = labels
    const label = this.label(`wait for worker ${worker}`, bits, PALE)
    putAt(labels, worker, label, undefined)
    return label
  }

  private openLabel(bits: number): Label {
    const label = this.label('barrier open, not running', bits)
    this.open[bits] = label
    return label
  }

  private unknownLabel(bits: number): Label {
    const label = this.label('barrier', bits, PALE)
    this.unknown[bits] = label
    return label
  }

  private label(name: string, bits: number, colour?: string): Label {
    const { make, names, detail } = this.context
    const args = detail === 'names' ? undefined : make.set(make.inferred(bits))
    return make.label({
      name: names.id(name),
      category: 'barrier',
      args,
      colour: colour === undefined ? undefined : names.id(colour),
    })
  }

  private named(worker: number): readonly Arg[] {
    const known = this.names[worker]
    if (known) return known
    const args = [this.context.make.word('waited_for', `worker ${worker}`)]
    putAt(this.names, worker, args, undefined)
    return args
  }
}
