import type { Analysis } from '../analysis.ts'
import type { GpuHostTime } from '../gpu/figures.ts'
import { CALLS } from '../run/losses.ts'
import { devicesOf } from './gpu-device.ts'
import { confidenceOf, found, type Limit, type Rule } from './rule.ts'
import { percent, time } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'sampling of one token takes less than a tenth of TPOT, except in models of a few MB',
}

const PREEMPTED: Limit = {
  value: 0.05,
  why: 'a thread that loses its CPU in calls (preempted) loses it between them, too: the program is not the cause',
}

/** What a program does outside of calls. */
const OUTSIDE: readonly GpuHostTime['what'][] = ['outside calls', 'sampling', 'text', 'state', 'media']

/** Time outside of calls in which all GPUs wait: a call may end before its work does. Undefined without recorded work of a GPU. */
function idleGpuNs(analysis: Analysis): number | undefined {
  const times = devicesOf(analysis).flatMap(({ host_wait }) => (host_wait ? [host_wait] : []))
  if (times.length === 0) return undefined
  const outsideOf = (list: readonly GpuHostTime[]) =>
    list.reduce((sum, { what, time_ns }) => sum + (OUTSIDE.includes(what) ? time_ns : 0), 0)
  return Math.min(...times.map(outsideOf))
}

/** Tokens wait for the program between calls. */
export const betweenCalls: Rule = {
  id: 'between-calls',
  title: 'Tokens wait between calls: sampling, grammar, the program',
  limits: { share: SHARE, preempted: PREEMPTED },
  advice:
    'The time between calls is not in llama_decode: sampling (many samplers, a grammar, a large vocabulary), detokenizing, or a server that ' +
    'waits. Try greedy sampling to compare; perf record -g on the calling thread shows what it does',
  look: (analysis) => {
    const { slope } = analysis.calls
    if (!slope) return []
    const { tpot, between_calls, points } = slope
    if (!(tpot.mean_ns > 0) || between_calls.mean_ns < 0 || points < 1) return []
    const idleNs = idleGpuNs(analysis)
    const ns = idleNs === undefined ? between_calls.mean_ns : Math.min(between_calls.mean_ns, idleNs / points)
    const share = ns / tpot.mean_ns
    const noGpu = idleNs === undefined ? '' : ', while no GPU works'
    const sentence = `${percent(share)} of the time per token is between calls${noGpu}: ${time(ns)} of ${time(tpot.mean_ns)}`
    if (share < SHARE.value) return [{ figure: sentence }]
    const preempted = analysis.scheduling?.workers.filter(({ worker }) => worker === 0) ?? []
    if (preempted.some(({ preempted_ns, call_time_ns }) => preempted_ns >= PREEMPTED.value * call_time_ns))
      return [{ figure: 'between calls, other threads had the CPU of the program, as in calls' }]
    return found(sentence, {
      time_ns: ns * points,
      ...confidenceOf(analysis, points, [...CALLS, 'functions']),
      evidence: { between_share: share, between_ns: ns, tpot_ns: tpot.mean_ns, calls: points },
      check: { command: 'ggml2perfetto stats <logs>', evidence: 'between_ns' },
    })
  },
}
