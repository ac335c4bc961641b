import { ANALYSIS_SCHEMA, type Analysis, type Undetermined } from '../analysis.ts'
import { ANALYSIS_HINT, checkGiven } from '../common/given.ts'
import type { Difference } from '../compare/figures.ts'
import { adviceOf } from '../findings/program.ts'
import { isLaw, threadScaling } from '../findings/thread-scaling.ts'
import {
  type PhaseScaling,
  type RoleScalingFigures,
  SCALING_SCHEMA,
  type ScalingFigures,
  type WorkerCount,
} from './figures.ts'
import { disturbancesOf, obstaclesOf, type ScaledPhase, speedOf, tokensIn, workersIn } from './runs.ts'
import { fitUsl, USL_PARAMETERS } from './usl.ts'

export * from './figures.ts'

/**
 * Another thread pays if it adds at least this share of the speed that a thread has in the run with the fewest: 10 %. Perfect scaling adds
 * 100 %; a decode that is bound by memory adds nearly nothing.
 */
const GAIN_SHARE_MIN = 0.1
/** Roles at most, those with most time. */
const ROLES_MAX = 20

/** Compares runs of one program with different numbers of threads. */
export function scaling(analyses: readonly Analysis[]): ScalingFigures {
  for (const [i, analysis] of [...analyses].entries())
    checkGiven(`scaling: analyses[${i}]`, analysis, [ANALYSIS_SCHEMA], ANALYSIS_HINT)
  const undetermined: Undetermined[] = []
  const differences = obstaclesOf(analyses)
  const phase = (phase: ScaledPhase): PhaseScaling | null => {
    if (differences.length > 0) {
      undetermined.push({ what: `scaling.${phase}`, why: `the runs are not comparable: ${listOf(differences)}` })
      return null
    }
    const counts = countsOf(analyses, phase, (analysis) => speedOf(analysis, phase))
    if (counts.length < 2) {
      const why = `runs with at least 2 numbers of workers are necessary, found ${counts.length}`
      undetermined.push({ what: `scaling.${phase}`, why, hint: 'give logs of runs with other values of --threads' })
      return null
    }
    const points = counts.map(({ workers, tokens_per_s }) => ({ n: workers, x: tokens_per_s }))
    const fit = fitUsl(points)
    if (!fit) {
      const why = `at least ${USL_PARAMETERS + 1} numbers of workers are necessary, found ${counts.length}`
      undetermined.push({ what: `scaling.${phase}.fit`, why })
    }
    return { counts, knee: isLaw(fit) ? kneeOf(counts) : null, fit }
  }
  const [decode, prefill] = [phase('decode'), phase('prefill')]
  const figures: ScalingFigures = {
    schema: SCALING_SCHEMA,
    runs: analyses.map((analysis) => ({
      name: analysis.inputs[0]?.name ?? '',
      decode_workers: workersIn(analysis, 'decode') ?? null,
      prefill_workers: workersIn(analysis, 'prefill') ?? null,
      disturbed_by: disturbancesOf(analysis),
    })),
    differences,
    gain_share_min: GAIN_SHARE_MIN,
    decode,
    prefill,
    roles: decode ? rolesOf(analyses, 'decode') : prefill ? rolesOf(analyses, 'prefill') : [],
    findings: [],
    undetermined,
  }
  const { id: rule } = threadScaling
  const advice = adviceOf(threadScaling.advice)
  const found = threadScaling.look(figures).flatMap(({ finding }) => (finding ? [{ rule, ...finding, advice }] : []))
  return { ...figures, findings: found }
}

const listOf = (differences: readonly Difference[]) =>
  differences.map(({ what, before, after }) => `${what} ${before} and ${after}`).join('; ')

/** The mean speed by number of workers. */
function countsOf(
  analyses: readonly Analysis[],
  phase: ScaledPhase,
  speedOf: (analysis: Analysis) => number,
): WorkerCount[] {
  const byCount = new Map<number, number[]>()
  for (const analysis of analyses) {
    const workers = workersIn(analysis, phase)
    const speed = speedOf(analysis)
    if (workers !== undefined && speed > 0) byCount.set(workers, [...(byCount.get(workers) ?? []), speed])
  }
  const means = [...byCount]
    .map(([workers, speeds]) => ({ workers, speed: speeds.reduce((sum, speed) => sum + speed, 0) / speeds.length }))
    .sort((a, b) => a.workers - b.workers)
  const first = means[0]
  return means.map(({ workers, speed }, i) => {
    const before = means[i - 1]
    const ofOne = first!.speed / first!.workers
    return {
      workers,
      tokens_per_s: speed,
      speedup: speed / first!.speed,
      efficiency: speed / workers / ofOne,
      gain_share: before ? (speed - before.speed) / (workers - before.workers) / ofOne : null,
    }
  })
}

function kneeOf(counts: readonly WorkerCount[]): number | null {
  const at = counts.findIndex(({ gain_share }) => gain_share !== null && gain_share < GAIN_SHARE_MIN)
  return at < 0 ? null : counts[at - 1]!.workers
}

function rolesOf(analyses: readonly Analysis[], phase: ScaledPhase): RoleScalingFigures[] {
  const keyOf = ({ op, role }: { readonly op: string; readonly role: string }) => `${op} ${role}`
  const times = analyses.map((analysis) => {
    const byRole = new Map<string, { role: string; op: string; ns: number }>()
    for (const row of analysis.operators.rows) {
      if (row.phase !== phase) continue
      const { role, op, wall_ns } = row
      const sum = byRole.get(keyOf(row))
      if (sum) sum.ns += wall_ns
      else byRole.set(keyOf(row), { role, op, ns: wall_ns })
    }
    return { analysis, byRole }
  })
  const longest = new Map<string, { role: string; op: string; ns: number }>()
  for (const { byRole } of times) {
    for (const [key, role] of byRole) if (role.ns > (longest.get(key)?.ns ?? -1)) longest.set(key, role)
  }
  return [...longest]
    .sort(([, a], [, b]) => b.ns - a.ns)
    .slice(0, ROLES_MAX)
    .flatMap(([key, { role, op }]) => {
      const nsOf = new Map(times.map(({ analysis, byRole }) => [analysis, byRole.get(key)?.ns ?? 0]))
      const counts = countsOf(analyses, phase, (analysis) => {
        const ns = nsOf.get(analysis)!
        return ns > 0 ? tokensIn(analysis, phase) / (ns / 1e9) : 0
      })
      return counts.length < 2 ? [] : [{ role, op, phase, counts, knee: kneeOf(counts) }]
    })
}
