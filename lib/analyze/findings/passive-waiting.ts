import type { Analysis, CallTime } from '../analysis.ts'
import { confidenceOf, found, type Limit, type Looked, partsNs, phasesOf, type Rule } from './rule.ts'
import { slicesIn } from './sql.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'as in barrier-wait: what a run whose workers spin loses to barriers is below it',
}
const ASLEEP: Limit = {
  value: 0.05,
  why: 'of the time of calls, on average over the workers: those that spin at barriers do not sleep in calls',
}

/** Threads of OpenMP sleep at each barrier, because a variable of the environment asks for it. */
export const passiveWaiting: Rule = {
  id: 'passive-waiting',
  title: 'Threads of OpenMP sleep at barriers',
  limits: { share: SHARE, asleep: ASLEEP },
  advice:
    'Run without the variable, or with OMP_WAIT_POLICY=active: the threads then wait on their CPUs, and the kernel need not wake them, which takes longer ' +
    'than most operators. Sleeping only pays where other programs need these CPUs',
  covers: ['barrier-wait', 'unbalanced-op', 'blocked-workers', 'first-call'],
  look: (analysis) => {
    const variable = variableOf(analysis)
    return variable === undefined || analysis.run.workers < 2
      ? []
      : phasesOf(analysis).flatMap((time) => lookAt(analysis, time, variable))
  },
}

/** The variable that makes threads sleep at once; ggml's own read none. */
function variableOf({ run: { variables }, threads }: Analysis): string | undefined {
  if (threads?.runtime === 'pool') return undefined
  const { OMP_WAIT_POLICY: policy = '', GOMP_SPINCOUNT: spins = '' } = variables
  // For libgomp, the number of spins precedes the policy.
  if (spins !== '') return Number(spins) === 0 ? `GOMP_SPINCOUNT=${spins}` : undefined
  return /^passive$/i.test(policy) ? `OMP_WAIT_POLICY=${policy}` : undefined
}

function lookAt(analysis: Analysis, time: CallTime, variable: string): Looked[] {
  const { phase, calls, time_ns } = time
  const rows = analysis.operators.rows.filter((row) => row.phase === phase)
  const workers = analysis.scheduling?.workers.filter((worker) => worker.phase === phase) ?? []
  const allNs = sum(workers, ({ call_time_ns }) => call_time_ns)
  // In operators they may sleep for other reasons.
  const asleepNs = sum(workers, ({ blocked_ns }) => blocked_ns) - sum(rows, ({ blocked_ns }) => blocked_ns ?? 0)
  const asleep = allNs > 0 ? asleepNs / allNs : undefined
  const lostNs = partsNs(time, 'barrier wait', 'barrier open', 'blocked')
  const share = lostNs / time_ns
  const inWords = asleep === undefined ? '' : `: workers sleep there ${percent(asleep)} of the time`
  const sentence = `${percent(share)} of ${phase} is waiting at barriers, with ${variable}${inWords}`
  if (share < SHARE.value || (asleep ?? 1) < ASLEEP.value) return [{ figure: sentence }]
  const waitNs = sum(rows, ({ wait_ns }) => wait_ns)
  const { confidence, confidence_reason } = confidenceOf(analysis, calls)
  return found(sentence, {
    time_ns: lostNs,
    confidence: asleep === undefined && confidence === 'high' ? 'medium' : confidence,
    confidence_reason:
      asleep === undefined
        ? `${confidence_reason}; whether they sleep there is not recorded (no states of threads)`
        : confidence_reason,
    evidence: {
      phase,
      variable,
      lost_share: share,
      ...(asleep !== undefined && { asleep_share: asleep }),
      wait_of_all_workers_ns: waitNs,
    },
    check: { sql: `select sum(s.dur) ${slicesIn(phase, 'barrier')}`, evidence: 'wait_of_all_workers_ns' },
  })
}

const sum = <T>(items: readonly T[], figure: (item: T) => number) => items.reduce((sum, one) => sum + figure(one), 0)
