import { isFailed } from '../../model/calls.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { TensorEvent, TokenEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Plan } from './plan.ts'
import type { Views } from './views.ts'

/** Names of cache tensors: keys and values of each layer (llama.cpp: llama-kv-cache.cpp). */
const CACHE = /^cache_[kv]_l\d+$/
/** Calls that wait for their operators, which may be missing. */
const WAITING_MAX = 4096
/** Contexts whose caches are followed. */
const CONTEXTS_MAX = 16

/** The cache of one llama_context. */
export interface CacheOf {
  /** Number of the context, from 0, and its address; 0: not recorded. */
  readonly number: number
  readonly context: number
  /** Cells in use by each sequence: the position after its last token. */
  readonly sequences: Map<number, number>
  /** Its tensors; empty while none of its operators was recorded. */
  tensors: readonly TensorEvent[]
  /** Cells in use, of all sequences. */
  cells: number
}

/** Definitions that tensors of caches are found in. */
interface CacheContext {
  readonly tensors: readonly TensorEvent[]
  readonly names: Names
  readonly views: Views
}

/**
 * Growth of KV caches, call by call: a cell for each position of each sequence. It is computed from the positions in the
 * batches; the log does not record which tokens were removed since, nor which sequences share cells.
 */
export class KvCaches {
  private readonly contexts = new Map<number, CacheOf>()
  private waiting: TokenEvent[] = []
  private readonly caches = new WeakMap<Plan, readonly TensorEvent[]>()

  /** `onCall` gets each call that uses a cache, with the cache after it. */
  constructor(
    private readonly context: CacheContext,
    private readonly onCall: (cache: CacheOf, event: TokenEvent) => void,
  ) {}

  /** Adds a call, in order. It waits for its operators, which write to the cache's tensors. */
  call(event: TokenEvent): void {
    const { batch, phase } = event
    // llama.cpp clears the cache after a warm-up; encoders have no cache. The tokens of a failed batch that remain in the
    // cache are not recorded, but the positions of the next call show them.
    if (!batch || phase === 'warm-up' || phase === 'encode' || isFailed(event) || batch.spans.length === 0) return
    this.waiting.push(event)
    if (this.waiting.length > WAITING_MAX) this.place(this.waiting.shift()!)
  }

  /** A graph run of a call is complete: places the calls up to it. */
  run(call: number, plan: Plan): void {
    const { waiting } = this
    if (waiting.length === 0 || waiting[0]!.call > call) return
    const rest = waiting.findIndex((event) => event.call > call)
    this.waiting = rest < 0 ? [] : waiting.slice(rest)
    for (const event of waiting.slice(0, rest < 0 ? waiting.length : rest)) {
      this.place(event, event.call === call ? this.cachesOf(plan) : undefined)
    }
  }

  finish(): void {
    for (const event of this.waiting) this.place(event)
    this.waiting = []
  }

  private cachesOf(plan: Plan): readonly TensorEvent[] {
    return getOrMake(this.caches, plan, () => {
      const { tensors, names, views } = this.context
      const roots = new Set(plan.lasts.map((node) => views.root(node)))
      return [...roots].map((id) => tensors[id]!).filter(({ name }) => CACHE.test(names.text(name)))
    })
  }

  private place(event: TokenEvent, tensors: readonly TensorEvent[] = []): void {
    const { context, spans } = event.batch!
    const cache = this.cacheOf(context)
    if (!cache) return
    if (tensors.length > 0) cache.tensors = tensors
    const { sequences } = cache
    for (const { sequence, position, tokens } of spans) {
      sequences.set(sequence, (position < 0 ? (sequences.get(sequence) ?? 0) : position) + tokens)
    }
    cache.cells = [...sequences.values()].reduce((sum, used) => sum + used, 0)
    this.onCall(cache, event)
  }

  private cacheOf(context: number): CacheOf | undefined {
    let cache = this.contexts.get(context)
    if (!cache && this.contexts.size < CONTEXTS_MAX) {
      cache = { number: this.contexts.size, context, sequences: new Map(), tensors: [], cells: 0 }
      this.contexts.set(context, cache)
    }
    return cache
  }
}

/** Cells of a cache's tensor. */
export const cellsOf = ({ ne }: TensorEvent): number => (ne?.[1] ?? 1) * (ne?.[2] ?? 1)

/** Bytes of so many cells, in all layers. Caches with a sliding window have fewer cells. */
export function bytesOfCells({ tensors }: CacheOf, cells: number): number {
  let bytes = 0
  for (const tensor of tensors) {
    const all = cellsOf(tensor)
    bytes += Math.round((tensor.sizeBytes * Math.min(cells, all)) / all)
  }
  return bytes
}

/** Cells of a cache: those of the layers without a window; 0 while its tensors are not known. */
export const capacityOf = ({ tensors }: CacheOf): number => Math.max(0, ...tensors.map(cellsOf))
