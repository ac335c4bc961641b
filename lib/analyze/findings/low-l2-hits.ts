import { CHECK, confidenceOf, functionOf, productsOf, timeOf } from './profiled-kernels.ts'
import { found, type Limit, type Rule } from './rule.ts'
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
  look: (analysis) => {
    const products = productsOf(analysis).filter(
      ({ l2_hit_share, dram_share }) => l2_hit_share !== null && dram_share !== null,
    )
    if (products.length === 0) return []
    const low = products.filter((row) => row.l2_hit_share! < HITS.value && row.dram_share! >= DRAM.value)
    if (low.length === 0) {
      const least = Math.min(...products.map(({ l2_hit_share }) => l2_hit_share!))
      return [{ figure: `matrix products find at least ${percent(least)} of their sectors in the L2 cache` }]
    }
    const timeNs = low.reduce((sum, row) => sum + timeOf(row), 0)
    const [first] = low
    const others = low.length > 1 ? ` and ${low.length - 1} more` : ''
    const sentence = `${functionOf(first!)}${others}: ${percent(first!.l2_hit_share!)} of the sectors are found in the L2, and the memory is ${percent(first!.dram_share!)} busy`
    const evidence = {
      ...{ kernel: first!.name, kernels: low.length, time_ns: timeNs },
      ...{ l2_hit_share: first!.l2_hit_share!, dram_share: first!.dram_share! },
    }
    return found(sentence, { time_ns: timeNs, ...confidenceOf(analysis), evidence, check: CHECK })
  },
}
