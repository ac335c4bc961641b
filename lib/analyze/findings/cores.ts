import type { Analysis, CoreKindFigures } from '../analysis.ts'
import { bindingOf } from '../run/usable-cpus.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { inferredOf, lostIn, mostLost } from './thread-teams.ts'
import { number, percent } from './words.ts'

const SHARED: Limit = {
  value: 0.3,
  why: 'of the time of calls: for moments, the kernel puts two threads on one core when others are busy',
}
const GAIN: Limit = {
  value: 0.25,
  why: 'of the time of two threads on one core: on a core each, they compute at least a quarter faster unless memory is the limit',
}
const SLOW: Limit = {
  value: 0.2,
  why: 'of the time of calls: for moments, the kernel puts a thread on a slower core when others are busy',
}
const LOST: Limit = { value: 0.1, why: 'as in more-threads-than-cpus' }
const CLOCK: Limit = { value: 0.95, why: 'of the highest clock: governors permit all of it where nobody set less' }

/** Two workers share a core (SMT), and another core is free. */
export const smtSiblings: Rule = {
  id: 'smt-siblings',
  title: 'Workers share cores while others are free',
  limits: { shared: SHARED, gain: GAIN },
  advice:
    'Give each worker a core of its own: taskset with one CPU of each core (`stats --full` lists them), or --cpu-range and --cpu-strict 1, or OMP_PLACES=cores OMP_PROC_BIND=spread; ' +
    'and no more threads than cores',
  look: (analysis) => {
    const places = analysis.threads?.places
    if (places?.shared_core_share == null || !analysis.machine || analysis.machine.cpus_per_core < 2) return []
    const share = places.shared_core_share
    const sentence = `in ${percent(share)} of the time of calls, two workers share a core though another one is free (${analysis.run.workers} workers, ${analysis.machine.cores} cores)`
    if (share < SHARED.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: share * GAIN.value * computingNs(analysis),
      ...inferredOf(
        analysis,
        callsOf(analysis),
        'how much faster cores of their own are was not measured: the time is a lower bound for work that computes',
      ),
      evidence: { shared_core_share: share, workers: analysis.run.workers, cores: analysis.machine.cores },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'shared_core_share' },
    })
  },
}

/** A worker is on a slower kind of core, and a fast one is free. */
export const slowCores: Rule = {
  id: 'slow-cores',
  title: 'Workers on efficiency cores while faster ones are free',
  limits: { slow: SLOW },
  advice:
    'Keep the workers on the fast cores: taskset with their CPUs (`stats --full` lists them), or --cpu-range; and no more threads than fast cores: all workers wait for the slowest one ' +
    'after each operator',
  covers: ['barrier-wait', 'unbalanced-op'],
  look: (analysis) => {
    const share = analysis.threads?.places?.slow_core_share ?? null
    const kinds = analysis.machine?.kinds ?? []
    if (share === null) return []
    const sentence = `in ${percent(share)} of the time of calls, a worker is on an efficiency core though a faster one is free (${kinds.map(({ kind, cores }) => `${cores} ${kind}`).join(', ')})`
    if (share < SLOW.value) return [{ figure: sentence }]
    const { ratio, from } = speedOf(kinds)
    return found(sentence, {
      time_ns: share * (1 - ratio) * computingNs(analysis),
      ...inferredOf(analysis, callsOf(analysis), `the time is an upper bound, from ${from} of the cores`),
      evidence: { slow_core_share: share, speed_of_slow_share: ratio, workers: analysis.run.workers },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'slow_core_share' },
    })
  },
}

/** How fast the slowest kind is, of the fastest; 0.5 where nothing is known. */
function speedOf(kinds: readonly CoreKindFigures[]): { ratio: number; from: string } {
  for (const [key, from] of [
    ['capacity', 'the capacities'],
    ['max_hz', 'the clocks'],
  ] as const) {
    const values = kinds.flatMap((kind) => kind[key] ?? [])
    const ratio = Math.min(...values) / Math.max(...values)
    if (values.length === kinds.length && ratio < 1) return { ratio, from }
  }
  return { ratio: 0.5, from: 'half the speed' }
}

/** The affinities of workers leave them fewer CPUs than they are. */
export const crowdedAffinity: Rule = {
  id: 'crowded-affinity',
  title: 'Affinities put several workers on one CPU',
  limits: { lost: LOST },
  advice:
    'Change what binds the threads: masks and ranges of CPUs among the options of llama.cpp, OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY or KMP_AFFINITY, or the program that sets affinities itself. Without ' +
    'any, the kernel gives each worker a CPU of its own',
  covers: [
    'preempted',
    'barrier-wait',
    'unbalanced-op',
    'blocked-workers',
    'first-call',
    'context-growth',
    'more-threads-than-cpus',
  ],
  look: (analysis) => {
    const crowded = analysis.threads?.places?.crowded
    const time = mostLost(analysis)
    if (!crowded || !time) return []
    const lostNs = lostIn(analysis, time)
    const share = lostNs / time.time_ns
    const workers = crowded.workers.join(' and ')
    const binding = analysis.threads?.runtime === 'openmp' ? bindingOf(analysis.run.variables) : undefined
    const by = binding ? `, with ${binding.variable}` : ''
    const sentence = `workers ${workers} may run on CPU ${crowded.cpus} only${by}: ${percent(share)} of ${time.phase} is waiting for each other`
    if (share < LOST.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: lostNs,
      ...confidenceOf(analysis, time.calls),
      advice:
        binding &&
        `Unset ${binding.variable}, or let it leave each worker a CPU of its own: OMP_PLACES=cores OMP_PROC_BIND=spread`,
      evidence: { phase: time.phase, cpus: crowded.cpus, workers, lost_share: share },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'lost_share' },
    })
  },
}

/** The kernel permits less than the highest clock. */
export const clockLimit: Rule = {
  id: 'clock-limit',
  title: 'The clock of the CPUs is limited',
  limits: { clock: CLOCK },
  advice:
    'Permit the highest clock: cpupower frequency-set, a governor or power profile of performance (powerprofilesctl set performance), the power settings of the BIOS. Phases that memory ' +
    'limits (decode) gain less than the clock',
  look: (analysis) => {
    const kinds = (analysis.machine?.kinds ?? []).filter(({ max_hz, limit_hz }) => max_hz !== null && limit_hz !== null)
    const [slowest] = kinds.toSorted((a, b) => a.limit_hz! / a.max_hz! - b.limit_hz! / b.max_hz!)
    if (!slowest || analysis.run.workers === 0) return []
    const { kind, max_hz, limit_hz, governors } = slowest
    const share = limit_hz! / max_hz!
    const which = kind === null ? 'CPUs' : `${kind} cores`
    const sentence = `the kernel permits ${which} ${GHz(limit_hz!)} of ${GHz(max_hz!)} GHz (governor ${governors.join(', ') || 'unknown'})`
    if (share >= CLOCK.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: (1 - share) * computingNs(analysis),
      ...inferredOf(analysis, callsOf(analysis), 'the time is an upper bound, as if all work depended on the clock'),
      evidence: { limit_share: share, limit_hz: limit_hz!, max_hz: max_hz! },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'limit_share' },
    })
  },
}

const GHz = (hz: number) => number(hz / 1e9)

const callsOf = (analysis: Analysis) => phasesOf(analysis).reduce((sum, { calls }) => sum + calls, 0)

/** Time of calls in which operators are computed, on the thread that makes them. */
export function computingNs(analysis: Analysis): number {
  const aside = [
    'barrier wait',
    'barrier open',
    'preempted',
    'blocked',
    'outside graphs',
    'recorder',
    'log output',
  ] as const
  return phasesOf(analysis).reduce((sum, time) => sum + Math.max(0, time.time_ns - partsNs(time, ...aside)), 0)
}
