import { CallOrder } from '../../model/call-order.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase, TokenEvent } from '../../model/events.ts'
import type { Defined } from '../graph/defined.ts'
import { bytesOfCells, type CacheOf, capacityOf, cellsOf, KvCaches } from '../graph/kv-cache.ts'
import type { Plan } from '../graph/plan.ts'
import type { KvCacheFigures, KvPhase } from './figures.ts'

/** Sums of the calls of one phase. */
interface OfPhase {
  calls: number
  used: number
  growth: number
  /** In bytes; NaN where the cache's tensors were not known in a call. */
  growthBytes: number
}

interface Use {
  readonly cache: CacheOf
  readonly phases: DefaultMap<Phase, OfPhase>
  used: number
  peak: number
}

/** Sums the use of KV caches, call by call. */
export class CacheUse {
  private readonly caches: KvCaches
  private readonly order = new CallOrder((event) => this.caches.call(event))
  private readonly uses = new DefaultMap<CacheOf, Use>((cache) => ({
    cache,
    phases: new DefaultMap<Phase, OfPhase>(() => ({ calls: 0, used: 0, growth: 0, growthBytes: 0 })),
    used: 0,
    peak: 0,
  }))

  constructor(defined: Defined) {
    this.caches = new KvCaches(defined, (cache, event) => this.add(cache, event))
  }

  /** Takes a call, in any order. */
  token(event: TokenEvent): void {
    this.order.add(event)
  }

  run(call: number, plan: Plan): void {
    this.caches.run(call, plan)
  }

  private add(cache: CacheOf, { phase }: TokenEvent): void {
    const use = this.uses.of(cache)
    const ofPhase = use.phases.of(phase)
    ofPhase.calls++
    ofPhase.growth += cache.cells - use.used
    const isKnown = cache.tensors.length > 0
    ofPhase.growthBytes += isKnown ? bytesOfCells(cache, cache.cells) - bytesOfCells(cache, use.used) : NaN
    ofPhase.used = cache.cells
    use.used = cache.cells
    use.peak = Math.max(use.peak, cache.cells)
  }

  finish(): KvCacheFigures[] {
    this.order.finish()
    this.caches.finish()
    return [...this.uses.values()].map(figuresOf)
  }
}

function figuresOf({ cache, phases, used, peak }: Use): KvCacheFigures {
  const { tensors } = cache
  const isKnown = tensors.length > 0
  const bytesOf = (cells: number) => (isKnown ? bytesOfCells(cache, cells) : null)
  const capacity = isKnown ? tensors.reduce((sum, { sizeBytes }) => sum + Math.max(sizeBytes, 0), 0) : null
  const most = bytesOf(peak)
  return {
    context: cache.context,
    is_inferred: true,
    capacity_cells: isKnown ? capacityOf(cache) : null,
    capacity_bytes: capacity,
    bytes_per_token: isKnown ? tensors.reduce((sum, tensor) => sum + tensor.sizeBytes / cellsOf(tensor), 0) : null,
    used_cells: used,
    used_bytes: bytesOf(used),
    peak_cells: peak,
    peak_bytes: most,
    peak_share: capacity && most !== null ? most / capacity : null,
    by_phase: [...phases].map(
      ([phase, ofPhase]): KvPhase => ({
        phase,
        calls: ofPhase.calls,
        used_cells: ofPhase.used,
        used_bytes: bytesOf(ofPhase.used),
        growth_cells: ofPhase.growth / ofPhase.calls,
        growth_bytes: Number.isNaN(ofPhase.growthBytes) ? null : ofPhase.growthBytes / ofPhase.calls,
      }),
    ),
  }
}
