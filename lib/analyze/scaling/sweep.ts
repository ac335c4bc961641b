import type { Analysis } from '../analysis.ts'
import type { Difference } from '../compare/figures.ts'
import { logRatio, margins, tailOfEach } from '../compare/interval.ts'
import { disturbancesOf, hasTooMany, obstaclesOf, type ScaledPhase, speedOf } from './runs.ts'

/** A run of a sweep, with the value that it had. */
export interface SweptRun {
  readonly value: string
  readonly analysis: Analysis
}

/** The speed of a phase by the values of a sweep. */
export interface SweepPhase {
  readonly phase: ScaledPhase
  /** In the order given. */
  readonly values: readonly SweptValue[]
  /** Values whose runs have more workers than a limit permits CPUs, and too little time in the phase to show its effect. With any, none is recommended. */
  readonly short: readonly string[]
  /** The value that is recommended; null where nothing is. */
  readonly recommended: Recommendation | null
}

/** Speed with a value, of the runs that nothing disturbed. */
export interface SweptValue {
  readonly value: string
  /** Tokens per second of each run. */
  readonly speeds: readonly number[]
  /** Their geometric mean; null without runs. */
  readonly tokens_per_s: number | null
}

/** The first of the values that are about as fast as the fastest one. */
export interface Recommendation {
  readonly value: string
  readonly tokens_per_s: number
  /** The value that could be faster by most, and by which factor at most (95 %); Infinity: not known, of one run each. */
  readonly rival: { readonly value: string; readonly factor_max: number }
  /** Is no other one faster by more than {@link WITHIN}? */
  readonly is_certain: boolean
}

/** What a sweep shows. */
export interface SweepFigures {
  /** Runs that are left out, and the rules that say why. */
  readonly disturbed: readonly { readonly value: string; readonly rules: readonly string[] }[]
  /** What makes the runs not comparable. With any, no value is recommended. */
  readonly differences: readonly Difference[]
  /** Values of which too few runs are left. With any, no value is recommended. */
  readonly lacking: readonly string[]
  /** Has each run more workers than CPUs? Then it is not known whether other programs took these. */
  readonly is_disturbance_hidden: boolean
  readonly phases: readonly SweepPhase[]
}

/** Of values as fast as the fastest one within this share, the first is recommended. */
const ALIKE = 0.02
/** A recommendation is certain if no other value is faster by more than this share. */
export const WITHIN = 0.03
const LEVEL = 0.95
/** Of a phase, in each run. A limit permits what it grants for a period (0.1 s) at once: of a shorter time, that is more than {@link WITHIN}. */
export const LIMITED_NS_MIN = 2e9
/** Runs of a value that are necessary where more were made: the spread of one is not known. */
const RUNS_MIN = 2

/** Which of the values of an option is the best one, by runs that were recorded by turns. */
export function sweep(runs: readonly SweptRun[]): SweepFigures {
  const values = [...new Set(runs.map(({ value }) => value))]
  const differences = obstaclesOf(runs.map(({ analysis }) => analysis))
  const disturbed = runs.flatMap(({ value, analysis }) => {
    const rules = disturbancesOf(analysis)
    return rules.length > 0 ? [{ value, rules }] : []
  })
  const quiet = runs.filter(({ analysis }) => disturbancesOf(analysis).length === 0)
  const countOf = (all: readonly SweptRun[], value: string) => all.filter((run) => run.value === value).length
  const lacking = values.filter((value) => countOf(quiet, value) < Math.min(RUNS_MIN, countOf(runs, value)))
  const isComparable = differences.length === 0 && lacking.length === 0
  return {
    disturbed,
    differences,
    lacking,
    is_disturbance_hidden: runs.every(({ analysis }) => analysis.scheduling === null || hasTooMany(analysis)),
    phases: (['decode', 'prefill'] as const).flatMap((phase) => {
      const swept = values.map((value) => sweptValue(value, quiet, phase))
      if (swept.every(({ speeds }) => speeds.length === 0)) return []
      const short = values.filter((value) => quiet.some((run) => run.value === value && isShort(run.analysis, phase)))
      const canSay = isComparable && short.length === 0
      return [{ phase, values: swept, short, recommended: canSay ? recommendationOf(swept) : null }]
    }),
  }
}

function isShort({ run, call_time }: Analysis, phase: ScaledPhase): boolean {
  const limit = run.limits?.cpu_time ?? Infinity
  const ns = call_time.find((time) => time.phase === phase)?.time_ns ?? 0
  return run.workers > limit && ns > 0 && ns < LIMITED_NS_MIN
}

function sweptValue(value: string, runs: readonly SweptRun[], phase: ScaledPhase): SweptValue {
  const speeds = runs.flatMap((run) => {
    const speed = run.value === value ? speedOf(run.analysis, phase) : 0
    return speed > 0 ? [speed] : []
  })
  const logs = speeds.reduce((sum, speed) => sum + Math.log(speed), 0)
  return { value, speeds, tokens_per_s: speeds.length > 0 ? Math.exp(logs / speeds.length) : null }
}

function recommendationOf(values: readonly SweptValue[]): Recommendation | null {
  if (values.length < 2 || values.some(({ tokens_per_s }) => tokens_per_s === null)) return null
  const best = Math.max(...values.map(({ tokens_per_s }) => tokens_per_s!))
  const chosen = values.find(({ tokens_per_s }) => tokens_per_s! >= best * (1 - ALIKE))!
  const ratios = values
    .filter((other) => other !== chosen)
    .map(({ value, speeds }) => ({ value, ratio: logRatio(chosen.speeds, speeds) }))
  const marginOf = margins(ratios.map(({ ratio }) => ratio))
  const tail = tailOfEach(LEVEL, ratios.length)
  const rivals = ratios.map(({ value, ratio }) => ({
    value,
    factor_max: Math.exp(ratio.estimate + marginOf(ratio, tail)),
  }))
  const rival = rivals.reduce((a, b) => (b.factor_max > a.factor_max ? b : a))
  const { value, tokens_per_s } = chosen
  return { value, tokens_per_s: tokens_per_s!, rival, is_certain: rival.factor_max <= 1 + WITHIN }
}
