import type { LostKind } from '../../model/issues.ts'
import { plural } from '../../model/units.ts'
import type { Analysis, CallTime } from '../analysis.ts'
import { lostIn as meanWait } from './barrier-wait.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { percent } from './words.ts'

const MOVED: Limit = {
  value: 0.2,
  why: 'of the calls: a program that warms up, or loads, on another thread has one or two such calls',
}
const LOST: Limit = { value: 0.1, why: 'as in barrier-wait: what a run on idle CPUs loses to barriers is below it' }
const STARTED: Limit = {
  value: 0.5,
  why: 'new threads for each worker and call: a program whose number of threads changes once starts some once',
}
const MAKING: Limit = {
  value: 0.25,
  why: 'of the time of calls, with all that is outside of graphs: a small model has a sixth there with a pool',
}
const THREAD: Limit = {
  value: 100_000,
  why: 'ns to make, end and join a thread, at the most: 28 µs back to back here, more on a CPU that slept',
}
const DELAY: Limit = { value: 0.05, why: 'of the time of calls: a thread of a pool begins within some µs' }

/** Calls move between threads of the program, and OpenMP has a team for each of them. */
export const teamsOfCallers: Rule = {
  id: 'teams-of-callers',
  title: 'Calls by changing threads, each with OpenMP threads of its own',
  limits: { moved: MOVED, lost: LOST },
  advice:
    'Make all calls of a context from one thread of the program: an OpenMP runtime keeps a team of threads for each thread that calls it, makes one for each new thread, and the ' +
    'teams of the others still wait on the CPUs. Or a ggml without OpenMP (-DGGML_OPENMP=OFF) with a pool (llama_attach_threadpool); OMP_WAIT_POLICY=passive makes it less bad',
  covers: [
    ...(['preempted', 'barrier-wait', 'unbalanced-op', 'blocked-workers', 'passive-waiting', 'first-call'] as const),
    ...(['more-threads-than-cpus', 'new-threads', 'two-openmp-runtimes', 'outside-graphs', 'context-growth'] as const),
  ],
  look: (analysis) => {
    const teams = analysis.threads?.teams
    if (!teams || analysis.threads?.runtime !== 'openmp' || analysis.run.workers < 2) return []
    const { calls, moved_calls, changed_calls } = teams
    const [moved, changed] = [moved_calls / calls, changed_calls / calls]
    const figure = `${plural(moved_calls, 'call')} of ${calls} by another thread than the call before, ${changed_calls} with other threads of OpenMP`
    // Of the calls of a phase, so many moved at least: the time of the others is not lost for that reason. Of some, the threads are not known.
    const partOf = (time: CallTime) =>
      Math.max(0, Math.min(moved_calls, changed_calls) - Math.max(0, calls - time.calls)) / time.calls
    const [time] = phasesOf(analysis)
      .filter((time) => partOf(time) >= MOVED.value)
      .toSorted((a, b) => lostIn(analysis, b) - lostIn(analysis, a))
    if (!time) return [{ figure }]
    const lostNs = lostIn(analysis, time)
    const share = lostNs / time.time_ns
    const sentence = `${figure} (${plural(teams.teams, 'team')}): ${percent(share)} of ${time.phase} is waiting for them`
    if (share < LOST.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: lostNs * partOf(time),
      ...confidenceOf(analysis, calls),
      evidence: {
        phase: time.phase,
        teams: teams.teams,
        moved_share: moved,
        changed_share: changed,
        lost_share: share,
        ...(teams.others_running_ns !== null && { others_running_ns: teams.others_running_ns }),
      },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'moved_share' },
    })
  },
}

/** The pool of threads is made again for every graph. */
export const newThreads: Rule = {
  id: 'new-threads',
  title: 'New threads for every graph',
  limits: { started: STARTED, delay: DELAY, making: MAKING, thread: THREAD },
  advice:
    "Keep the threads: the program makes a pool (ggml_threadpool_new) and attaches it to its contexts (llama_attach_threadpool), as llama.cpp's own tools do; or a ggml with OpenMP",
  covers: ['barrier-wait', 'unbalanced-op', 'outside-graphs', 'blocked-workers'],
  look: (analysis) => {
    const teams = analysis.threads?.teams
    const { workers } = analysis.run
    if (!teams || workers < 2 || teams.calls < 2) return []
    const { calls, new_threads, start_delay_ns } = teams
    const allNs = phasesOf(analysis).reduce((sum, { time_ns }) => sum + time_ns, 0)
    const share = allNs > 0 ? start_delay_ns / allNs : 0
    const sentence = `${plural(new_threads, 'new thread')} in ${plural(calls, 'call')}: ${percent(share)} of the time of calls passes until they have begun`
    const isEach = new_threads >= STARTED.value * (calls - 1) * (workers - 1)
    // ggml makes and ends them before and after it computes the graph.
    const outsideNs = phasesOf(analysis).reduce((sum, time) => sum + partsNs(time, 'outside graphs'), 0)
    const makingNs = start_delay_ns + Math.min(outsideNs, new_threads * THREAD.value)
    const making = allNs > 0 ? makingNs / allNs : 0
    if (!isEach || (share < DELAY.value && making < MAKING.value)) return [{ figure: sentence }]
    const evidence = { calls, new_threads, start_delay_ns, delay_share: share, outside_graphs_ns: outsideNs }
    const check = { command: 'ggml2perfetto stats <logs> --full', evidence: 'new_threads' }
    if (making >= MAKING.value && makingNs > 2 * start_delay_ns) {
      const all = `${plural(new_threads, 'new thread')} in ${plural(calls, 'call')}: up to ${percent(making)} of the time of calls passes while they are made, begin and end`
      const confidence = inferredOf(
        analysis,
        calls,
        'an upper bound: time outside of graphs, where they are made and end, of at most 100 µs a thread',
      )
      return found(all, { time_ns: makingNs, ...confidence, evidence, check })
    }
    return found(sentence, { time_ns: start_delay_ns, ...confidenceOf(analysis, calls), evidence, check })
  },
}

const OTHERS: Limit = {
  value: 0.1,
  why: 'of the time of calls: what a program does apart from its calls takes less',
}

/** Another OpenMP runtime is loaded into the program, and threads of it run meanwhile. */
export const twoOpenmpRuntimes: Rule = {
  id: 'two-openmp-runtimes',
  title: 'Two OpenMP runtimes in one program',
  limits: { others: OTHERS },
  advice:
    'Use one: build both libraries with the same compiler, or load one runtime before both (LD_PRELOAD). Else leave the other one fewer threads (OMP_NUM_THREADS, torch.set_num_threads), ' +
    'or let its threads sleep between its work (OMP_WAIT_POLICY=passive, KMP_BLOCKTIME=0)',
  covers: [
    'preempted',
    'barrier-wait',
    'unbalanced-op',
    'blocked-workers',
    'first-call',
    'passive-waiting',
    'context-growth',
  ],
  look: (analysis) => {
    const { threads } = analysis
    const loaded = (threads?.openmp_loaded ?? []).map((path) => path.replace(/^.*\//, ''))
    if (loaded.length < 2) return []
    const others = threads?.teams?.others_running_ns ?? null
    const names = `${loaded.length} OpenMP runtimes are loaded (${loaded.join(', ')})`
    const time = mostLost(analysis)
    if (others === null || !time) return [{ figure: `${names}: whether threads of the other one run is not known` }]
    const allNs = phasesOf(analysis).reduce((sum, { time_ns }) => sum + time_ns, 0)
    const share = others / allNs
    const sentence = `${names}: threads that compute nothing of calls run ${percent(share)} of their time`
    if (share < OTHERS.value) return [{ figure: sentence }]
    return found(sentence, {
      time_ns: Math.min(others, lostIn(analysis, time)),
      ...inferredOf(analysis, threads?.teams?.calls ?? 0, 'which runtime these threads are of is not recorded'),
      evidence: { runtimes: loaded.join(', '), others_running_ns: others, others_share: share },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'others_share' },
    })
  },
}

/** The confidence where a part is inferred. */
export function inferredOf(analysis: Analysis, calls: number, what: string, kinds?: readonly LostKind[]) {
  const { confidence, confidence_reason } = confidenceOf(analysis, calls, kinds)
  const reason = `${confidence_reason}; ${what}`
  return { confidence: confidence === 'high' ? ('medium' as const) : confidence, confidence_reason: reason }
}

/** Time in which workers wait for each other or have no CPU: that of the thread that makes the calls, or the mean wait of all workers. */
export function lostIn({ operators: { rows } }: Analysis, time: CallTime): number {
  const waits = rows.filter(({ phase }) => phase === time.phase).reduce((sum, row) => sum + meanWait(row), 0)
  return Math.max(waits, partsNs(time, 'barrier wait', 'barrier open', 'preempted', 'blocked'))
}

/** The phase with most of it; undefined without any. */
export const mostLost = (analysis: Analysis): CallTime | undefined =>
  phasesOf(analysis).toSorted((a, b) => lostIn(analysis, b) - lostIn(analysis, a))[0]
