import { lookAtProducts } from './profiled-kernels.ts'
import type { Limit, Rule } from './rule.ts'
import { percent } from './words.ts'

const HITS: Limit = {
  value: 0.4,
  why: 'blocks of a product share rows and columns: of tiled kernels 60 to 95 % of the sectors are found in the L2; what is read once, such as weights of a product with a vector, is not looked at',
}
const DRAM: Limit = {
  value: 0.6,
  why: 'below 60 % of the peak of the memory, misses are not what the kernel waits for',
}

/** Matrix products read from the GPU's memory what its L2 cache could contain. */
export const lowL2Hits: Rule = {
  id: 'low-l2-hits',
  title: 'Matrix products miss the L2 cache and wait for the memory',
  limits: { l2_hits: HITS, dram: DRAM },
  advice:
    'Larger tiles, or an order of blocks that shares operands while they are in the cache (swizzled or grouped tiles, CUTLASS rasterization, ' +
    'Triton GROUP_SIZE_M, clusters with multicast); smaller batches of attention, and smaller types, where the operands exceed the cache',
  look: lookAtProducts({
    low: 'l2_hit_share',
    below: HITS,
    high: 'dram_share',
    from: DRAM,
    figureOf: (lows) =>
      `matrix products miss the L2 cache for at most ${percent(1 - Math.min(...lows))} of their sectors`,
    sentenceOf: (low, high) => `${low} of the sectors are found in the L2, and the memory is ${high} busy`,
  }),
}
