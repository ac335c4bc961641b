/**
 * What ggml's scheduler prints of the graphs that it divides (GGML_SCHED_DEBUG=2): an account of placement that is not made from our logs. It prints
 * a graph when it allocates it, also for graphs that it only reserves memory for; a graph that is computed again is not printed again.
 */

/** Bytes are printed in whole KiB, rounded down. */
export const KIB = 1024

export interface PrintedNode {
  /** Its first ten characters. */
  readonly op: string
  readonly name: string
  /** That of the first name in its line that contains one: of itself, or of what it reads; -1: none does. */
  readonly layer: number
  readonly readsWeight: boolean
}

export interface PrintedSplit {
  readonly backend: string
  /** What is copied to the backend for it, in KiB. */
  readonly inputs: readonly number[]
  readonly nodes: PrintedNode[]
}

/** The splits of one graph, in order. */
export type PrintedGraph = readonly PrintedSplit[]

const SPLIT = /^## SPLIT #(\d+): (\S+) # \d+ inputs(.*)$/
const INPUT = /\[[^[\]]+ \(\s*(\d+)([KM])\)\]/g
const NODE = /^node #\s*\d+ \(\s*(\S+?)\):\s*(.*?) \(\s*\d+[KM]\) \[.*?\] use=\d+,c=(\d):(.*)$/
/** Debian's llama.cpp has it before each part of a line. */
const TIME = /\d+\.\d\d\.\d{3}\.\d{3} [A-Z] /g
const LAYER = /-(\d+)\b|_l(\d+)\b|\bblk\.(\d+)\./

/** The graphs of a text, in order. */
export function printedGraphs(text: string): PrintedGraph[] {
  const graphs: PrintedSplit[][] = []
  for (const line of text.replace(TIME, '').split('\n')) {
    const split = SPLIT.exec(line)
    if (split) {
      const [, number, backend, inputs] = split
      if (number === '0') graphs.push([])
      const kib = [...inputs!.matchAll(INPUT)].map(([, size, unit]) => Number(size) * (unit === 'M' ? KIB : 1))
      graphs.at(-1)!.push({ backend: backend!, inputs: kib, nodes: [] })
    }
    const node = NODE.exec(line)
    if (!node) continue
    const [, op, name, isComputed, sources] = node
    if (isComputed === '0') continue
    const layer = LAYER.exec(`${name} ${sources}`)?.slice(1).find(Boolean)
    const readsWeight = /\bblk\.\d+\./.test(sources!)
    graphs
      .at(-1)!
      .at(-1)!
      .nodes.push({ op: op!, name: name!, layer: Number(layer ?? -1), readsWeight })
  }
  return graphs
}

const RESERVED = 'graph_reserve: '

/** Of a prompt and a token, the graphs that llama.cpp computed: it printed them after those that it reserved memory for, the last of which is first here. */
export const computedGraphs = (text: string) => printedGraphs(text.slice(text.lastIndexOf(RESERVED))).slice(1)

/** The splits on the CPU that contain this op. */
export const onCpu = (graph: PrintedGraph, op: string): PrintedGraph =>
  graph.filter(({ backend, nodes }) => backend === 'CPU' && nodes.some((node) => node.op === op.slice(0, 10)))

/** By layer, the backends that compute with its weights. */
export function backendsOfLayers(graph: PrintedGraph): ReadonlyMap<number, string> {
  const found = new Map<number, Set<string>>()
  for (const { backend, nodes } of graph)
    for (const { layer, readsWeight } of nodes)
      if (readsWeight) found.set(layer, (found.get(layer) ?? new Set()).add(backend))
  return new Map([...found].map(([layer, backends]) => [layer, [...backends].join('+')]))
}
