import { plural } from '../../model/units.ts'
import { confidenceOf, found, type Limit, partsNs, phasesOf, type Rule } from './rule.ts'
import { callsOfDrafts } from './speculation-slower.ts'
import { callsOf, slicesIn } from './sql.ts'
import { percent, shares } from './words.ts'

const SHARE: Limit = {
  value: 0.2,
  why: 'a call of a model of a few MB takes up to a fifth of its time outside graphs, of a large one less than a hundredth',
}

const CALLS: Limit = {
  value: 4,
  why: 'the first call allocates its graph, and the recorder describes it: 15 to 30 % of it in models of a few MB',
}

const PARTS = ['outside graphs', 'allocate', 'reserve memory', 'recorder'] as const

/** Calls spend their time outside of graphs: preparing the batch, allocating, recording. */
export const outsideGraphs: Rule = {
  id: 'outside-graphs',
  title: 'Calls spend their time outside of graphs',
  limits: { share: SHARE, calls: CALLS },
  advice:
    'allocate: the graph changes from call to call (batch sizes, contexts). recorder: a cost of recording, --level graph or --tokens avoid it. ' +
    'The rest is the program or llama.cpp itself: a CPU profile of the calling thread (perf record -g) shows it',
  look: (analysis) =>
    phasesOf(analysis)
      .filter(({ phase }) => phase !== 'compute' && analysis.run.recorded.includes('graphs'))
      .flatMap((callTime) => {
        const { phase, calls, time_ns } = callTime
        // Calls that only useless drafts cause are no fault of their own.
        const own = phase === 'decode' ? 1 - callsOfDrafts(analysis) : 1
        const lostNs = partsNs(callTime, ...PARTS)
        const parts = PARTS.map((what) => [what, partsNs(callTime, what) / time_ns] as const)
        const sentence = `${percent(lostNs / time_ns)} of ${phase} computes no graph${shares(parts) === '' ? '' : `: ${shares(parts)}`}`
        if (lostNs * own < SHARE.value * time_ns) return { figure: sentence }
        if (calls < CALLS.value)
          return { figure: `${plural(calls, `${phase} call`)}: too few to judge what is outside of graphs` }
        const graphsNs = time_ns - lostNs
        // What else calls do outside of graphs is in this difference, too.
        const sql = `select (select sum(dur) from ${callsOf(phase)}) - (select sum(s.dur) ${slicesIn(phase, 'graph')})`
        const isAll =
          partsNs(
            callTime,
            'log output',
            'waiting for a backend',
            'submitting to a backend',
            'copying for backends',
            'preempted',
          ) === 0
        return found(sentence, {
          time_ns: lostNs * own,
          ...confidenceOf(analysis, calls),
          evidence: { phase, outside_share: lostNs / time_ns, outside_ns: lostNs, in_graphs_ns: graphsNs },
          check: { evidence: 'outside_ns', ...(isAll ? { sql } : { command: 'ggml2perfetto stats <logs>' }) },
        })
      }),
}
