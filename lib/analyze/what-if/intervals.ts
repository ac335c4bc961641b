import { type ModelCall, sumOf } from './calls.ts'
import { at, lineOf } from './lines.ts'

/** This share of predictions is within the interval. */
export const LEVEL = 0.9
/** Two runs of the same differ by this, at least: clock rates, and where memory is. */
const ERROR_MIN = 0.02
/** The same for what is predicted from a single call. */
export const ERROR_OF_ONE = 0.05
/** A larger error says nothing of a change that is smaller. */
export const ERROR_MAX = 0.5
/** Blocks of successive calls that are held out by turns. */
const BLOCKS = 16
/** Samples of whole calls, and the seed of their random numbers: the same input gives the same interval. */
const SAMPLES = 400
const SEED = 0x9e3779b9

/**
 * The error of the model, as a share of the time, by conformal prediction: successive calls in blocks, each of which is predicted from the
 * line through all others; the quantile of the relative residuals of their means. Without the first call, whose caches are cold.
 */
export function conformalError(all: readonly ModelCall[], allNs: readonly number[]): number {
  const isUsual = (_: unknown, i: number) => !all[i]!.isFirst
  const [calls, ns] = [all.filter(isUsual), allNs.filter(isUsual)]
  const blocks = Math.min(BLOCKS, Math.floor(calls.length / 2))
  if (blocks < 4) return ERROR_OF_ONE
  const blockOf = (i: number) => Math.floor((i * blocks) / calls.length)
  const residuals = Array.from({ length: blocks }, (_, block) => {
    const indexes = (isIn: boolean) => calls.flatMap((_, i) => ((blockOf(i) === block) === isIn ? [i] : []))
    const [own, others] = [indexes(true), indexes(false)]
    const line = lineOf(
      others.map((i) => calls[i]!.contextTokens),
      others.map((i) => ns[i]!),
    )
    const expected = sumOf(own.map((i) => at(line, calls[i]!.contextTokens)))
    return expected > 0 ? Math.abs(sumOf(own.map((i) => ns[i]!)) / expected - 1) : 0
  }).sort((a, b) => a - b)
  const rank = Math.min(Math.ceil((residuals.length + 1) * LEVEL), residuals.length)
  return Math.max(residuals[rank - 1]!, ERROR_MIN)
}

/** mulberry32: a number from 0 to 1 at each call. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The quantile of the means of samples of whole calls. */
export function resampled(values: readonly number[], quantile: number): number {
  const random = randomFrom(SEED)
  const means = Array.from({ length: SAMPLES }, () => {
    let sum = 0
    for (let i = 0; i < values.length; i++) sum += values[Math.floor(random() * values.length)]!
    return sum / values.length
  }).sort((a, b) => a - b)
  return means[Math.min(Math.floor(quantile * SAMPLES), SAMPLES - 1)]!
}
