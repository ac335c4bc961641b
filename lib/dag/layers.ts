import type { GraphNode, GraphSeries } from '../analyze/series/figures.ts'

/** By node, its layer: that of its name, else that of its weights, else that of the nodes before and after it, if they agree; or -1. */
export function inLayers({ nodes, leaves }: Pick<GraphSeries, 'nodes' | 'leaves'>): number[] {
  const found = nodes.map(({ layer, sources }) => {
    const weights = layer >= 0 ? [] : sources.map((id) => leaves[-2 - id]?.layer ?? -1)
    return weights.find((of) => of >= 0) ?? layer
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
