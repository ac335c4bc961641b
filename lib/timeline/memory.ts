import {
  type AllocationEvent,
  type BufferEvent,
  type BufferUsage,
  Inferred,
  type OperatorEvent,
  type TensorEvent,
} from '../model/events.ts'
import type { Names } from '../model/names.ts'
import { LazyGroup, type TrackTree } from './tracks.ts'

const TITLES: Readonly<Record<BufferUsage, string>> = {
  weights: 'weights',
  'kv-cache': 'KV cache',
  compute: 'compute buffer',
  other: 'buffer',
}
const USAGES = Object.keys(TITLES)

/** The Memory group: per buffer, the offset that operators read at, as counters; and the bytes they touch. */
export class Memory {
  private readonly group: LazyGroup
  private readonly buffers = new Map<number, BufferEvent>()
  private readonly counters = new Map<number, number>()
  private readonly ofUsage = new Map<BufferUsage, number>()
  private touched = 0
  /** By name of the buffers: kept to the end, as logs tell of an allocation only when the buffer is first used. */
  private readonly allocations = new Map<number, AllocationEvent[]>()

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly tensors: readonly TensorEvent[],
    private readonly names: Names,
  ) {
    const description = 'Where the sources of each operator lie. A value holds until the next operator reads elsewhere.'
    this.group = new LazyGroup(tree, root, { name: 'Memory', description, rank: 4 * 16 })
  }

  define(buffer: BufferEvent): void {
    this.buffers.set(buffer.id, buffer)
  }

  /** Samples the counters at the start of an operator; of worker 0 alone, as all workers share its sources. */
  place({ worker, tensor, startNs, endNs, inferred }: OperatorEvent): void {
    if (worker !== 0) return
    let bytes = -1
    for (const id of this.tensors[tensor]!.sources) {
      const { offset, buffer, sizeBytes } = this.tensors[id]!
      if (offset !== undefined && buffer >= 0) this.tree.writer.counter(this.counter(buffer), startNs, offset)
      if (sizeBytes >= 0) bytes = Math.max(bytes, 0) + sizeBytes
    }
    if (bytes < 0) return
    if (this.touched === 0) this.touched = this.addTouched()
    this.tree.writer.counter(this.touched, startNs, bytes)
    // Where the end is the next operator's start, that operator's sample follows at once.
    if ((inferred & Inferred.End) === 0) this.tree.writer.counter(this.touched, endNs, 0)
  }

  allocate(event: AllocationEvent): void {
    const known = this.allocations.get(event.buffer)
    if (known) known.push(event)
    else this.allocations.set(event.buffer, [event])
  }

  /** Counts the bytes of all buffers of one name. */
  finish(): void {
    let rank = (USAGES.length + 1) * 256
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
    return this.group.add({
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
    const { usage, label, offsetsFrom } = this.buffers.get(id)!
    const nth = (this.ofUsage.get(usage) ?? 0) + 1
    this.ofUsage.set(usage, nth)
    const title = nth === 1 ? TITLES[usage] : `${TITLES[usage]} ${nth}`
    const track = this.group.add({
      name: `${title}: offset read`,
      description: `Offset of each operator's source in this buffer (${label}), in bytes from ${offsetsFrom}.`,
      rank: USAGES.indexOf(usage) * 256 + nth,
      kind: 'counter',
      unit: 'bytes',
      axis: usage,
    })
    this.counters.set(id, track)
    return track
  }

  private addTouched(): number {
    return this.group.add({
      name: 'bytes touched per operator',
      description:
        'Sum of the sizes of the sources of the operator that worker 0 computes. Whole tensors: MUL_MAT_ID is counted ' +
        'with all experts, though it reads the chosen ones.',
      rank: USAGES.length * 256,
      kind: 'counter',
      unit: 'bytes',
    })
  }
}
