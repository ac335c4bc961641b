import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import { isFailed } from '../../model/calls.ts'
import type { TensorEvent, TokenEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'

/** Names of cache tensors: keys and values of each layer (llama.cpp: llama-kv-cache.cpp). */
const CACHE = /^cache_[kv]_l\d+$/
/** Calls that wait for their operators, which may be missing. */
const WAITING_MAX = 4096
/** Contexts that are drawn. */
const CONTEXTS_MAX = 16

/** The cache of one llama_context. */
interface Context {
  /** Cells in use by each sequence: the position after its last token. */
  readonly sequences: Map<number, number>
  caches: readonly TensorEvent[]
  readonly number: number
  cells: number
  bytes: number
}

/**
 * Growth of the KV cache, call by call: a cell for each position of each sequence. It is computed from the positions in the
 * batches; the log does not record which tokens were removed since, nor which sequences share cells.
 */
export class KvCache {
  private readonly contexts = new Map<number, Context>()
  private waiting: TokenEvent[] = []
  private readonly caches = new WeakMap<Plan, readonly TensorEvent[]>()

  constructor(private readonly context: TrackContext) {}

  /** Adds a call, in order. It waits for its operators, which write to the cache's tensors. */
  call(event: TokenEvent): void {
    const { batch, phase } = event
    // llama.cpp clears the cache after a warm-up; encoders have no cache. The tokens of a failed batch that remain in the
    // cache are not recorded, but the positions of the next call show them.
    if (!batch || phase === 'warm-up' || phase === 'encode' || isFailed(event) || batch.spans.length === 0) return
    this.waiting.push(event)
    if (this.waiting.length > WAITING_MAX) this.place(this.waiting.shift()!)
  }

  /** A graph run is complete: draws the calls up to the one of the run. */
  run({ call }: GraphRun, plan: Plan): void {
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
    let caches = this.caches.get(plan)
    if (!caches) {
      const { tensors, names, views } = this.context
      const roots = new Set(plan.lasts.map((node) => views.root(node)))
      caches = [...roots].map((id) => tensors[id]!).filter(({ name }) => CACHE.test(names.text(name)))
      this.caches.set(plan, caches)
    }
    return caches
  }

  private place({ batch, endNs }: TokenEvent, caches: readonly TensorEvent[] = []): void {
    const context = this.contextOf(batch!.context)
    if (!context) return
    if (caches.length > 0) context.caches = caches
    const { sequences } = context
    for (const { sequence, position, tokens } of batch!.spans) {
      sequences.set(sequence, (position < 0 ? (sequences.get(sequence) ?? 0) : position) + tokens)
    }
    const cells = [...sequences.values()].reduce((sum, used) => sum + used, 0)
    const { tracks, writer } = this.context
    if (context.cells === 0) context.cells = tracks.add('kvCells', context, context.number)
    writer.counter(context.cells, endNs, cells)
    if (context.caches.length === 0) return
    if (context.bytes === 0) context.bytes = tracks.add('kvBytes', context, context.number)
    writer.counter(context.bytes, endNs, bytesIn(context.caches, cells))
  }

  private contextOf(address: number): Context | undefined {
    let context = this.contexts.get(address)
    if (!context && this.contexts.size < CONTEXTS_MAX) {
      context = { sequences: new Map(), caches: [], number: this.contexts.size, cells: 0, bytes: 0 }
      this.contexts.set(address, context)
    }
    return context
  }
}

/** Bytes of the cells, in all layers. Caches with a sliding window have fewer cells. */
function bytesIn(caches: readonly TensorEvent[], cells: number): number {
  let bytes = 0
  for (const { ne, sizeBytes } of caches) {
    const all = (ne?.[1] ?? 1) * (ne?.[2] ?? 1)
    bytes += Math.round((sizeBytes * Math.min(cells, all)) / all)
  }
  return bytes
}
