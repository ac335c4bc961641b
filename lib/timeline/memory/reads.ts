import { putAt } from '../../model/by-id.ts'
import { Inferred, type OperatorEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import type { Buffers } from './buffers.ts'

/** The sources of an operator: tracks of their buffers, offsets in them, and the sum of their bytes, or -1. */
interface Sources {
  readonly tracks: readonly number[]
  readonly offsets: readonly number[]
  readonly bytes: number
}

/** Counters of the Memory group: the offset at which operators read in each buffer, and the bytes that they touch. */
export class Reads {
  private readonly counters = new Map<number, number>()
  private touched = 0
  /** The end of the barrier after the last operator; -1: no value ends there. */
  private touchedUntilNs = -1
  /** By tensor: the sources of its operator. */
  private readonly reads: (Sources | undefined)[] = []

  constructor(
    private readonly context: TrackContext,
    private readonly buffers: Buffers,
  ) {}

  /** Samples the counters at the start of an operator, only for worker 0: all workers have the same sources. */
  place({ worker, tensor, startNs, waitEndNs, inferred }: OperatorEvent): void {
    if (worker !== 0) return
    const { writer } = this.context
    const { tracks, offsets, bytes } = this.reads[tensor] ?? this.readsOf(tensor)
    for (let i = 0; i < tracks.length; i++) writer.counter(tracks[i]!, startNs, offsets[i]!)
    if (this.touchedUntilNs >= 0 && (startNs > this.touchedUntilNs || bytes < 0)) this.endTouched()
    if (bytes < 0) return
    if (this.touched === 0) this.touched = this.context.tracks.add('touched', {})
    writer.counter(this.touched, startNs, bytes)
    // If the end is the next operator's start, the sample of that operator has the same time.
    this.touchedUntilNs = (inferred & Inferred.End) === 0 ? waitEndNs : -1
  }

  private endTouched(): void {
    this.context.writer.counter(this.touched, this.touchedUntilNs, 0)
    this.touchedUntilNs = -1
  }

  private readsOf(tensor: number): Sources {
    const { tensors } = this.context
    const sources = tensors[tensor]!.sources.map((id) => tensors[id]!)
    const placed = sources.filter(({ offset, buffer }) => offset !== undefined && buffer >= 0)
    const sizes = sources.map(({ sizeBytes }) => sizeBytes).filter((bytes) => bytes >= 0)
    const reads = {
      tracks: placed.map(({ buffer }) => this.counter(buffer)),
      offsets: placed.map(({ offset }) => offset!),
      bytes: sizes.length > 0 ? sizes.reduce((sum, bytes) => sum + bytes, 0) : -1,
    }
    putAt(this.reads, tensor, reads, undefined)
    return reads
  }

  finish(): void {
    if (this.touchedUntilNs >= 0) this.endTouched()
  }

  private counter(id: number): number {
    const known = this.counters.get(id)
    if (known !== undefined) return known
    const buffer = this.buffers.get(id)
    const track = this.context.tracks.add('offsetRead', { ...buffer, offsetsFrom: buffer.event.offsetsFrom })
    this.counters.set(id, track)
    return track
  }
}
