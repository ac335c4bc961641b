import type { Analysis } from '../analysis.ts'
import { differencesOf } from '../compare/differences.ts'
import type { Difference } from '../compare/figures.ts'
import { losses } from '../findings/losses.ts'
import { CALLS, lossesOf } from '../run/losses.ts'

/** Rules of what would make a run slow with any number of threads. */
const DISTURBING = ['cpu-limit', 'preempted', 'page-faults', 'blocked-workers']
/** Of these, what more workers than CPUs do to each other. */
const OF_TOO_MANY = ['cpu-limit', 'preempted', 'blocked-workers']

/** A phase whose speed depends on the number of threads. */
export type ScaledPhase = 'decode' | 'prefill'

/** CPUs whose time a run could use: those of its affinity, within its quota. Undefined: not known. */
export function usableCpus({ run }: Analysis): number | undefined {
  const { limits, cpus } = run
  const known = [limits?.cpus ?? cpus, limits?.cpu_time].filter((value) => value != null)
  return known.length > 0 ? Math.min(...known) : undefined
}

/** Has a run more workers than CPUs, so that they take them from each other? */
export const hasTooMany = (analysis: Analysis) => analysis.run.workers > (usableCpus(analysis) ?? Infinity)

/** Rules whose findings say that something other than the number of threads made a run slow. */
export function disturbancesOf(analysis: Analysis): string[] {
  const own = hasTooMany(analysis) ? OF_TOO_MANY : []
  const rules = analysis.findings.flatMap(({ rule }) =>
    DISTURBING.includes(rule) && !own.includes(rule) ? [rule] : [],
  )
  return [...rules, ...(lossesOf(analysis, CALLS) > 0 ? [losses.id] : [])]
}

/** What makes runs of different numbers of workers not comparable, as between the sides of `compare`. */
export function obstaclesOf([first, ...others]: readonly Analysis[]): Difference[] {
  const found = new Map<string, Difference>()
  for (const other of others) {
    for (const difference of differencesOf([first!], [other])) {
      if (difference.is_obstacle && difference.what !== 'workers' && !found.has(difference.what))
        found.set(difference.what, difference)
    }
  }
  return [...found.values()]
}

/** The number of workers that computed in a phase. */
export function workersIn({ workers }: Analysis, phase: ScaledPhase): number | undefined {
  const count = workers.filter(({ by_phase }) => (by_phase[phase]?.calls ?? 0) > 0).length
  return count > 0 ? count : undefined
}

/** Tokens in the batches of a phase. */
export function tokensIn({ calls }: Analysis, phase: ScaledPhase): number {
  return calls.by_phase[phase]?.tokens ?? 0
}

/** Tokens per second of the time of calls; 0 where there are none. */
export function speedOf(analysis: Analysis, phase: ScaledPhase): number {
  if (phase === 'decode' && analysis.calls.decode_tokens_per_s !== null) return analysis.calls.decode_tokens_per_s
  // Calls of several contexts overlap, and prompts of drafts are none of the program's.
  if (phase === 'prefill' && analysis.calls.contexts.length > 1 && analysis.calls.prefill_tokens_per_s !== null)
    return analysis.calls.prefill_tokens_per_s
  const ns = analysis.call_time.find((time) => time.phase === phase)?.time_ns ?? 0
  return ns > 0 ? tokensIn(analysis, phase) / (ns / 1e9) : 0
}
