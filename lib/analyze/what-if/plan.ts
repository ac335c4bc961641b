import type { RunFacts } from '../run/figures.ts'
import type { StepGroup } from '../series/figures.ts'
import type { ModelCall, RunModel, State } from './calls.ts'
import type { Changes } from './figures.ts'
import type { KernelTimes } from './kernels.ts'
import { at, type Line, lineOf } from './lines.ts'
import type { MemoryOf } from './memory.ts'

/** Bounds of the time, and what is most likely. */
export type Scenario = 'low' | 'expected' | 'high'
/** All scenarios. */
export const SCENARIOS = ['low', 'expected', 'high'] as const satisfies readonly Scenario[]

/** A factor of a time. */
export type Factor = Readonly<Record<Scenario, number>>

/** No change. */
export const SAME: Factor = { low: 1, expected: 1, high: 1 }

/** What is uncertain of a prediction, each by itself: where one is high, another may be low. `rounds …`: of the measurement of one shape of products. */
export type Source =
  | (
      | 'loss'
      | 'company'
      | 'products'
      | 'unusual'
      | 'attention'
      | 'steps'
      | 'barriers'
      | 'outside'
      | 'between'
      | 'threads'
    )
  | `rounds ${string}`

/** What each of them is. */
export type ScenarioOf = (source: Source) => Scenario

/** Factors that are uncertain for one reason each. */
export type Uncertain = readonly (readonly [source: Source, factor: Factor])[]

/** Their product. */
export const factorAt = (factors: Uncertain, scenarioOf: ScenarioOf): number =>
  factors.reduce((product, [source, factor]) => product * factor[scenarioOf(source)], 1)

/** Both factors, one after the other. */
export const times = (a: Factor, b: Factor): Factor => ({
  low: a.low * b.low,
  expected: a.expected * b.expected,
  high: a.high * b.high,
})

/** A factor between some, by default in their geometric middle. */
export function between(bounds: readonly number[], expected?: number): Factor {
  const [low, high] = [Math.min(...bounds), Math.max(...bounds)]
  return { low, expected: expected ?? Math.sqrt(low * high), high }
}

/** A phase that is predicted. */
export type PlannedPhase = 'decode' | 'prefill'

/** How a change acts on the calls of a phase. */
export interface Plan {
  /** What it rests on, a sentence each. */
  readonly basis: readonly string[]
  readonly removesPreemption?: boolean
  /** What is uncertain of it. */
  readonly sources: readonly Source[]
  /** Changes the state of a call. */
  apply(call: ModelCall, state: State, scenarioOf: ScenarioOf): void
}

/** `unchanged`: the change does nothing. */
export type Planned = Plan | 'unchanged' | Refusal

/** Why it cannot be said. */
export interface Refusal {
  readonly refused: string
}

/** Can it not be said? */
export const isRefusal = (planned: Planned): planned is Refusal => planned !== 'unchanged' && 'refused' in planned

/** A refusal with its reason. */
export const refuse = (refused: string): Refusal => ({ refused })

/** What plans are made from. */
export interface PlanContext {
  /** All of them. */
  readonly changes: Changes
  readonly model: RunModel
  readonly phase: PlannedPhase
  readonly calls: readonly ModelCall[]
  readonly run: Pick<RunFacts, 'cpu' | 'build' | 'weights'>
  /** What its products read weights from. */
  readonly memoryOf: MemoryOf
  /** CPUs that the run could use; null: not known. */
  readonly cpus: number | null
  /** Measured products of ggml. */
  readonly kernels: KernelTimes | undefined
  /** Bytes per second that so many threads read from memory; undefined: not measured. */
  readonly bandwidth: ((threads: number) => number | undefined) | undefined
  /** Runs of the same program with other numbers of threads. */
  readonly others: readonly RunModel[]
  /** Of a call, before the changes: what lines are fitted on. */
  stateOf(call: ModelCall): State
}

/** Of a call, the time of a group's steps in ns, with their barriers, before the changes. */
export const wallOf =
  ({ stateOf }: PlanContext, group: number) =>
  (call: ModelCall): number =>
    stateOf(call).compute[group]! + stateOf(call).overhead[group]!

/** Decode calls that are necessary: fewer show neither what is usual nor how much it varies. */
export const CALLS_MIN = 16

/** Lines of all parts of calls against their context. */
export interface UsualCall {
  readonly compute: readonly Line[]
  readonly overhead: readonly Line[]
  readonly outside: Line
  readonly between: Line
}

/** The lines of these calls. */
export function usualOf(
  calls: readonly ModelCall[],
  groups: readonly StepGroup[],
  stateOf: (call: ModelCall) => State,
): UsualCall {
  const xs = calls.map(({ contextTokens }) => contextTokens)
  const states = calls.map(stateOf)
  const line = (value: (state: State) => number) => lineOf(xs, states.map(value))
  return {
    compute: groups.map((_, group) => line(({ compute }) => compute[group]!)),
    overhead: groups.map((_, group) => line(({ overhead }) => overhead[group]!)),
    outside: line(({ outsideNs }) => outsideNs),
    between: line(({ betweenNs }) => betweenNs),
  }
}

/** Makes a call what a usual one with its context is. */
export function makeUsual(usual: UsualCall, { contextTokens }: ModelCall, state: State): void {
  const heightOf = (line: Line) => Math.max(at(line, contextTokens), 0)
  for (const [group, line] of usual.compute.entries()) state.compute[group] = heightOf(line)
  for (const [group, line] of usual.overhead.entries()) state.overhead[group] = heightOf(line)
  state.outsideNs = heightOf(usual.outside)
  state.betweenNs = heightOf(usual.between)
}

/** Multiplies all parts of a call. */
export function scale(state: State, by: number): void {
  for (let group = 0; group < state.compute.length; group++) {
    state.compute[group]! *= by
    state.overhead[group]! *= by
  }
  state.outsideNs *= by
  state.betweenNs *= by
}

/** A phase after the changes: the states of its calls, or why it cannot be said. */
export interface PhaseAfter {
  readonly phase: PlannedPhase
  readonly calls: readonly ModelCall[]
  readonly after: readonly State[]
  readonly basis: readonly string[]
  /** Times of the phase, as factors of those of the run. */
  readonly factor: Readonly<Record<Scenario, number>>
  /** By which two starts of the program differ, as a share. */
  readonly error: number
}
