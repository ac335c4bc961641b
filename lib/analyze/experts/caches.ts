import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import type { CacheHits, ExpertCache } from './figures.ts'
import { EXPERTS_MAX, type Layer, type LayerShape, type PhaseChoices } from './layer.ts'
import { LfuCaches } from './lfu-caches.ts'
import { StackDistances } from './stack-distances.ts'

/** Size of a cache: a share of all experts, experts of each layer, or bytes of all layers. */
export type ExpertCacheSize =
  | { readonly share: number }
  | { readonly experts: number }
  | { readonly bytes: number; readonly text: string }

/** Sizes of caches that are simulated by default: shares of all experts. */
export const CACHE_SIZES: readonly ExpertCacheSize[] = [0.125, 0.25, 0.5, 0.75].map((share) => ({ share }))
/** Sizes at most. */
export const CACHE_SIZES_MAX = 8

type Shapes = ReadonlyMap<number, LayerShape>

/** Experts of one layer's cache; undefined where the layer is not known well enough. */
export function capacityOf(size: ExpertCacheSize, { experts, expertBytes }: LayerShape, layers: number) {
  if ('experts' in size) return experts === undefined ? size.experts : Math.min(size.experts, experts)
  if ('share' in size) return experts === undefined ? undefined : Math.max(1, Math.round(size.share * experts))
  return expertBytes === null || experts === undefined
    ? undefined
    : Math.min(experts, Math.floor(size.bytes / layers / expertBytes))
}

/** Experts of one cache of all layers. */
function sharedCapacity(size: ExpertCacheSize, shapes: readonly LayerShape[]): number | undefined {
  if (!('bytes' in size)) return sumOf(shapes.map((shape) => capacityOf(size, shape, shapes.length)))
  const bytes = sumOf(shapes.map(({ expertBytes }) => expertBytes ?? undefined))
  return bytes === undefined ? undefined : Math.floor(size.bytes / (bytes / shapes.length))
}

/** Undefined where one of them is. */
function sumOf(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce((sum, value) => (sum === undefined || value === undefined ? undefined : sum + value), 0)
}

/** The caches that all layers share: uses in order of time. */
class SharedUses {
  private readonly stack = new StackDistances()
  private readonly lfu: LfuCaches | undefined
  readonly phases: DefaultMap<Phase, { readonly distances: number[]; readonly lfuHits: Float64Array }>

  constructor(capacities: readonly number[] | undefined) {
    if (capacities) this.lfu = new LfuCaches(capacities)
    this.phases = new DefaultMap(() => ({ distances: [], lfuHits: new Float64Array(capacities?.length ?? 0) }))
  }

  use(item: number, { distances, lfuHits }: { readonly distances: number[]; readonly lfuHits: Float64Array }): void {
    const distance = this.stack.use(item)
    this.lfu?.use(item, lfuHits)
    if (distance < 0) return
    while (distances.length <= distance) distances.push(0)
    distances[distance]! += 1
  }
}

/** Simulated caches of experts. */
export class Caches {
  private readonly shared: SharedUses
  /** By size: experts of the shared cache; undefined where layers are not known well enough. */
  private readonly capacities: readonly (number | undefined)[]

  /** `shapes`: of the layers that are known when the first choice is added. */
  constructor(
    private readonly sizes: readonly ExpertCacheSize[],
    private readonly shapes: Shapes,
  ) {
    this.capacities = sizes.map((size) => sharedCapacity(size, [...shapes.values()]))
    const all = this.capacities.filter((capacity) => capacity !== undefined)
    this.shared = new SharedUses(all.length === sizes.length ? all : undefined)
  }

  /** Experts of the caches of a layer, by size; undefined where one is not known. */
  ofLayer(shape: LayerShape): readonly number[] | undefined {
    const all = this.sizes
      .map((size) => capacityOf(size, shape, this.shapes.size))
      .filter((value) => value !== undefined)
    return all.length === this.sizes.length ? all : undefined
  }

  /** Gets each use of an expert in a phase. `place`: number of the layer among all. */
  user(place: number, phase: Phase): (expert: number) => void {
    const { shared } = this
    const sums = shared.phases.of(phase)
    return (expert) => {
      if (expert < EXPERTS_MAX) shared.use(place * EXPERTS_MAX + expert, sums)
    }
  }

  /** What was simulated; sizes that are not known well enough are left out. */
  finish(layers: readonly Layer[]): ExpertCache[] {
    const known = layers.map((layer): LayerShape => ({ ...layer.shape, experts: layer.experts }))
    return this.sizes.flatMap((size, i) => {
      const each = known.map((shape) => capacityOf(size, shape, known.length))
      const ofEach = each.filter((capacity) => capacity !== undefined)
      const shared = this.capacities[i] ?? sharedCapacity(size, known)
      if (ofEach.length < layers.length || shared === undefined) return []
      const all = known.reduce((sum, { experts = 0 }) => sum + experts, 0)
      if (all === 0) return []
      const bytesOf = (capacity: number, by: readonly number[]) => {
        if (known.some(({ expertBytes }) => expertBytes === null)) return null
        return known.reduce((sum, { expertBytes }, i) => sum + expertBytes! * (by[i] ?? capacity / known.length), 0)
      }
      const total = ofEach.reduce((sum, capacity) => sum + capacity, 0)
      const named = { size: nameOf(size) }
      const inAll = Math.min(shared, all)
      return [
        {
          ...named,
          scope: 'layer' as const,
          experts: total,
          experts_share: total / all,
          bytes: bytesOf(total, ofEach),
          by_phase: this.hitsOfLayers(layers, ofEach, i),
        },
        {
          ...named,
          scope: 'all' as const,
          experts: inAll,
          experts_share: inAll / all,
          bytes: bytesOf(inAll, []),
          by_phase: this.hitsOfAll(layers, inAll, i),
        },
      ]
    })
  }

  private hitsOfLayers(layers: readonly Layer[], capacities: readonly number[], size: number) {
    return byPhase(layers, (phase) => {
      const hits = new Hits()
      for (const [i, layer] of layers.entries()) {
        const sums = layer.phases.get(phase)
        if (!sums) continue
        const capacity = capacities[i]!
        hits.all += usesOf(sums)
        hits.lru += sumUpTo(sums.byExperts, capacity)
        hits.lfu = sums.lfuHits.length > 0 && hits.lfu !== null ? hits.lfu + sums.lfuHits[size]! : null
        hits.addPinned([...sums.counts], capacity)
        hits.addLearned([sums], capacity)
      }
      return hits.finish()
    })
  }

  private hitsOfAll(layers: readonly Layer[], capacity: number, size: number) {
    return byPhase(layers, (phase) => {
      const hits = new Hits()
      const choices = layers.flatMap((layer) => layer.phases.get(phase) ?? [])
      const { distances, lfuHits } = this.shared.phases.of(phase)
      hits.all = choices.reduce((sum, sums) => sum + usesOf(sums), 0)
      hits.lru = sumUpTo(distances, capacity)
      hits.lfu = lfuHits.length > 0 ? lfuHits[size]! : null
      hits.addPinned(
        choices.flatMap(({ counts }) => [...counts]),
        capacity,
      )
      hits.addLearned(choices, capacity)
      return hits.finish()
    })
  }
}

const usesOf = ({ firstUses, reused }: PhaseChoices) => firstUses + reused

/** Sums of hits in caches. */
class Hits {
  all = 0
  lru = 0
  lfu: number | null = 0
  private pinned = 0
  private learned = 0
  private learnable = 0

  /** `counts`: activations by expert. */
  addPinned(counts: readonly number[], capacity: number): void {
    for (const i of mostOf(counts, capacity)) this.pinned += counts[i]!
  }

  /** Of layers with at least 2 tokens. */
  addLearned(layers: readonly PhaseChoices[], capacity: number): void {
    const halves = layers
      .map(({ counts, halves }) => ({ counts, first: halves.first() }))
      .filter(({ first }) => first.length > 0)
    const first = halves.flatMap(({ first }) => first)
    const second = halves.flatMap(({ counts, first }) => first.map((count, i) => counts[i]! - count))
    for (const i of mostOf(first, capacity)) this.learned += second[i]!
    this.learnable += second.reduce((sum, count) => sum + count, 0)
  }

  finish(): CacheHits {
    const { all, lru, lfu, pinned, learned, learnable } = this
    return {
      activations: all,
      lru_share: lru / all,
      lfu_share: lfu === null ? null : lfu / all,
      pinned_share: pinned / all,
      learned_share: learnable > 0 ? learned / learnable : null,
    }
  }
}

/** Indexes of the largest counts above 0; of equal ones the first. */
function mostOf(counts: readonly number[], capacity: number): number[] {
  return counts
    .flatMap((count, i) => (count > 0 ? [i] : []))
    .sort((a, b) => counts[b]! - counts[a]! || a - b)
    .slice(0, capacity)
}

function byPhase(layers: readonly Layer[], hitsOf: (phase: Phase) => CacheHits): Partial<Record<Phase, CacheHits>> {
  const phases = new Set(layers.flatMap((layer) => [...layer.phases.keys()]))
  return Object.fromEntries([...phases].map((phase) => [phase, hitsOf(phase)]))
}

function sumUpTo(counts: ArrayLike<number>, end: number): number {
  let sum = 0
  for (let i = 0; i < Math.min(counts.length, end); i++) sum += counts[i]!
  return sum
}

function nameOf(size: ExpertCacheSize): string {
  if ('share' in size) return `${Number((100 * size.share).toPrecision(4))} %`
  if ('experts' in size) return `${size.experts} ${size.experts === 1 ? 'expert' : 'experts'} a layer`
  return size.text
}
