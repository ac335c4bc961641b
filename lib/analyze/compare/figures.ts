import type { Phase } from '../../model/events.ts'

/** Version of the document; another major number where a field changes its meaning or is removed. */
export const COMPARISON_SCHEMA = 'ggml2perfetto.comparison/1'

/**
 * How runs of two sides differ. The unit is the run: tokens of one process are not independent. Plain JSON with the conventions of
 * an {@link Analysis}.
 */
export interface Comparison {
  readonly schema: typeof COMPARISON_SCHEMA
  /** All of it in one sentence. */
  readonly verdict: string
  readonly before: ComparedSide
  readonly after: ComparedSide
  /** In what the sides differ, apart from their times. */
  readonly differences: readonly Difference[]
  /** Is there no difference that explains other times by itself, such as another model? */
  readonly is_comparable: boolean
  /** Figures that were compared at once, of speed and others: intervals are corrected for their number. */
  readonly compared_speeds: number
  readonly compared_others: number
  /** Of all intervals of speed together, and of all others: they contain all their true values in this share of comparisons. */
  readonly level_share: number
  /** Changes with this certainty are named as such. */
  readonly named_level_share: number
  /** Regressions first, largest loss of time first; then improvements; then what is not clear. */
  readonly effects: readonly Effect[]
  /** Findings that are more frequent on one side than equal sides would have them. */
  readonly findings: readonly ChangedFinding[]
}

/** The runs of one side. */
export interface ComparedSide {
  readonly name: string
  readonly runs: number
  /** The inputs of each run. */
  readonly inputs: readonly (readonly string[])[]
}

/** A fact that differs. */
export interface Difference {
  readonly what: string
  /** The values of its runs, as text. */
  readonly before: string
  readonly after: string
  /** Does it explain other times by itself? Then the sides are not comparable. */
  readonly is_obstacle: boolean
}

/** What is compared. */
export type EffectGroup = 'speed' | 'part' | 'role' | 'layer' | 'type' | 'worker' | 'memory'

/**
 * `slower`, `faster`: named with {@link Comparison.named_level_share}; `maybe …`: with {@link Comparison.level_share}; `unclear`: neither. `new`, `gone`:
 * all runs of one side have it, and none of the other.
 */
export type Verdict =
  | 'slower'
  | 'faster'
  | 'maybe slower'
  | 'maybe faster'
  | 'unclear'
  | 'same'
  | 'more'
  | 'less'
  | 'new'
  | 'gone'

/** One figure of both sides. */
export interface Effect {
  readonly group: EffectGroup
  readonly phase: Phase | null
  /** Such as `TPOT`, `ffn_up MUL_MAT`, `blk.3`, `Q4_K`. */
  readonly name: string
  /** Of the values. Times of parts, operators and workers are per call of the phase. */
  readonly unit: 'ns' | 'bytes'
  /** Geometric mean over the runs; null: no run of this side has it. */
  readonly before: number | null
  readonly after: number | null
  /** Runs that have it. */
  readonly runs_before: number
  readonly runs_after: number
  /** after / before − 1, and its interval; null where there are too few runs, or some runs of a side do not have it. */
  readonly change_share: number | null
  readonly low_share: number | null
  readonly high_share: number | null
  readonly verdict: Verdict
}

/** A finding that appeared or vanished. `maybe …`: all runs of one side have it and none of the other, of so few runs that it may be chance. */
export interface ChangedFinding {
  readonly rule: string
  readonly phase: string | null
  readonly change: 'appeared' | 'vanished' | 'maybe appeared' | 'maybe vanished'
  /** Of one of the runs that have it. */
  readonly sentence: string
  readonly runs_before: number
  readonly runs_after: number
}
