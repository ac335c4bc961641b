/** Numbers by index, of which the first up to a limit is found in logarithmic time. */
export class MinTree {
  /** Leaves are the last half; each node before is the smaller of its two children. */
  private nodes = new Float64Array([Infinity, Infinity])

  set(index: number, value: number): void {
    while (index >= this.nodes.length / 2) this.grow()
    const { nodes } = this
    let node = index + nodes.length / 2
    nodes[node] = value
    while (node > 1) {
      node >>= 1
      nodes[node] = Math.min(nodes[2 * node]!, nodes[2 * node + 1]!)
    }
  }

  /** The first index from `from` on with a value of at most `limit`; -1: none. */
  firstUpTo(limit: number, from = 0): number {
    const { nodes } = this
    const leaves = nodes.length / 2
    if (from >= leaves) return -1
    let node = from + leaves
    while (nodes[node]! > limit) {
      while (node & 1) node >>= 1
      if (node === 0) return -1
      node++
    }
    while (node < leaves) {
      node *= 2
      if (nodes[node]! > limit) node++
    }
    return node - leaves
  }

  private grow(): void {
    const { nodes: old } = this
    const leaves = old.length / 2
    this.nodes = new Float64Array(2 * old.length).fill(Infinity)
    for (let i = 0; i < leaves; i++) this.nodes[2 * leaves + i] = old[leaves + i]!
    for (let node = 2 * leaves - 1; node > 0; node--)
      this.nodes[node] = Math.min(this.nodes[2 * node]!, this.nodes[2 * node + 1]!)
  }
}
