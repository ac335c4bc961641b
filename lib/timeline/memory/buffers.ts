import type { BufferEvent, BufferUsage } from '../../model/events.ts'
import { LazyGroup, type TrackTree } from '../tracks.ts'

const TITLES: Readonly<Record<BufferUsage, string>> = {
  weights: 'weights',
  'kv-cache': 'KV cache',
  compute: 'compute buffer',
  other: 'buffer',
}
const USAGES = Object.keys(TITLES)

/** Tracks that a buffer may have. */
const RANKS_PER_BUFFER = 8
const RANKS_PER_USAGE = 256 * RANKS_PER_BUFFER

/** Places in the Memory group behind all buffers' own tracks. */
export const TOUCHED_RANK = USAGES.length * RANKS_PER_USAGE
/** Of what is known of KV caches beside where they are read. */
export const KV_CACHE_RANK = TOUCHED_RANK + 1
/** Of what was allocated. */
export const ALLOCATED_RANK = TOUCHED_RANK + RANKS_PER_USAGE

/** A buffer as the Memory group shows it. */
export interface ShownBuffer {
  readonly event: BufferEvent
  /** `compute buffer`, `compute buffer 2`, … in order of first use. */
  readonly title: string
  /** Of the first of its tracks. */
  readonly rank: number
}

/** The Memory group, and what its tracks call the buffers. */
export class Buffers {
  readonly group: LazyGroup
  readonly events = new Map<number, BufferEvent>()
  private readonly shown = new Map<number, ShownBuffer>()
  private readonly ofUsage = new Map<BufferUsage, number>()

  constructor(tree: TrackTree, root: number) {
    const description =
      'Where the sources of each operator lie: a value holds until the next operator reads elsewhere. What lives in the ' +
      'compute buffers, how full the KV cache is, what was allocated.'
    this.group = new LazyGroup(tree, root, { name: 'Memory', description, rank: 4 * 16 })
  }

  define(buffer: BufferEvent): void {
    this.events.set(buffer.id, buffer)
  }

  /** A buffer that was defined. */
  get(id: number): ShownBuffer {
    const known = this.shown.get(id)
    if (known) return known
    const event = this.events.get(id)!
    const nth = (this.ofUsage.get(event.usage) ?? 0) + 1
    this.ofUsage.set(event.usage, nth)
    const title = nth === 1 ? TITLES[event.usage] : `${TITLES[event.usage]} ${nth}`
    const rank = USAGES.indexOf(event.usage) * RANKS_PER_USAGE + (nth % 256) * RANKS_PER_BUFFER
    const buffer = { event, title, rank }
    this.shown.set(id, buffer)
    return buffer
  }
}
