import type { Dag } from '../../../lib/cli.ts'
import { dagLine } from '../../dag/table.ts'
import { callOf, withMost } from '../answer.ts'
import { FROM, LOGS, list, placesOf, runOn, type Tool, whole } from '../tool.ts'

interface Arguments {
  readonly logs: readonly string[]
  readonly call?: number
  readonly layer?: number
  readonly from?: number
}

/** The tool `dag`. */
export const dagTool: Tool<Arguments> = {
  name: 'dag',
  title: 'Graph of a call',
  description: 'The nodes of the graph of one call, most time first: what each computes, how long, and what it reads.',
  input: {
    logs: LOGS,
    call: whole('The number of a call, from 0; by default the second decode call'),
    layer: whole('Only nodes of this layer'),
    from: FROM,
  },
  required: ['logs'],
  evidence: {
    call: { type: 'integer', description: 'The number of the call' },
    phase: { type: ['string', 'null'], description: 'prefill or decode' },
    nodes_count: { type: 'integer', description: 'Number of its nodes' },
    from: { type: 'integer', description: 'The number of the first node, from 0' },
    nodes: list('Nodes, as dag --json prints them, without some fields'),
  },
  isReadOnly: true,
  async run(args, session, call) {
    const { logs, from = 0, layer } = args
    const places = await placesOf(logs, session)
    const options = [...(args.call === undefined ? [] : ['--call', `${args.call}`])]
    if (layer !== undefined) options.push('--layers', `${layer}`)
    const command = ['dag', ...places.map(({ path }) => path), ...options, '--json']
    const dag = JSON.parse((await runOn(places, command, session, call)).stdout) as Dag
    const nodes = dag.nodes.toSorted((a, b) => (b.wall_ns ?? -1) - (a.wall_ns ?? -1)).map(nodeOf)
    return withMost(nodes.slice(from), (shown) => {
      const count = Math.max(nodes.length - from - shown.length, 0)
      const next = callOf('dag', { ...args, from: from + shown.length }, 'the next nodes')
      return {
        verdict: dagLine(dag),
        evidence: { call: dag.call, phase: dag.phase, nodes_count: nodes.length, from, nodes: shown },
        check: [callOf('stats', { logs, call: dag.call }, 'the times of the whole call')],
        next: [
          callOf('stats', { logs, by: ['role', 'op'] }, 'the same operators in all calls'),
          ...(count > 0 ? [next] : []),
        ],
        left: count > 0 ? { what: 'nodes', count, next } : null,
      }
    })
  },
}

function nodeOf(node: Dag['nodes'][number]) {
  const { id, name, op, layer, backend, type, shape, sources, fused_into, wall_ns, wait_ns, imbalance_share } = node
  const { bytes_read, gb_per_s } = node
  return {
    ...{ id, name, op, layer, backend, type, shape, sources, fused_into },
    ...{ wall_ns, wait_ns, imbalance_share, bytes_read, gb_per_s },
  }
}
