import type { NumaFigures } from '../analysis.ts'
import { remoteReads, shareText } from '../numa/words.ts'
import { CALLS } from '../run/losses.ts'
import { computingNs } from './cores.ts'
import { found, type Limit, phasesOf, type Rule } from './rule.ts'
import { inferredOf } from './thread-teams.ts'
import { percent } from './words.ts'

const REMOTE: Limit = {
  value: 0.25,
  why: 'of the bytes that workers read: caches and the other node serve less than a quarter while the own one is busy',
}
const UNEVEN: Limit = {
  value: 1.25,
  why: 'times an equal part of the bytes, on one node: interleaved pages are within some percent of an equal part',
}

/** Workers read what is on other nodes, and one node serves more than its part. */
export const remoteMemory: Rule = {
  id: 'remote-memory',
  title: 'Workers read memory of another NUMA node',
  limits: { remote: REMOTE, uneven: UNEVEN },
  advice: (program) => {
    const read = program.option('readAtStart')
    return (
      'Start with --numa distribute and the page cache without the model (echo 3 > /proc/sys/vm/drop_caches): each worker then reads its part first, which places it on its node; or ' +
      `interleave the pages (numactl --interleave=all${read ? `, with ${read}` : ''}); or keep all workers and the model on one node (numactl --cpunodebind=0 --membind=0) where it fits`
    )
  },
  look: (analysis) => {
    const { numa } = analysis
    const [most] = numa ? remoteReads(numa) : []
    if (!numa || numa.local_share === null) return []
    const remote = 1 - numa.local_share
    const uneven = unevenness(numa)
    const figure = `${shareText(numa.local_share)} of the bytes that workers read lie on their node`
    if (!most || remote < REMOTE.value || uneven < UNEVEN.value) return [{ figure }]
    const sentence = `${percent(most.share)} of the bytes of weights and caches that node ${most.node}'s workers read lie on node ${most.from}`
    return found(sentence, {
      time_ns: (1 - 1 / uneven) * computingNs(analysis),
      ...inferredOf(
        analysis,
        phasesOf(analysis).reduce((sum, { calls }) => sum + calls, 0),
        `the time is an upper bound: as if the memory of each node limited all work${numa.estimated_share > 0 ? `; who reads ${percent(numa.estimated_share)} of the bytes is estimated` : ''}`,
        [...CALLS, 'pages'],
      ),
      evidence: {
        remote_share: remote,
        node: most.node,
        from_node: most.from,
        node_share: most.share,
        largest_part: uneven,
        estimated_share: numa.estimated_share,
      },
      check: { command: 'ggml2perfetto stats <logs> --full', evidence: 'remote_share' },
    })
  },
}

/** What the busiest node serves, as a multiple of an equal part. */
function unevenness({ nodes }: NumaFigures): number {
  const all = nodes.reduce((sum, { read_bytes }) => sum + read_bytes, 0)
  return all > 0 ? (Math.max(...nodes.map(({ read_bytes }) => read_bytes)) * nodes.length) / all : 1
}
