import type { GraphNode, GraphSeries } from '../analyze/series/figures.ts'

/** By node, its layer: that of its name, else that of its weights, else that of the nodes before and after it, if they agree; or -1. */
export function inLayers({ nodes, leaves }: Pick<GraphSeries, 'nodes' | 'leaves'>): number[] {
  const found = nodes.map(({ layer, sources }) => {
    const weights = layer >= 0 ? [] : sources.map((id) => leaves[-2 - id]?.layer ?? -1)
    return weights.find((layer) => layer >= 0) ?? layer
  })
  const before: number[] = []
  let latest = -1
  for (const [i, layer] of found.entries()) {
    if (i > 0 && isOtherRun(nodes, i)) latest = -1
    if (layer >= 0) latest = layer
    before.push(latest)
  }
  let next = -1
  for (let i = nodes.length - 1; i >= 0; i--) {
    if (i < nodes.length - 1 && isOtherRun(nodes, i + 1)) next = -1
    if (found[i]! >= 0) next = found[i]!
    else if (next === before[i]) found[i] = next
  }
  return found
}

const isOtherRun = (nodes: readonly GraphNode[], i: number) => nodes[i]!.run !== nodes[i - 1]!.run

/**
 * By node, the number of its graph run. A call whose micro-batches differ in size computes other tensors in the last one, which the
 * recorded runs do not separate: where the first node of a run occurs again, by its name and op, another run begins.
 */
export function graphRuns(nodes: readonly GraphNode[]): number[] {
  let [first, further, isOtherLayer] = [undefined as GraphNode | undefined, 0, false]
  return nodes.map((node, i) => {
    if (i === 0 || isOtherRun(nodes, i)) first = undefined
    if (node.kind === 'view') return node.run + further
    if (first && node.layer !== first.layer) isOtherLayer = true
    // Two norms of one layer may have one name.
    const isAgain = first?.name === node.name && first.op === node.op && isOtherLayer
    if (isAgain) further++
    if (!first || isAgain) [first, isOtherLayer] = [node, false]
    return node.run + further
  })
}
