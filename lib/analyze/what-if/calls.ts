import type { Analysis } from '../analysis.ts'
import type { CallRow } from '../calls/figures.ts'
import { mainContext } from '../calls/main-context.ts'
import type { StepGroup, StepSeries, StepsOfCall } from '../series/figures.ts'

/** Steps of a call may exceed its time by this share: clocks of threads differ. */
const EXCESS_MAX = 0.02

/** The time of a call in parts that sum to it, in ns. Lists are by group of steps. */
export interface State {
  /** The slowest worker of each step. */
  readonly compute: number[]
  /** Barriers, and the gaps before steps. */
  readonly overhead: number[]
  /** In the call, outside of its steps. */
  outsideNs: number
  /** From the end of the call before it to its start. */
  betweenNs: number
}

/** A call from which others are predicted. */
export interface ModelCall {
  readonly call: number
  readonly tokens: number
  readonly sequences: number
  /** Tokens in the context before it, of several sequences their mean. */
  readonly contextTokens: number
  /** Places of the KV cache that attention reads, with masked ones; 0: not known. */
  readonly cacheTokens: number
  readonly workers: number
  readonly isFirst: boolean
  readonly isPreempted: boolean
  readonly hasFaults: boolean
  /** By group. */
  readonly steps: readonly number[]
  /** Tokens of all these, of products with weights; 0: not known. */
  readonly stepTokens: readonly number[]
  /** Of these, those in which no thread lost its CPU, and their time. */
  readonly quietSteps: readonly number[]
  readonly quietNs: readonly number[]
  /** Time that the thread of the call lost, and by how much its steps were longer. */
  readonly lostNs: number
  readonly measured: State
  /** Without preemption. */
  readonly undisturbed: State
}

/** The calls of a run that are alike: those of one llama_context, which drafts for no other one. */
export interface RunModel {
  readonly groups: readonly StepGroup[]
  readonly decode: readonly ModelCall[]
  /** Those before the first decode. */
  readonly prefill: readonly ModelCall[]
  /** Its tokens are drafted by another model, whose calls are a part of their time. */
  readonly hasDrafts: boolean
  readonly hasStates: boolean
  readonly hasFaults: boolean
  readonly workers: number
}

/** The time of a call. */
export const totalNs = ({ compute, overhead, outsideNs, betweenNs }: State): number => {
  let sum = outsideNs + betweenNs
  for (let i = 0; i < compute.length; i++) sum += compute[i]! + overhead[i]!
  return sum
}

/** A state that may be changed. */
export const copyOf = ({ compute, overhead, outsideNs, betweenNs }: State): State => ({
  compute: [...compute],
  overhead: [...overhead],
  ...{ outsideNs, betweenNs },
})

/** Undefined where the Analysis lacks the series, or no calls with operators. */
export function modelOf({ series, calls: { contexts } }: Analysis): RunModel | undefined {
  const { calls, steps } = series ?? {}
  if (!calls || !steps || steps.calls.length === 0) return undefined
  const byCall = new Map(steps.calls.map((call) => [call.call, call]))
  const rows = calls.rows.filter(({ call, result }) => result === 0 && byCall.has(call))
  const main = mainContext(contexts)
  const own = rows.filter(({ context }) => !main || context === main.context)
  const decodes = own.filter(isDecode)
  const sequences = mostFrequent(decodes.map((row) => row.sequences))
  const firstDecode = decodes[0]?.call ?? Infinity
  const isPrompt = ({ phase, call }: CallRow) => phase === 'prefill' && call < firstDecode
  const make = (rows: readonly CallRow[]) =>
    rows.flatMap((row, i) => callOf(row, byCall.get(row.call)!, steps, i === 0) ?? [])
  const decode = make(decodes.filter((row) => row.sequences === sequences))
  const prefill = make(own.filter(isPrompt))
  return {
    groups: steps.groups,
    decode,
    prefill,
    hasDrafts: main?.role === 'target',
    hasStates: steps.has_states,
    hasFaults: steps.calls.some(({ major_faults }) => major_faults !== null),
    workers: Math.max(0, ...[...decode, ...prefill].map(({ workers }) => workers)),
  }
}

/** One token of each sequence, and its time is known. */
const isDecode = ({ phase, tpot_ns, tokens, sequences }: CallRow) =>
  phase === 'decode' && tpot_ns !== null && tokens === sequences

function mostFrequent(values: readonly number[]): number | undefined {
  const counts = new Map<number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0]
}

function callOf(
  { call, tokens, sequences, context_tokens, time_ns, tpot_ns, phase }: CallRow,
  steps: StepsOfCall,
  { groups }: StepSeries,
  isFirst: boolean,
): ModelCall | undefined {
  const inStepsNs = sumOf(steps.time_ns)
  if (context_tokens === null || tokens === null || inStepsNs > time_ns * (1 + EXCESS_MAX)) return undefined
  const list = (value: (group: number) => number) => groups.map((_, group) => value(group))
  const [timeOf, computeOf, quietOf] = [steps.time_ns, steps.compute_ns, steps.undisturbed_ns].map(
    (all) => (group: number) => all[group] ?? 0,
  )
  const outsideNs = Math.max(time_ns - inStepsNs, 0)
  const betweenNs = phase === 'decode' ? Math.max(tpot_ns! - time_ns, 0) : 0
  const shareOf = (group: number) => (timeOf!(group) > 0 ? quietOf!(group) / timeOf!(group) : 1)
  const overheadOf = (group: number) => timeOf!(group) - computeOf!(group)
  const lostNs = Math.min(steps.preempted_outside_ns, outsideNs)
  const lostBeforeNs = Math.min(steps.preempted_before_ns, betweenNs)
  const undisturbedNs = sumOf(steps.undisturbed_ns)
  return {
    ...{ call, tokens, sequences, isFirst },
    contextTokens: context_tokens,
    cacheTokens: steps.cache_tokens ?? 0,
    workers: steps.workers,
    isPreempted: lostNs + lostBeforeNs > 0 || steps.undisturbed_ns.some((ns, group) => ns < timeOf!(group)),
    hasFaults: (steps.major_faults ?? 0) > 0,
    steps: list((group) => steps.steps[group] ?? 0),
    stepTokens: list((group) => steps.tokens?.[group] ?? 0),
    quietSteps: list((group) => steps.quiet_steps[group] ?? 0),
    quietNs: list((group) => steps.quiet_ns[group] ?? 0),
    lostNs: lostNs + lostBeforeNs + Math.max(inStepsNs - undisturbedNs, 0),
    measured: { compute: list(computeOf!), overhead: list(overheadOf), outsideNs, betweenNs },
    undisturbed: {
      compute: list((group) => computeOf!(group) * shareOf(group)),
      overhead: list((group) => overheadOf(group) * shareOf(group)),
      ...{ outsideNs: outsideNs - lostNs, betweenNs: betweenNs - lostBeforeNs },
    },
  }
}

/** The sum of values. */
export const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)
