import { plural } from '../../model/units.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { ofWorker, slicesIn } from './sql.ts'
import { percent } from './words.ts'

const SHARE: Limit = {
  value: 0.1,
  why: 'as in barrier-wait: what a run on idle CPUs loses to barriers is below it',
}

/** Workers share CPUs: at each barrier all wait until the last one was given one. */
export const moreThreadsThanCpus: Rule = {
  id: 'more-threads-than-cpus',
  title: 'More workers than CPUs',
  limits: { share: SHARE },
  advice: 'Run with -t (--threads) of at most the number of CPUs, and without SMT siblings: of the cores',
  covers: ['preempted', 'barrier-wait', 'unbalanced-op', 'blocked-workers', 'first-call', 'context-growth'],
  look: (analysis) => {
    const { workers, cpus, cpus_used, limits } = analysis.run
    // Other programs may keep it from some of those that it may use.
    const usable = Math.min(cpus ?? Infinity, limits?.cpus ?? cpus_used ?? Infinity)
    if (!Number.isFinite(usable) || workers === 0) return []
    if (workers <= usable) return [{ figure: `${plural(workers, 'worker')} on ${plural(cpus ?? usable, 'CPU')}` }]
    return phasesOf(analysis).flatMap((time) => {
      const { phase, calls, time_ns } = time
      const lostNs = partsNs(time, 'barrier wait', 'barrier open', 'preempted')
      const ofCaller = analysis.operators.rows.filter((row) => row.phase === phase).flatMap((row) => row.workers)
      const waitNs = ofCaller.reduce((sum, { worker, wait_ns }) => sum + (worker === 0 ? wait_ns : 0), 0)
      const share = lostNs / time_ns
      const sentence = `${workers} workers share ${usable === 1 ? 'one CPU' : `${usable} CPUs`}: ${percent(share)} of ${phase} is waiting for each other`
      if (share < SHARE.value) return { figure: sentence }
      return found(sentence, {
        time_ns: lostNs,
        ...confidenceOf(analysis, calls),
        evidence: { phase, workers, cpus: usable, waiting_share: share, barrier_wait_ns: waitNs },
        check: {
          sql: `select sum(s.dur) ${slicesIn(phase, 'barrier')} and ${ofWorker(0)}`,
          evidence: 'barrier_wait_ns',
        },
      })
    })
  },
}
