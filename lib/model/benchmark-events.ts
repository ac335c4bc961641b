import { type Bounds, wrongAmount, wrongSpan } from './bounds.ts'

/**
 * A speed that a program measured itself: a test of llama-bench, or what llama.cpp prints at the end of a run. Drawn as a slice with
 * its repetitions in it, and compared as a figure of its own: the work in it is not recorded.
 */
export interface BenchmarkEvent {
  readonly kind: 'benchmark'
  /** Counts the tests of an input from 0. */
  readonly test: number
  /** Name of the test, as the program has it: `pp512`, `tg128`, `pp512+tg128 @ d4096`, `eval`. */
  readonly name: number
  /** From the start of its first repetition to the end of its last one, as far as they are known; see {@link inferred}. */
  readonly startNs: number
  readonly endNs: number
  /** Tokens of the prompt in each repetition; -1 = not known. */
  readonly promptTokens: number
  /** Tokens generated one after the other in each repetition; -1 = not known. */
  readonly generatedTokens: number
  /** Tokens in the context before the test. */
  readonly depth: number
  /** Duration of each repetition, in ns, in their order; empty where the input contains only their mean. */
  readonly samplesNs: readonly number[]
  /** Mean and standard deviation (n − 1) over the repetitions, as the program states them; -1 = not known. */
  readonly stated: BenchmarkSpeeds
  /** Model, build, devices and options of the test. */
  readonly parameters: Readonly<Record<string, string | number>>
  readonly inferred: number
}

/** Speeds of the repetitions of a test, in tokens a second. */
export interface BenchmarkSpeeds {
  readonly mean: number
  readonly deviation: number
}

/** Its ranges. */
export const BENCHMARK_BOUNDS: Bounds<BenchmarkEvent> = {
  benchmark: (event) => wrongSpan(event.startNs, event.endNs) ?? wrongAmount(event),
}
