import { UsageError } from '../../errors.ts'
import { plural } from '../../model/units.ts'
import { ANALYSIS_SCHEMA, type Analysis } from '../analysis.ts'
import { ANALYSIS_HINT, checkGiven } from '../common/given.ts'
import type { PeakFigures } from '../model/figures.ts'
import { obstaclesOf, usableCpus } from '../scaling/runs.ts'
import { copyOf, type ModelCall, modelOf, type RunModel, sumOf, totalNs } from './calls.ts'
import { alreadySo, checkChanges } from './changes.ts'
import { withContext } from './context.ts'
import { type Changes, type Predicted, WHAT_IF_SCHEMA, type WhatIf } from './figures.ts'
import { conformalError, ERROR_MAX, errorOfFew } from './intervals.ts'
import type { KernelTimes } from './kernels.ts'
import { memoryOf } from './memory.ts'
import { withThreadsOf } from './other-threads.ts'
import { partsOf } from './parts.ts'
import {
  CALLS_MIN,
  isRefusal,
  type PhaseAfter,
  type Plan,
  type PlanContext,
  type Planned,
  type PlannedPhase,
  type Refusal,
  refuse,
  SCENARIOS,
  type ScenarioOf,
} from './plan.ts'
import { sentenceOf } from './sentence.ts'
import { withSettings } from './settings.ts'
import { NO_SPREAD, type Spread, sampling, spreadOf, together } from './spread.ts'
import { withUsualSteps } from './usual-steps.ts'
import { withoutDisturbance } from './without.ts'

export * from './figures.ts'

/** What a prediction may rest on in addition to the run. */
export interface Evidence {
  /** Of the same program with other numbers of threads, with the same series. */
  readonly others?: readonly Analysis[] | undefined
  /** Measured products of ggml. */
  readonly kernels?: KernelTimes | undefined
  readonly peaks?: PeakFigures | undefined
}

/**
 * Predicts what changes make of a run, from its own calls: each is taken apart into its steps, and the changed parts are put in. `analysis`:
 * with the series `calls` and `steps`. Deterministic. Throws UsageError for changes that are none, and for an Analysis without these series;
 * what the run does not show is refused in the document (`why`).
 */
export function predict(analysis: Analysis, changes: Changes, evidence: Evidence = {}): WhatIf {
  const { others = [] } = evidence
  for (const given of [analysis, ...others]) checkSeries(given)
  checkChanges(changes)
  const model = runModelOf(analysis)
  const { decode_tokens_per_s, tpot_ns, ttft_ns } = analysis.calls
  const facts = factsOf(analysis, evidence)
  const phases = (['decode', 'prefill'] as const).map((phase) => phaseAfter(phase, model, changes, facts))
  const [decode, prefill] = phases.map((after) => ofAnotherStart(after, phases)) as [After, After]
  const sequences = model?.decode[0]?.sequences
  const perCall = sequences === undefined ? 1 : (changes.batch ?? sequences) / sequences
  const inverse = (ns: Predicted): Predicted => {
    const by = (value: number | null) => (value === null ? null : (perCall * decode_tokens_per_s! * tpot_ns!) / value)
    return { now: decode_tokens_per_s, expected: by(ns.expected), low: by(ns.high), high: by(ns.low), why: ns.why }
  }
  const tpot = predicted(tpot_ns, decode, 'no decode calls were timed')
  const ttft = predicted(ttft_ns, prefill, 'no prompt before the first decode was recorded')
  const all = [decode, prefill].flatMap((after) => ('refused' in after ? [] : [after]))
  const { threads, ...further } = changes
  const hasThreads = threads === analysis.run.workers && Object.values(further).every((change) => change === undefined)
  const is_unchanged = hasThreads || (all.length > 0 && all.every(isSame))
  const figures = { decode_tokens_per_s: inverse(tpot), tpot_ns: tpot, ttft_ns: ttft }
  return {
    schema: WHAT_IF_SCHEMA,
    changes,
    sentence: sentenceOf(figures, is_unchanged ? alreadySo(changes) : undefined),
    is_unchanged,
    ...figures,
    parts: all.flatMap((after) => partsOf(after, model!.groups)),
    basis: [...new Set(all.flatMap(({ basis }) => basis))],
  }
}

type After = PhaseAfter | Refusal

const isSame = ({ factor }: PhaseAfter) => SCENARIOS.every((scenario) => factor[scenario] === 1)

/** A phase that the changes do not touch, where they touch another one: it differs as two starts of the program do. */
function ofAnotherStart(after: After, phases: readonly After[]): After {
  if ('refused' in after || !isSame(after) || phases.every((other) => 'refused' in other || isSame(other))) return after
  const by = 1 + after.error
  const why = `${after.phase}: no change acts on it; two starts of the program differ by ± ${Math.round(100 * after.error)} %`
  return { ...after, factor: { low: 1 / by, expected: 1, high: by }, basis: [...after.basis, why] }
}

function runModelOf(analysis: Analysis): RunModel | undefined {
  const model = modelOf(analysis)
  return model && withUsualSteps(model)
}

function checkSeries(analysis: Analysis): void {
  checkGiven('what-if: analysis', analysis, [ANALYSIS_SCHEMA], ANALYSIS_HINT)
  if (analysis.series?.calls === undefined || analysis.series.steps === undefined)
    throw new UsageError(
      `what-if: the Analysis has no series of calls and steps\nhint: analyze(log, { series: ['calls', 'steps'] }), or stats <logs> --json --series calls,steps`,
    )
}

/** What is known of the run as a whole, and of what was given with it. */
interface Facts extends Pick<PlanContext, 'run' | 'memoryOf' | 'cpus' | 'kernels' | 'bandwidth'> {
  /** Or why they cannot be compared with the run. */
  readonly others: readonly RunModel[] | Refusal
}

function factsOf(analysis: Analysis, { others = [], kernels, peaks }: Evidence): Facts {
  const { run } = analysis
  const cpus = usableCpus(analysis) ?? null
  const arePeaksOwn = peaks && (peaks.device == null || peaks.device === run.cpu)
  return {
    ...{ run, cpus, kernels, memoryOf: memoryOf(analysis) },
    bandwidth: arePeaksOwn
      ? (threads) =>
          peaks.by_threads?.find((rates) => rates.threads >= threads)?.bytes_per_s ?? peaks.bytes_per_s ?? undefined
      : undefined,
    others: others.length > 0 ? othersOf(analysis, others) : [],
  }
}

function othersOf(analysis: Analysis, others: readonly Analysis[]): readonly RunModel[] | Refusal {
  const differences = obstaclesOf([analysis, ...others])
  if (differences.length > 0) {
    const texts = differences.map(({ what, before, after }) => `${what} ${before} and ${after}`)
    return refuse(`the runs are not comparable: ${texts.join('; ')}`)
  }
  const models = others.flatMap((other) => runModelOf(other) ?? [])
  if (models.length < others.length) return refuse('a run of --with has no operators of calls (record --level op)')
  const weightsOf = ({ run }: Analysis) => JSON.stringify(run.weights)
  return others.some((other) => weightsOf(other) !== weightsOf(analysis))
    ? refuse('the runs are not comparable: they have other weights')
    : models
}

function predicted(now: number | null, after: PhaseAfter | Refusal, missing: string): Predicted {
  const none = { now, expected: null, low: null, high: null }
  if (now === null) return { ...none, why: missing }
  if ('refused' in after) return { ...none, why: after.refused }
  const { low, expected, high } = after.factor
  return { now, expected: now * expected, low: now * low, high: now * high, why: null }
}

function phaseAfter(phase: PlannedPhase, model: RunModel | undefined, changes: Changes, facts: Facts): After {
  if (!model) return refuse('no operators of calls were recorded (record --level op)')
  const { others } = facts
  if ('refused' in others) return others
  const calls = model[phase]
  if (phase === 'decode' && model.hasDrafts)
    return refuse('its tokens are drafted by another model: only runs without drafts are predicted')
  if (calls.length < (phase === 'decode' ? CALLS_MIN : 1))
    return refuse(
      phase === 'decode'
        ? `${calls.length} decode calls with operators and a known context; at least ${CALLS_MIN} are necessary`
        : 'no prefill call with operators and a known context before the first decode',
    )
  const stateOf = ({ measured, undisturbed }: ModelCall) => (model.hasStates ? undisturbed : measured)
  const planned = plansOf({ ...facts, changes, others, model, phase, calls, stateOf })
  const refused = planned.find(isRefusal)
  if (refused) return refused
  const plans = planned.filter((plan): plan is Plan => plan !== 'unchanged')
  const statesAt = (scenarioOf: ScenarioOf) =>
    calls.map((call) => {
      const state = copyOf(call.measured)
      for (const plan of plans) plan.apply(call, state, scenarioOf)
      return state
    })
  const after = statesAt(() => 'expected')
  const ns = after.map(totalNs)
  const areFew = calls.length < CALLS_MIN
  const isUndisturbed = plans.some(({ removesPreemption }) => removesPreemption)
  const error = areFew
    ? errorOfFew(calls, model, isUndisturbed ? stateOf : ({ measured }) => measured)
    : conformalError(calls, ns)
  const spread = together(
    spreadOf(plans, (scenarioOf) => sumOf(statesAt(scenarioOf).map(totalNs))),
    Math.log(1 + error),
    areFew ? NO_SPREAD : sampling(ns),
  )
  const factor = factorOf(calls, ns, plans, { error, spread })
  if ('refused' in factor) return factor
  const basis = plans.flatMap((plan) => plan.basis)
  if (areFew && plans.length > 0)
    basis.push(
      `${phase}: of ${plural(calls.length, 'call')}, ± ${Math.round(100 * error)} %, by how much as long a part of decoding varies, and operators that compute the same`,
    )
  return { phase, calls, after, basis, factor, error }
}

/** What is taken out comes first: other changes act on what remains. */
function plansOf(context: PlanContext): Planned[] {
  const { changes } = context
  const { without = [], context: tokens, threads } = changes
  const areThreadsMeasured = threads !== undefined && context.others.length > 0
  return [
    ...[...new Set(without)].sort(preemptedFirst).map((what) => withoutDisturbance(what, context)),
    ...(tokens === undefined ? [] : [withContext(tokens, context)]),
    withSettings(areThreadsMeasured ? { ...changes, threads: undefined } : changes, context),
    ...(areThreadsMeasured ? [withThreadsOf(threads, context)] : []),
  ]
}

/** It sets the time of whole calls. */
const preemptedFirst = (a: string, b: string) => Number(b === 'preempted') - Number(a === 'preempted')

/** The time of all calls as a factor of that in the run; 1 without plans, exactly. `error`: of the model; `spread`: that, and what the changes leave uncertain. */
function factorOf(
  calls: readonly ModelCall[],
  ns: readonly number[],
  plans: readonly Plan[],
  { error, spread }: { readonly error: number; readonly spread: Spread },
): PhaseAfter['factor'] | Refusal {
  if (plans.length === 0) return { low: 1, expected: 1, high: 1 }
  const nowNs = sumOf(calls.map(({ measured }) => totalNs(measured)))
  const areDisturbed = calls.some(({ isPreempted }) => isPreempted)
  const expected = sumOf(ns) / nowNs
  const [low, high] = [expected * Math.exp(-spread.down), expected * Math.exp(spread.up)]
  // Of a change that is larger than the error, even a large one says something.
  if (error > ERROR_MAX && low <= 1 && high >= 1)
    return refuse(
      areDisturbed && plans.every(({ removesPreemption }) => !removesPreemption)
        ? 'calls lost their CPUs, so that successive ones differ by more than half of their time: --without preempted, too'
        : 'successive calls differ by more than half of their time, and the log does not contain why',
    )
  return { low, expected, high }
}
