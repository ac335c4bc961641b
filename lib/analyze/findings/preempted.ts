import type { LostKind } from '../../model/issues.ts'
import { plural } from '../../model/units.ts'
import type { Analysis, CallTime, WorkerScheduling } from '../analysis.ts'
import { CALLS, lossesOf } from '../run/losses.ts'
import { confidenceOf, found, type Limit, type Looked, phasesOf, type Rule } from './rule.ts'
import { slicesIn } from './sql.ts'
import { percent, shares } from './words.ts'

const SHARE: Limit = {
  value: 0.05,
  why: 'on idle CPUs the kernel and its services take up to 1 or 2 % of the time of a worker',
}

/** Another thread took the CPU of a worker. */
export const preempted: Rule = {
  id: 'preempted',
  title: 'Workers lose their CPU to other threads',
  limits: { share: SHARE },
  advice: (program) => {
    const leave = program.hasFreeCpus
      ? 'leave them CPUs (taskset)'
      : 'leave them a CPU: fewer threads than CPUs, or taskset'
    const stop = `Stop the other programs, or ${leave}`
    if (program.areTakersKnown) return stop
    const limit = 'Where nothing else runs, a CPU limit of the container (cgroups) does the same'
    return `${stop}. record --sched shows who took the CPU${program.areLimitsKnown ? '' : `. ${limit}`}`
  },
  // Threads that sleep at barriers wait there for the one without a CPU.
  covers: [
    ...(['barrier-wait', 'unbalanced-op', 'blocked-workers', 'passive-waiting'] as const),
    ...(['first-call', 'outside-graphs', 'between-calls'] as const),
  ],
  look: (analysis) => phasesOf(analysis).flatMap((time) => lookAt(analysis, time)),
}

function lookAt(analysis: Analysis, { phase, calls }: CallTime): Looked[] {
  const workers = analysis.scheduling?.workers.filter((worker) => worker.phase === phase && worker.call_time_ns > 0)
  if (!workers || workers.length === 0) return []
  const most = workers.reduce((a, b) => (b.preempted_ns > a.preempted_ns ? b : a))
  const { worker, preempted_ns, call_time_ns, preemptions } = most
  const share = preempted_ns / call_time_ns
  const by = takersOf(most)
  const largest = shares(by)
  const sentence = `worker ${worker} was preempted ${percent(share)} of ${phase}${largest === '' ? '' : `: ${largest}`}`
  if (share < SHARE.value) return [{ figure: sentence }]
  const { confidence, confidence_reason } = confidenceOf(analysis, calls, [...CALLS, ...statesOf(analysis)])
  return found(sentence, {
    time_ns: preempted_ns,
    confidence,
    confidence_reason:
      by.length > 0
        ? `${confidence_reason}; ${takersFrom(analysis)}`
        : `${confidence_reason}; who took the CPU is not recorded (record --sched)`,
    evidence: {
      phase,
      worker,
      preempted_share: share,
      preempted_ns,
      preemptions,
      ...(by.length > 0 && { taken_by: by.map(([name]) => name).join(', ') }),
    },
    check: {
      sql:
        `select sum(min(s.ts + s.dur, c.ts + c.dur) - max(s.ts, c.ts)) ${slicesIn(phase, 'state').replace('s.ts >= c.ts', 's.ts + s.dur > c.ts')} ` +
        `and t.name = 'worker ${worker}: state' and s.name = 'runnable (preempted)'`,
      evidence: 'preempted_ns',
    },
  })
}

/** Where both the log and the scheduler's switches show the states of threads, the complete one is enough. */
function statesOf(analysis: Analysis): LostKind[] {
  const kinds = ['states', 'scheduler'] as const
  if (analysis.scheduling?.source !== 'both') return [...kinds]
  return kinds.some((kind) => lossesOf(analysis, [kind]) === 0) ? [] : [...kinds]
}

/** What names the threads that took the CPU. */
function takersFrom(analysis: Analysis): string {
  const lost = lossesOf(analysis, ['scheduler'])
  return lost > 0 ? `${plural(lost, 'loss')} of the kernel's switches, which show who took it` : "the kernel's switches"
}

/** The threads that had its CPU, and their shares of the time; those of the program itself are named so. */
function takersOf({ takers, call_time_ns }: WorkerScheduling): [string, number][] {
  return takers.map(({ comm, is_own, time_ns }) => [
    is_own ? `${comm} (of this program)` : comm,
    time_ns / call_time_ns,
  ])
}
