import { type AllocationEvent, Inferred, type OperatorEvent, type TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { TrackTree } from '../tracks.ts'
import { ALLOCATED_RANK, type Buffers, TOUCHED_RANK } from './buffers.ts'

/** What the Memory group shows of compute buffers: counters only, or each tensor's lifetime, too. */
export type MemoryRows = (typeof MEMORY_ROWS)[number]

/** All of them. */
export const MEMORY_ROWS = ['counters', 'lifetimes'] as const

/** Where an operator reads: tracks of buffers, and offsets there. Bytes in all, or -1. */
interface Reads {
  readonly tracks: readonly number[]
  readonly offsets: readonly number[]
  readonly bytes: number
}

/** Of the Memory group: per buffer, the offset that operators read at, as counters; and the bytes they touch. */
export class Memory {
  private readonly counters = new Map<number, number>()
  private touched = 0
  /** When the barrier after the last operator opened; -1: nothing ends then. */
  private touchedUntilNs = -1
  /** By tensor: what its operator reads. */
  private readonly reads: (Reads | undefined)[] = []
  /** By name of the buffers: kept to the end, as logs tell of an allocation only when the buffer is first used. */
  private readonly allocations = new Map<number, AllocationEvent[]>()

  constructor(
    private readonly tree: TrackTree,
    private readonly buffers: Buffers,
    private readonly tensors: readonly TensorEvent[],
    private readonly names: Names,
  ) {}

  /** Samples the counters at the start of an operator; of worker 0 alone, as all workers share its sources. */
  place({ worker, tensor, startNs, waitEndNs, inferred }: OperatorEvent): void {
    if (worker !== 0) return
    const { writer } = this.tree
    const { tracks, offsets, bytes } = this.reads[tensor] ?? this.readsOf(tensor)
    for (let i = 0; i < tracks.length; i++) writer.counter(tracks[i]!, startNs, offsets[i]!)
    if (this.touchedUntilNs >= 0 && (startNs > this.touchedUntilNs || bytes < 0)) this.endTouched()
    if (bytes < 0) return
    if (this.touched === 0) this.touched = this.addTouched()
    writer.counter(this.touched, startNs, bytes)
    // Where the end is the next operator's start, that operator's sample follows at once.
    this.touchedUntilNs = (inferred & Inferred.End) === 0 ? waitEndNs : -1
  }

  private endTouched(): void {
    this.tree.writer.counter(this.touched, this.touchedUntilNs, 0)
    this.touchedUntilNs = -1
  }

  private readsOf(tensor: number): Reads {
    const sources = this.tensors[tensor]!.sources.map((id) => this.tensors[id]!)
    const placed = sources.filter(({ offset, buffer }) => offset !== undefined && buffer >= 0)
    const sizes = sources.map(({ sizeBytes }) => sizeBytes).filter((bytes) => bytes >= 0)
    const reads = {
      tracks: placed.map(({ buffer }) => this.counter(buffer)),
      offsets: placed.map(({ offset }) => offset!),
      bytes: sizes.length > 0 ? sizes.reduce((sum, bytes) => sum + bytes, 0) : -1,
    }
    while (this.reads.length < tensor) this.reads.push(undefined)
    this.reads[tensor] = reads
    return reads
  }

  allocate(event: AllocationEvent): void {
    const known = this.allocations.get(event.buffer)
    if (known) known.push(event)
    else this.allocations.set(event.buffer, [event])
  }

  /** Counts the bytes of all buffers of one name. */
  finish(): void {
    if (this.touchedUntilNs >= 0) this.endTouched()
    let rank = ALLOCATED_RANK
    for (const [buffer, events] of this.allocations) {
      const track = this.addLive(buffer, rank++)
      let live = 0
      for (const { atNs, bytes } of events.sort((a, b) => a.atNs - b.atNs)) {
        live += bytes
        this.tree.writer.counter(track, atNs, live)
      }
    }
  }

  private addLive(buffer: number, rank: number): number {
    const name = this.names.text(buffer) || 'unnamed buffers'
    return this.buffers.group.add({
      name: `${name}: allocated`,
      description: `Bytes of the backend buffers called ${name}, from when they were allocated until they were freed.`,
      rank,
      kind: 'counter',
      unit: 'bytes',
    })
  }

  private counter(id: number): number {
    const known = this.counters.get(id)
    if (known !== undefined) return known
    const { title, rank, event } = this.buffers.get(id)
    const track = this.buffers.group.add({
      name: `${title}: offset read`,
      description: `Offset of each operator's source in this buffer (${event.label}), in bytes from ${event.offsetsFrom}.`,
      rank,
      kind: 'counter',
      unit: 'bytes',
      axis: event.usage,
    })
    this.counters.set(id, track)
    return track
  }

  private addTouched(): number {
    return this.buffers.group.add({
      name: 'bytes touched per operator',
      description:
        'Sum of the sizes of the sources of the operator that worker 0 computes, until the barrier after it opens; 0 ' +
        'where none follows at once. Whole tensors: MUL_MAT_ID is counted with all experts, though it reads the chosen ones.',
      rank: TOUCHED_RANK,
      kind: 'counter',
      unit: 'bytes',
    })
  }
}
