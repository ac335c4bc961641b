import type { Phase } from '../../model/events.ts'

/**
 * Which experts the routers of a mixture of experts chose. Choices are taken in order of time, those of a batch token by token, and those of
 * a token in the router's order. Warm-ups, and choices outside of calls, are not in it.
 */
export interface ExpertFigures {
  /** In order, at most 512. */
  readonly layers: readonly ExpertLayer[]
  /** Of all layers. */
  readonly by_phase: Readonly<Partial<Record<Phase, ExpertTotals>>>
  /** Is the time of decode calls in MUL_MAT_ID larger where experts were used longer ago? Null where it was not recorded. */
  readonly reuse_and_time: ReuseAndTime | null
  /** Simulated caches of experts, by size, then scope. */
  readonly caches: readonly ExpertCache[]
  /** Tokens of layers above the maximum. */
  readonly tokens_of_other_layers: number
}

/** The router of one layer. */
export interface ExpertLayer {
  /** -1: not known. */
  readonly layer: number
  /** Its experts, from the shape of their weights. */
  readonly experts: number
  /** The shape was not recorded: `experts` is the highest number that was chosen, plus one. */
  readonly experts_are_min: boolean
  /** Experts of a token; the most of all tokens. */
  readonly experts_per_token: number
  /** Weights of one expert: of all matrix products with experts (gate, up, down). Null where they are not known. */
  readonly expert_bytes: number | null
  readonly by_phase: Readonly<Partial<Record<Phase, ExpertChoices>>>
  /** Of decode: a pair for each choice. */
  readonly reuse_and_time: ReuseAndTime | null
}

/** The choices of one layer in one phase. */
export interface ExpertChoices {
  readonly tokens: number
  /** Computations of the layer: one of each call, or of each part that llama.cpp divides its batch into. */
  readonly batches: number
  /** Experts of all tokens; one that a token contains twice counts once. */
  readonly activations: number
  /** By number of the expert, at most 512. */
  readonly by_expert: readonly number[]
  /** Of experts with higher numbers; they are in no figure below. */
  readonly other_activations: number
  readonly balance: ExpertBalance
  readonly repeated: RepeatedExperts | null
  readonly reuse: ReuseDistances
  /** Different experts of a batch: the weights of these are read. The mean of all batches. */
  readonly distinct_per_batch: number
  /** Tokens for which an expert is read once: activations, to different experts of batches. */
  readonly tokens_per_expert: number
}

/** How evenly the experts of a layer are chosen. */
export interface ExpertBalance {
  /** -Σ p log2 p of the shares p of activations. */
  readonly entropy_bits: number
  /** Of log2 of the number of experts: 1 is an even choice. */
  readonly entropy_share: number
  /** Activations of the most used expert, to their mean. */
  readonly max_to_mean: number
  /** Gini coefficient of activations: 0 is an even choice. */
  readonly gini: number
  /** Standard deviation of activations, to their mean. */
  readonly variation: number
  /** Experts that were never chosen. */
  readonly unused: number
  readonly most_used: number
  /** The most used eighth of experts, but at least as many as a token has; and the share of activations that they have. */
  readonly top_experts: number
  readonly top_share: number
}

/** Experts that the token before in this layer had too, of whatever sequence it is. */
export interface RepeatedExperts {
  /** Tokens with one before them. */
  readonly tokens: number
  /** Of the experts of these tokens. */
  readonly share: number
  /** What an even choice without memory gives: experts per token, to all experts. */
  readonly even_share: number
  /** What a choice without memory gives that prefers the experts that this phase prefers: Σ p², to experts per token, p: share of tokens. */
  readonly independent_share: number
}

/** How long ago an expert was used before, in this layer. Each activation has one distance of either kind, except first uses. */
export interface ReuseDistances {
  /** Activations of experts that were not used before in the log. */
  readonly first_uses: number
  /** Activations of experts that were used before. */
  readonly count: number
  /**
   * ProfInfer's reuse distance: tokens since the one that used the expert last; 1: the token before. With one sequence these are decode calls.
   * Null without any.
   */
  readonly mean_tokens: number | null
  /** Bucket i counts distances from 2^i to 2^(i+1) - 1 tokens. */
  readonly tokens_histogram: readonly number[]
  /** The stack distance: different experts that were used since; 0: none. A cache of more experts than it (LRU) still has the expert. */
  readonly mean_experts: number | null
  /** By stack distance, exact. */
  readonly experts_histogram: readonly number[]
}

/** All layers in one phase. */
export interface ExpertTotals {
  readonly activations: number
  /** Means of layers. */
  readonly entropy_share: number
  readonly gini: number
  readonly top_share: number
  /** Experts that were never chosen, of all layers. */
  readonly unused: number
  /** Of all tokens that have one before them. */
  readonly repeated_share: number | null
  readonly independent_share: number | null
  /** Of all reused experts. */
  readonly mean_reuse_tokens: number | null
  readonly mean_reuse_experts: number | null
  readonly distinct_per_batch: number
  readonly tokens_per_expert: number
}

/**
 * Pairs of a mean reuse distance (of the reused experts, in tokens) with the time of the matrix products that read them (wall time of
 * MUL_MAT_ID, barriers included), and with the page faults in these; of decode.
 */
export interface ReuseAndTime {
  /** Pairs. */
  readonly count: number
  /** Every so many calls or choices are a pair; 1: all. */
  readonly every: number
  /** The counter of page faults; null where none was recorded. */
  readonly fault_counter: string | null
  readonly time_with_reuse: Correlation | null
  readonly faults_with_reuse: Correlation | null
  readonly time_with_faults: Correlation | null
  /** Means of the pairs in four equal parts, shortest distance first. */
  readonly quarters: readonly ReuseQuarter[]
}

/** A part of pairs. */
export interface ReuseQuarter {
  readonly pairs: number
  readonly mean_reuse_tokens: number
  readonly mean_time_ns: number
  readonly mean_faults: number | null
}

/** Of two figures: Pearson's r, and Spearman's rank correlation (ties have the mean of their ranks). */
export interface Correlation {
  readonly pearson: number
  readonly spearman: number
}

/** A simulated cache of experts. It is empty at the start of the log: first uses are misses. */
export interface ExpertCache {
  /** As it was asked for: `25 %`, `16 experts a layer`, `8GB`. */
  readonly size: string
  /** `layer`: each layer has its own cache; `all`: the layers share one. */
  readonly scope: 'layer' | 'all'
  /** Experts that it contains, of all layers. */
  readonly experts: number
  readonly experts_share: number
  /** Null where the sizes of experts are not known. */
  readonly bytes: number | null
  readonly by_phase: Readonly<Partial<Record<Phase, CacheHits>>>
}

/** Activations whose expert was in the cache. */
export interface CacheHits {
  readonly activations: number
  /** The expert whose last use is longest ago is replaced. */
  readonly lru_share: number
  /** The expert with the fewest uses so far is replaced (uses while it was not in the cache count too), of several the one whose last use is longest ago. */
  readonly lfu_share: number | null
  /** Nothing is replaced: it contains the experts that this phase uses most, which is known only afterwards. */
  readonly pinned_share: number
  /** Contains the experts that the first half of the phase's tokens uses most; of the activations of the other half. */
  readonly learned_share: number | null
}
