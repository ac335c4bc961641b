/** What test/numa/host.c prints. */
export interface Found {
  readonly address: number
  readonly is_numa: number
  /** Of each page of the weights: its node, the thread that touched it first, and the node of the CPU on which it ran. */
  readonly nodes: readonly number[]
  readonly tids: readonly number[]
  readonly from: readonly number[]
}

/** Pages of each weight. */
const PAGES = 256
const PAGE_BYTES = 4096

/** What the analysis must find: bytes of each weight by node, and the part of the pages of each worker that lies on its node, in the order of threads. */
export function expectedOf({ nodes, tids, from }: Found) {
  const weights = Array.from({ length: nodes.length / PAGES }, (_, i) => nodes.slice(i * PAGES, (i + 1) * PAGES))
  const workers = [...new Set(tids)].sort((a, b) => a - b)
  const shareOf = (pages: readonly number[]) => pages.filter((page) => nodes[page] === from[page]).length / pages.length
  return {
    tensors: weights.map((pages, i) => [
      `blk.${i}.ffn_up.weight`,
      [0, 1].map((node) => pages.filter((of) => of === node).length * PAGE_BYTES),
    ]),
    shares: workers.map((tid) => shareOf(tids.flatMap((of, page) => (of === tid ? [page] : [])))),
    share: shareOf(nodes.map((_, page) => page)),
  }
}
