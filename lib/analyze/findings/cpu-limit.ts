import { plural } from '../../model/units.ts'
import type { CallTime } from '../analysis.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { number, percent, time } from './words.ts'

const SHARE: Limit = { value: 0.05, why: 'as in preempted: of the time of all calls' }
const PERIODS: Limit = {
  value: 0.05,
  why: 'of the periods of the limit: a program below its limit reaches it in none, at its start in a few',
}

/** The limit of CPU time of a container keeps workers from their CPUs. */
export const cpuLimit: Rule = {
  id: 'cpu-limit',
  title: 'A limit of CPU time is reached',
  limits: { share: SHARE, periods: PERIODS },
  advice: ({ cpuTime }) =>
    `Raise the limit (cpu.max of the control group, docker --cpus, Kubernetes limits.cpu), or run with no more threads than it has CPUs${
      cpuTime === undefined ? '' : ` (-t ${Math.max(1, Math.floor(cpuTime))})`
    }: threads that wait for each other spin, and use the time up`,
  covers: [
    ...(['preempted', 'barrier-wait', 'unbalanced-op', 'first-call', 'outside-graphs', 'between-calls'] as const),
    ...(['blocked-workers', 'passive-waiting', 'context-growth', 'slow-load'] as const),
  ],
  look: (analysis) => {
    const { limits } = analysis.run
    if (limits?.cpu_time == null) return []
    const { cpu_time, throttled_share, throttled_ns } = limits
    const limit = `the limit of ${number(cpu_time)} ${cpu_time === 1 ? 'CPU' : 'CPUs'}`
    if (throttled_share === null || throttled_ns === null)
      return [{ figure: `${limit}: how often it was reached is not known` }]
    const phases = phasesOf(analysis)
    const allNs = phases.reduce((sum, { time_ns }) => sum + time_ns, 0)
    // Others wait, and spin, while one has no CPU. Without states, their time is in operators.
    const lostIn = (callTime: CallTime) =>
      analysis.scheduling === null
        ? callTime.time_ns
        : partsNs(callTime, 'preempted', 'blocked', 'barrier wait', 'barrier open', 'outside graphs')
    const [most] = phases.toSorted((a, b) => lostIn(b) - lostIn(a))
    if (!most) return []
    const timeNs = Math.min(throttled_ns, lostIn(most))
    const calls = phases.reduce((sum, { calls }) => sum + calls, 0)
    const sentence =
      `${limit} was reached in ${percent(throttled_share)} of its periods: ` +
      `the kernel kept threads from their CPUs for ${time(throttled_ns)} in all`
    if (throttled_share < PERIODS.value || timeNs < SHARE.value * allNs) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: timeNs,
      ...confidenceOf(analysis, calls),
      confidence_reason: `the kernel counted it, over the run with ${plural(calls, 'call')}`,
      evidence: { phase: most.phase, cpu_time, throttled_share, throttled_ns },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'throttled_share' },
    })
  },
}
