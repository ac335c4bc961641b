import type { Plan } from '../../analyze/graph/plan.ts'
import type { GraphRun } from '../../analyze/graph/runs.ts'
import { isFailed } from '../../model/calls.ts'
import type { TensorEvent, TokenEvent } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'

/** Caches of attention, one for the keys and one for the values of each layer (llama.cpp: llama-kv-cache.cpp). */
const CACHE = /^cache_[kv]_l\d+$/
/** Calls that wait for their operators: there may be none. */
const WAITING_MAX = 4096
/** Contexts with rows of their own. */
const CONTEXTS_MAX = 16

/** What is known of one llama_context's cache. */
interface Context {
  /** Cells in use by each sequence: the position after its last token. */
  readonly sequences: Map<number, number>
  caches: readonly TensorEvent[]
  readonly number: number
  cells: number
  bytes: number
}

/**
 * Growth of the KV cache, call by call: a cell for each position of each sequence. It is worked out from the positions
 * in the batches, as the log does not record what was removed in between, nor which sequences share cells.
 */
export class KvCache {
  private readonly contexts = new Map<number, Context>()
  private waiting: TokenEvent[] = []
  private readonly caches = new WeakMap<Plan, readonly TensorEvent[]>()

  constructor(private readonly context: TrackContext) {}

  /** A call that ended, in order. It waits for its operators, which write to the cache's tensors. */
  call(event: TokenEvent): void {
    const { batch, phase } = event
    // Warm-ups leave nothing behind, and encoders have no cache. How much of a failed batch was kept is not recorded: the
    // positions of the next call say it.
    if (!batch || phase === 'warm-up' || phase === 'encode' || isFailed(event) || batch.spans.length === 0) return
    this.waiting.push(event)
    if (this.waiting.length > WAITING_MAX) this.place(this.waiting.shift()!)
  }

  /** A run of a graph: calls up to its own need not wait any longer. */
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

/** Bytes of so many cells, in all layers. Caches with a sliding window have fewer cells. */
function bytesIn(caches: readonly TensorEvent[], cells: number): number {
  let bytes = 0
  for (const { ne, sizeBytes } of caches) {
    const all = (ne?.[1] ?? 1) * (ne?.[2] ?? 1)
    bytes += Math.round((sizeBytes * Math.min(cells, all)) / all)
  }
  return bytes
}
