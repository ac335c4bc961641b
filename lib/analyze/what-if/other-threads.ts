import { isLaw } from '../findings/thread-scaling.ts'
import { fitUsl } from '../scaling/usl.ts'
import { type ModelCall, type RunModel, sumOf, totalNs } from './calls.ts'
import { conformalError, errorOfFew } from './intervals.ts'
import { at, lineOf } from './lines.ts'
import { CALLS_MIN, type Factor, type PlanContext, type Planned, refuse, scale } from './plan.ts'

/** Of the time by a law between or beyond the numbers of threads that were measured. */
const LAW_ERROR = 0.05
/** Threads are predicted up to so many times the most ones of a run. */
const TIMES_MAX = 2

/** The time of a phase with a number of threads, and its error as a share. */
interface Point {
  readonly threads: number
  readonly ns: number
  readonly error: number
}

/** Another number of threads, by runs with others: as measured, or by the law through them. */
export function withThreadsOf(threads: number, context: PlanContext): Planned {
  const { calls, model, others, phase, cpus } = context
  const now = threadsOf(calls)
  if (threads === now) return 'unchanged'
  if (cpus !== null && threads > cpus)
    return refuse(`${threads} threads on ${cpus} CPUs would take them from each other`)
  const found = [model, ...others].map((run) => pointOf(run, context))
  const lacking = found.findIndex((point) => typeof point === 'string')
  if (lacking >= 0) return refuse(`run ${lacking + 1}: ${found[lacking] as string}`)
  const points = byThreads(found as readonly Point[])
  const counts = points.map((point) => point.threads)
  const own = points.find((point) => point.threads === now)!
  const most = counts.at(-1)!
  if (points.length < 2) return refuse(`all runs have ${now} threads: one with others is necessary`)
  if (threads > TIMES_MAX * most)
    return refuse(`${threads} threads are more than ${TIMES_MAX} times the most of the runs, ${most}`)
  const { ns, low, high, by } = timeAt(threads, points)
  const factor: Factor = { low: low / own.ns, expected: ns / own.ns, high: high / own.ns }
  return {
    basis: [`${phase}, ${threads} threads: ${by} (${counts.join(', ')} threads were measured)`],
    sources: ['threads'],
    apply: (_, state, scenarioOf) => scale(state, factor[scenarioOf('threads')]),
  }
}

const threadsOf = (calls: readonly ModelCall[]) => Math.max(...calls.map(({ workers }) => workers))

/** The time of calls at the contexts of the run; or why it is not known. */
function pointOf(run: RunModel, { phase, stateOf, calls: own }: PlanContext): Point | string {
  const calls = run[phase]
  const totals = calls.map((call) => totalNs(stateOf(call)))
  const threads = threadsOf(calls)
  if (phase === 'prefill') {
    const [tokens, wanted] = [calls, own].map((calls) => sumOf(calls.map(({ tokens }) => tokens)))
    if (calls.length === 0) return 'it has no prompt before the first decode'
    return tokens === wanted
      ? { threads, ns: sumOf(totals), error: errorOfFew(calls, run, stateOf) }
      : `its prompt has ${tokens} tokens, that of the first run ${wanted}`
  }
  if (calls.length < CALLS_MIN) return `it has ${calls.length} decode calls with operators; ${CALLS_MIN} are necessary`
  const line = lineOf(
    calls.map(({ contextTokens }) => contextTokens),
    totals,
  )
  const middle = sumOf(own.map(({ contextTokens }) => contextTokens)) / own.length
  return { threads, ns: at(line, middle), error: conformalError(calls, totals) }
}

/** Runs with the same number of threads are averaged; ascending. */
function byThreads(points: readonly Point[]): Point[] {
  const counts = [...new Set(points.map(({ threads }) => threads))].sort((a, b) => a - b)
  return counts.map((threads) => {
    const same = points.filter((point) => point.threads === threads)
    const ns = sumOf(same.map(({ ns }) => ns)) / same.length
    return { threads, ns, error: Math.max(...same.map(({ error }) => error)) }
  })
}

interface TimeAt {
  readonly ns: number
  readonly low: number
  readonly high: number
  readonly by: string
}

function timeAt(threads: number, points: readonly Point[]): TimeAt {
  const measured = points.find((point) => point.threads === threads)
  if (measured) {
    const { ns, error } = measured
    return { ns, low: ns * (1 - error), high: ns * (1 + error), by: 'as in the run with them' }
  }
  const ns = lawAt(threads, points)
  const error = LAW_ERROR + Math.max(...points.map((point) => Math.abs(lawAt(point.threads, points) / point.ns - 1)))
  const [fewer, more] = [
    points.findLast((point) => point.threads < threads),
    points.find((point) => point.threads > threads),
  ]
  // Beyond the runs, more threads may bring nothing, and fewer may take as many times longer as they are fewer.
  const limit = more ? (fewer ? undefined : (more.ns * more.threads) / threads) : fewer!.ns
  const high = Math.max(ns * (1 + error), limit ?? 0)
  const law = points.length > 3 ? 'the Universal Scalability Law' : "Amdahl's law"
  return { ns, low: ns * (1 - error), high, by: `by ${law} through the runs` }
}

/** The Universal Scalability Law, or of few numbers of threads, where it does not describe them, Amdahl's. */
function lawAt(threads: number, points: readonly Point[]): number {
  const fit = fitUsl(points.map((point) => ({ n: point.threads, x: 1e9 / point.ns })))
  if (fit && isLaw(fit)) {
    const { tokens_per_s_of_one: one, contention, coherency } = fit
    return (1e9 * (1 + contention * (threads - 1) + coherency * threads * (threads - 1))) / (one * threads)
  }
  const line = lineOf(
    points.map((point) => point.threads - 1),
    points.map((point) => point.threads * point.ns),
  )
  const [slope, first] = line.slope < 0 ? [0, line.meanY] : [line.slope, at(line, 0)]
  return (Math.max(first, 0) + slope * (threads - 1)) / threads
}
