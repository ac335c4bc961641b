import { randomOf } from '../../model/random.ts'
import type { StepGroup } from '../series/figures.ts'
import { type ModelCall, type RunModel, type State, sumOf, totalNs } from './calls.ts'
import { at, lineOf } from './lines.ts'

/** This share of predictions is within the interval. */
export const LEVEL = 0.9
/** Two starts of the same program differ by this, at least: clock rates, and where memory is. On the machine of the trials it was 4 to 5 %. */
const ERROR_MIN = 0.045
/** The same for what is predicted from few calls. */
const ERROR_MIN_OF_FEW = 0.07
/** The error where nothing in the run shows how much it varies. */
const ERROR_UNKNOWN = 0.25
/** A larger error says nothing of a change that is smaller. */
export const ERROR_MAX = 0.5
/** Blocks of successive calls that are held out by turns. Fewer than 4 show nothing. */
const BLOCKS = 16
const BLOCKS_MIN = 4
/** Of more blocks, so many are held out, evenly spread: each takes as long as all calls are many. */
const HELD_MAX = 24
/** Of few blocks, no quantile is the one that is sought: the largest residual is taken so many times. */
const BEYOND_ALL = 1.5
/** 90 % of normal errors are within so many standard errors. */
const OF_NORMAL = 1.645
/** Samples of whole calls, and the seed of their random numbers: the same input gives the same interval. */
const SAMPLES = 400
const SEED = 0x9e3779b9

/**
 * The error of the model, as a share of the time, by conformal prediction: successive calls in blocks, each of which is predicted from the
 * line through all others; the quantile of the relative residuals of their means. Without the first call, whose caches are cold.
 */
export function conformalError(all: readonly ModelCall[], allNs: readonly number[]): number {
  const blocks = Math.min(BLOCKS, Math.floor((all.length - 1) / 2))
  return Math.max(quantileOf(residuals(all, allNs, blocks)) ?? ERROR_UNKNOWN, ERROR_MIN)
}

/** Relative residuals of blocks of calls, ascending. */
function residuals(all: readonly ModelCall[], allNs: readonly number[], blocks: number): number[] {
  const isUsual = (_: unknown, i: number) => !all[i]!.isFirst
  const [calls, ns] = [all.filter(isUsual), allNs.filter(isUsual)]
  const blockOf = (i: number) => Math.floor((i * blocks) / calls.length)
  const held = Math.min(blocks, HELD_MAX)
  return Array.from({ length: held }, (_, n) => {
    const block = Math.floor((n * blocks) / held)
    const indexes = (isIn: boolean) => calls.flatMap((_, i) => ((blockOf(i) === block) === isIn ? [i] : []))
    const [own, others] = [indexes(true), indexes(false)]
    const line = lineOf(
      others.map((i) => calls[i]!.contextTokens),
      others.map((i) => ns[i]!),
    )
    const expected = sumOf(own.map((i) => at(line, calls[i]!.contextTokens)))
    return expected > 0 ? Math.abs(sumOf(own.map((i) => ns[i]!)) / expected - 1) : 0
  }).sort((a, b) => a - b)
}

/** That of 90 % with the correction for few; undefined for too few. */
function quantileOf(sorted: readonly number[]): number | undefined {
  if (sorted.length < BLOCKS_MIN) return undefined
  const rank = Math.ceil((sorted.length + 1) * LEVEL)
  return rank <= sorted.length ? sorted[rank - 1] : BEYOND_ALL * sorted.at(-1)!
}

/**
 * The error of what is predicted from few calls, such as a prompt, which show nothing of how much they vary. It is the largest of what two runs differ by at
 * least; of what stretches of decoding differ that take as long; and of what groups of steps differ that compute the same in these calls, such as
 * `ffn_gate` and `ffn_up`.
 */
export function errorOfFew(
  calls: readonly ModelCall[],
  { decode, groups }: RunModel,
  stateOf: (call: ModelCall) => State,
): number {
  const ns = decode.map((call) => totalNs(stateOf(call)))
  const length = sumOf(calls.map((call) => totalNs(stateOf(call)))) / (sumOf(ns) / decode.length)
  const blocks = Math.min(
    Math.max(Math.floor((decode.length - 1) / length), BLOCKS_MIN),
    Math.floor((decode.length - 1) / 2),
  )
  const ofStretches = decode.length > 0 ? quantileOf(residuals(decode, ns, blocks)) : undefined
  return Math.max(ofStretches ?? ERROR_UNKNOWN, errorOfAlike(calls, groups, stateOf), ERROR_MIN_OF_FEW)
}

/** By what groups of steps differ from the mean of those with the same shape, as independent errors of their sum; 0 without any. */
function errorOfAlike(
  calls: readonly ModelCall[],
  groups: readonly StepGroup[],
  stateOf: (call: ModelCall) => State,
): number {
  const byShape = new Map<string, { ns: number; steps: number }[]>()
  for (const [i, { op, type, weight_elements, weight_columns }] of groups.entries()) {
    const steps = sumOf(calls.map((call) => call.steps[i]!))
    if (weight_elements === 0 || steps === 0) continue
    const key = [op, type, weight_elements, weight_columns].join()
    const ns = sumOf(calls.map((call) => stateOf(call).compute[i]! + stateOf(call).overhead[i]!))
    byShape.set(key, [...(byShape.get(key) ?? []), { ns, steps }])
  }
  let [all, squares] = [0, 0]
  for (const alike of byShape.values()) {
    if (alike.length < 2) continue
    const usual = sumOf(alike.map(({ ns }) => ns)) / sumOf(alike.map(({ steps }) => steps))
    for (const { ns, steps } of alike) {
      all += ns
      squares += (ns - usual * steps) ** 2 * (alike.length / (alike.length - 1))
    }
  }
  return all > 0 ? (OF_NORMAL * Math.sqrt(squares)) / all : 0
}

/** The quantile of the means of samples of whole calls. */
export function resampled(values: readonly number[], quantile: number): number {
  const random = randomOf(SEED)
  const means = Array.from({ length: SAMPLES }, () => {
    let sum = 0
    for (let i = 0; i < values.length; i++) sum += values[Math.floor(random() * values.length)]!
    return sum / values.length
  }).sort((a, b) => a - b)
  return means[Math.min(Math.floor(quantile * SAMPLES), SAMPLES - 1)]!
}
