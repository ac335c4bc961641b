/** A speed that a program measured itself: a test of llama-bench. */
export interface BenchmarkFigures {
  /** Such as `pp512`, `tg128`, `pp512+tg128 @ d4096`. */
  readonly test: string
  /** The format of its input. */
  readonly source: string
  /** Tokens in each repetition: of the prompt, and generated one after the other; null = not known. */
  readonly prompt_tokens: number | null
  readonly generated_tokens: number | null
  /** Tokens in the context before. */
  readonly depth: number
  /** Null where only their mean is known. */
  readonly repetitions: number | null
  /** Of one repetition, on average. */
  readonly time_ns: number
  /** Mean of the speeds of the repetitions, as llama-bench has it. */
  readonly tokens_per_s: number
  /** Their standard deviation (n − 1); null for a single one. */
  readonly deviation_tokens_per_s: number | null
  /** Durations of the repetitions, in their order. */
  readonly samples_ns: readonly number[]
  /** Options, model, build and devices of the test. */
  readonly parameters: Readonly<Record<string, string | number>>
}
