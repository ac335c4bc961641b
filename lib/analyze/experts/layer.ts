import { growColumns } from '../../bytes/resized.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase } from '../../model/events.ts'
import { balanceOf } from './balance.ts'
import type { Choice } from './choices.ts'
import type { ExpertChoices, ExpertLayer, RepeatedExperts, ReuseDistances } from './figures.ts'
import { LfuCaches } from './lfu-caches.ts'
import { ReusePairs } from './reuse-pairs.ts'
import { StackDistances } from './stack-distances.ts'

/** Blocks of tokens at most; then two become one. */
const BLOCKS_MAX = 32

/** Counts of experts in the first half of an unknown number of tokens, in bounded memory: of blocks of tokens, which grow. */
class Halves {
  private readonly blocks: Uint32Array[] = []
  /** Tokens of a block. */
  private size = 1
  private tokens = 0
  private block: Uint32Array | undefined

  constructor(private readonly experts: number) {}

  /** Begins a token. */
  next(): void {
    if (this.tokens++ % this.size !== 0) return
    if (this.blocks.length === BLOCKS_MAX) this.merge()
    this.block = new Uint32Array(this.experts)
    this.blocks.push(this.block)
  }

  /** Counts an expert of the token. */
  count(expert: number): void {
    this.block![expert]! += 1
  }

  private merge(): void {
    for (let i = 0; i < BLOCKS_MAX / 2; i++) {
      const [to, from] = [this.blocks[2 * i]!, this.blocks[2 * i + 1]!]
      for (let expert = 0; expert < to.length; expert++) to[expert]! += from[expert]!
      this.blocks[i] = to
    }
    this.blocks.length = BLOCKS_MAX / 2
    this.size *= 2
  }

  /** The counts of the first half of the tokens, in whole blocks; empty for fewer than 2 tokens. */
  first(): number[] {
    const blocks = this.blocks.slice(0, Math.floor(this.tokens / 2 / this.size))
    if (blocks.length === 0) return []
    return Array.from({ length: this.experts }, (_, expert) => blocks.reduce((sum, counts) => sum + counts[expert]!, 0))
  }
}

/** Experts that are distinguished: llama.cpp's LLAMA_MAX_EXPERTS. */
export const EXPERTS_MAX = 512
/** Buckets of distances in tokens: powers of two. */
const BUCKETS = 32

/** What is known of a layer's experts before its choices. */
export interface LayerShape {
  /** Undefined: its weights have no recorded shape. */
  readonly experts: number | undefined
  readonly expertBytes: number | null
}

/** Sums of a layer in one phase. */
export class PhaseChoices {
  tokens = 0
  batches = 0
  activations = 0
  other = 0
  readonly counts: Float64Array
  readonly halves: Halves
  /** Tokens with one before them, their experts, and those that the one before had too. */
  followers = 0
  followed = 0
  repeated = 0
  firstUses = 0
  reused = 0
  sumTokens = 0
  sumExperts = 0
  readonly byTokens = new Float64Array(BUCKETS)
  readonly byExperts: Float64Array
  distinct = 0
  /** Activations, by cache that had their expert. */
  readonly lfuHits: Float64Array

  constructor(experts: number, caches: number) {
    this.counts = new Float64Array(experts)
    this.byExperts = new Float64Array(experts)
    this.halves = new Halves(experts)
    this.lfuHits = new Float64Array(caches)
  }
}

/** The router of one layer. */
export class Layer {
  readonly number: number
  /** Among all layers, in the order in which they were found. */
  readonly place: number
  readonly phases: DefaultMap<Phase, PhaseChoices>
  readonly pairs = new ReusePairs()
  private readonly stack = new StackDistances()
  private readonly lfu: LfuCaches | undefined
  /** By expert: number of the last token that has it, from 1; and of the last batch. */
  latest = new Float64Array(EXPERTS_MAX)
  inBatch = new Float64Array(EXPERTS_MAX)
  /** Experts with higher numbers are counted together. */
  private readonly limit: number
  private token = 0
  private batch = 0
  private perToken = 0
  private highest = -1

  /** `capacities`: of caches that are simulated; undefined where they are not known before the end. */
  constructor(
    { number, place }: { readonly number: number; readonly place: number },
    readonly shape: LayerShape,
    capacities: readonly number[] | undefined,
  ) {
    this.number = number
    this.place = place
    this.limit = Math.min(shape.experts ?? EXPERTS_MAX, EXPERTS_MAX)
    this.phases = new DefaultMap(() => new PhaseChoices(this.limit, capacities?.length ?? 0))
    if (capacities) this.lfu = new LfuCaches(capacities)
  }

  /** Experts of the layer. */
  get experts(): number {
    return this.shape.experts ?? this.highest + 1
  }

  /** Adds a choice. Returns the mean distance of its reused experts, in tokens; undefined where none was reused. `onUse` gets each expert. */
  add(choice: Choice, phase: Phase, onUse: (expert: number) => void): number | undefined {
    const sums = this.phases.of(phase)
    const [count, tokens] = [sums.reused, sums.sumTokens]
    this.batch++
    sums.batches++
    for (const ids of choice.parts) {
      const k = Math.max(choice.k, 1)
      for (let at = 0; at < ids.length; at += k) this.addToken(ids, at, Math.min(at + k, ids.length), sums, onUse)
    }
    return sums.reused > count ? (sums.sumTokens - tokens) / (sums.reused - count) : undefined
  }

  private addToken(
    ids: ArrayLike<number>,
    from: number,
    to: number,
    sums: PhaseChoices,
    onUse: (expert: number) => void,
  ): void {
    const token = ++this.token
    sums.tokens++
    sums.halves.next()
    let [count, repeated] = [0, 0]
    for (let at = from; at < to; at++) {
      const expert = ids[at]!
      if (expert < 0 || expert >= this.latest.length) {
        if (expert < 0 || expert >= EXPERTS_LIMIT) continue
        growColumns(this, ['latest', 'inBatch'], Math.max(expert + 1, 2 * this.latest.length))
      }
      const before = this.latest[expert]!
      if (before === token) continue
      this.latest[expert] = token
      count++
      if (before === token - 1 && before > 0) repeated++
      this.use(expert, before === 0 ? 0 : token - before, sums)
      onUse(expert)
    }
    sums.activations += count
    if (count > this.perToken) this.perToken = count
    if (token === 1) return
    sums.followers++
    sums.followed += count
    sums.repeated += repeated
  }

  /** `tokens`: distance in tokens; 0: first use. */
  private use(expert: number, tokens: number, sums: PhaseChoices): void {
    if (this.inBatch[expert] !== this.batch) {
      this.inBatch[expert] = this.batch
      sums.distinct++
    }
    if (expert > this.highest) this.highest = expert
    if (expert >= this.limit) {
      sums.other++
      return
    }
    sums.counts[expert]! += 1
    sums.halves.count(expert)
    const distance = this.stack.use(expert)
    this.lfu?.use(expert, sums.lfuHits)
    if (tokens === 0) {
      sums.firstUses++
      return
    }
    sums.reused++
    sums.sumTokens += tokens
    sums.byTokens[Math.min(Math.floor(Math.log2(tokens)), BUCKETS - 1)]! += 1
    sums.sumExperts += distance
    sums.byExperts[distance]! += 1
  }

  /** `faultCounter`: name of the counter of page faults. */
  finish(faultCounter: string | null): ExpertLayer {
    const { shape, experts, perToken } = this
    return {
      layer: this.number,
      experts,
      experts_are_min: shape.experts === undefined,
      experts_per_token: perToken,
      expert_bytes: shape.expertBytes,
      by_phase: Object.fromEntries([...this.phases].map(([phase, sums]) => [phase, this.choicesOf(sums)])),
      reuse_and_time: this.pairs.finish(faultCounter),
    }
  }

  private choicesOf(sums: PhaseChoices): ExpertChoices {
    const { experts, perToken } = this
    const counts = [...sums.counts.subarray(0, experts)] // at most the limit
    return {
      tokens: sums.tokens,
      batches: sums.batches,
      activations: sums.activations,
      by_expert: counts,
      other_activations: sums.other,
      balance: balanceOf(counts, perToken),
      repeated: repeatedOf(sums, counts),
      reuse: reuseOf(sums),
      distinct_per_batch: sums.distinct / sums.batches,
      tokens_per_expert: sums.distinct > 0 ? sums.activations / sums.distinct : 0,
    }
  }
}

/** Numbers of experts above this are damage. */
const EXPERTS_LIMIT = 1 << 16

function repeatedOf(sums: PhaseChoices, counts: readonly number[]): RepeatedExperts | null {
  if (sums.followed === 0) return null
  const { followers, followed, repeated, tokens, activations } = sums
  const perToken = activations / tokens
  return {
    tokens: followers,
    share: repeated / followed,
    even_share: perToken / counts.length,
    independent_share: counts.reduce((sum, count) => sum + (count / tokens) ** 2, 0) / perToken,
  }
}

function reuseOf({ firstUses, reused, sumTokens, sumExperts, byTokens, byExperts }: PhaseChoices): ReuseDistances {
  return {
    first_uses: firstUses,
    count: reused,
    mean_tokens: reused > 0 ? sumTokens / reused : null,
    tokens_histogram: withoutZeros(byTokens),
    mean_experts: reused > 0 ? sumExperts / reused : null,
    experts_histogram: withoutZeros(byExperts),
  }
}

/** Without zeros at the end. */
function withoutZeros(counts: Float64Array): number[] {
  return [...counts.subarray(0, counts.findLastIndex((count) => count > 0) + 1)]
}
