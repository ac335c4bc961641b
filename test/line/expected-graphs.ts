import { type GraphEvent, Inferred, type TokenEvent } from '../../lib/core.ts'
import type { Names, TraceEvent } from '../../lib/index.ts'
import type { Args } from './comparer.ts'

interface GraphSlice {
  readonly category: 'graph' | 'outside'
  readonly name: string
  readonly startNs: number
  readonly endNs: number
  readonly args: Args
}

const OUTSIDE = 'time of the call in which no graph ran: what it did then is not recorded'

/** What the Graphs row must hold: call by call, its graphs and the rest of its time; then graphs that no call in the log has. */
export function graphSlices(
  events: readonly TraceEvent[],
  names: Names,
  isFull: boolean,
  inferredArg: (bits: number) => Args,
): GraphSlice[] {
  const placeOf = (graph: GraphEvent) => (isFull ? placeArgs(events, names, graph) : {})
  const sliceOf = (graph: GraphEvent) => {
    const slice = graphSlice(graph, names, inferredArg)
    return { ...slice, args: { ...slice.args, ...placeOf(graph) } }
  }
  const inOrder = (slices: GraphSlice[]) => slices.sort((a, b) => a.startNs - b.startNs)
  let waiting: GraphEvent[] = []
  const drawn = events.flatMap((event) => {
    if (event.kind === 'graph') waiting.push(event)
    if (event.kind !== 'token') return []
    const own = waiting.filter((graph) => isOf(event, graph))
    waiting = waiting.filter((graph) => !own.includes(graph))
    return inOrder([...own.map(sliceOf), ...rest(event, own)])
  })
  return [...drawn, ...inOrder(waiting.map(sliceOf))]
}

function isOf({ call, startNs, endNs }: TokenEvent, graph: GraphEvent): boolean {
  return graph.call >= 0 ? graph.call === call : graph.startNs >= startNs && graph.endNs <= endNs
}

/** The layers and the ops of a graph's nodes, where they are known. */
function placeArgs(events: readonly TraceEvent[], names: Names, { graph }: GraphEvent): Args {
  const records = events.flatMap((event) => (event.kind === 'graph-nodes' && event.id === graph ? [event.nodes] : []))
  if (records.length === 0) return {}
  const ids = records.flatMap((nodes) => [...nodes])
  const nodes = ids.flatMap((id) =>
    events.flatMap((event) => (event.kind === 'tensor' && event.id === id ? [event] : [])),
  )
  const layers = nodes.map(({ layer }) => layer).filter((layer) => layer >= 0)
  const [first, last] = [Math.min(...layers), Math.max(...layers)]
  const counts = new Map<string, number>()
  for (const { op } of nodes) counts.set(names.text(op), (counts.get(names.text(op)) ?? 0) + 1)
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6)
  return {
    layers: layers.length === 0 ? 'none' : first === last ? `${first}` : `${first}–${last}`,
    ops: most.map(([op, count]) => `${op} ${count}`).join(', '),
  }
}

function graphSlice(event: GraphEvent, names: Names, inferredArg: (bits: number) => Args): GraphSlice {
  const { startNs, endNs, backend, nodes, call, inferred } = event
  const device = names.text(backend)
  const args: Record<string, string> = { operators: `${nodes}`, ...inferredArg(inferred & ~Inferred.Counts) }
  if (device) args['backend'] = device
  if (call >= 0) args['call'] = `${call}`
  return { category: 'graph', name: device ? `${device} graph` : 'graph', startNs, endNs, args }
}

/** The parts of a call before, between and after its graphs, from a microsecond on. */
function rest({ call, startNs, endNs }: TokenEvent, own: readonly GraphEvent[]): GraphSlice[] {
  if (own.length === 0) return []
  const args: Args = { inferred: OUTSIDE, ...(call >= 0 && { call: `${call}` }) }
  const starts = [startNs, ...own.map((graph) => graph.endNs)].sort((a, b) => a - b)
  const ends = [...own.map((graph) => graph.startNs), endNs].sort((a, b) => a - b)
  return starts.flatMap((from, i) => {
    if (ends[i]! - from < 1000) return []
    return [{ category: 'outside', name: 'outside graphs', startNs: from, endNs: ends[i]!, args }]
  })
}

/** The name of a run, by what is drawn of it, where a buffer's label has the model's file. */
export function runName(events: readonly TraceEvent[], names: Names): string {
  const weights = events.find((event) => event.kind === 'buffer' && event.usage === 'weights')
  const model = weights?.kind === 'buffer' ? /[^/ ]+\.gguf$/.exec(weights.label)?.[0] : undefined
  if (model === undefined) return 'LLM run'
  const workers = new Set(events.flatMap((event) => (event.kind === 'operator' ? [event.worker] : []))).size
  const backends = new Set(events.flatMap((event) => (event.kind === 'graph' ? [names.text(event.backend)] : [])))
  return `LLM ${model} · ${workers} worker${workers > 1 ? 's' : ''} · ${[...backends].join(' + ')}`
}
