import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Phase, TensorEvent } from '../../../lib/core.ts'
import { type Analysis, analyze, type ExpertCacheSize, eventsOf, Names } from '../../../lib/index.ts'
import { inputOf } from '../../../lib/node.ts'
import {
  distancesOf,
  firstHalf,
  hitsOf,
  leastRecent,
  leastUsed,
  mean,
  pearson,
  pinnedHits,
  ranks,
  type Token,
  usesOf,
} from './brute.ts'
import { EXPERT_BYTES, EXPERTS, logOf, type MadeCall } from './made-log.ts'

/** Statistics of the choices of experts, against a computation from the list of all choices in the simplest way. */

type Figures = NonNullable<Analysis['experts']>

/** The choices in a log, in order of time. */
async function tokensOf(log: string): Promise<Token[]> {
  const names = new Names()
  const tensors: TensorEvent[] = []
  const phases = new Map<number, Phase>()
  const found: { readonly atNs: number; readonly layer: number; readonly call: number; readonly ids: number[] }[] = []
  for await (const batch of eventsOf(inputOf(log), names)) {
    for (const event of batch) {
      if (event.kind === 'tensor') tensors[event.id] = event
      else if (event.kind === 'token') phases.set(event.call, event.phase)
      else if (event.kind === 'experts') {
        const { layer } = tensors[event.tensor]!
        for (let i = 0; i < event.ids.length; i += event.k)
          found.push({ atNs: event.atNs, layer, call: event.call, ids: [...event.ids.slice(i, i + event.k)] })
      } else if (event.kind === 'operator' && event.experts) {
        const { layer, name } = tensors[event.tensor]!
        if (names.text(name).startsWith('ffn_moe_gate-'))
          found.push({ atNs: event.startNs, layer, call: event.call, ids: [...event.experts] })
      }
    }
  }
  return found
    .filter(({ call }) => call >= 0)
    .sort((a, b) => a.call - b.call || a.atNs - b.atNs)
    .map(({ layer, call, ids, atNs }) => ({ layer, phase: phases.get(call)!, batch: atNs, ids }))
}

function expectLayers({ layers }: Figures, tokens: readonly Token[], experts: (layer: number) => number): void {
  const uses = usesOf(tokens)
  const distances = distancesOf(uses.map((use) => ({ ...use, expert: use.expert + 1000 * use.layer })))
  expect(layers.map(({ layer }) => layer)).toEqual([...new Set(tokens.map(({ layer }) => layer))].sort((a, b) => a - b))
  for (const { layer, by_phase, experts_per_token, ...of } of layers) {
    const n = experts(layer)
    const ofLayer = tokens.filter((token) => token.layer === layer)
    expect(of.experts).toBe(n)
    expect(experts_per_token).toBe(Math.max(...ofLayer.map(({ ids }) => ids.length)))
    expect(new Set(Object.keys(by_phase))).toEqual(new Set(ofLayer.map(({ phase }) => phase)))
    for (const [phase, found] of Object.entries(by_phase)) {
      const inPhase = ofLayer.filter((token) => token.phase === phase)
      const ids = inPhase.flatMap(({ ids }) => ids)
      const counts = Array.from({ length: n }, (_, expert) => ids.filter((id) => id === expert).length)
      const batches = [...new Set(inPhase.map(({ batch }) => batch))].map((batch) =>
        inPhase.filter((token) => token.batch === batch).flatMap(({ ids }) => ids),
      )
      expect(found).toMatchObject({ tokens: inPhase.length, activations: ids.length, by_expert: counts })
      expect(found.batches).toBe(batches.length)
      expect(found.distinct_per_batch).toBeCloseTo(mean(batches.map((ids) => new Set(ids).size)), 9)
      const entropy = counts
        .filter((count) => count > 0)
        .reduce((sum, count) => sum - (count / ids.length) * Math.log2(count / ids.length), 0)
      expect(found.balance.entropy_bits).toBeCloseTo(entropy, 9)
      expect(found.balance.entropy_share).toBeCloseTo(n > 1 ? entropy / Math.log2(n) : 1, 9)
      // Distances: within the layer, items of other layers do not count.
      const at = uses.flatMap((use, i) => (use.layer === layer ? [i] : []))
      const inLayer = distancesOf(at.map((i) => uses[i]!))
      const ofPhase = at.flatMap((i, j) => (uses[i]!.phase === phase ? [inLayer[j]] : []))
      const known = ofPhase.filter((distance) => distance !== undefined)
      expect(found.reuse).toMatchObject({ first_uses: ofPhase.length - known.length, count: known.length })
      expect(known.map(({ tokens }) => tokens)).toEqual(
        at.flatMap((i) => (uses[i]!.phase === phase && distances[i] ? [distances[i]!.tokens] : [])),
      )
      if (known.length > 0) {
        expect(found.reuse.mean_tokens).toBeCloseTo(mean(known.map(({ tokens }) => tokens)), 9)
        expect(found.reuse.mean_experts).toBeCloseTo(mean(known.map(({ experts }) => experts)), 9)
      }
      for (const [i, count] of found.reuse.tokens_histogram.entries())
        expect(known.filter(({ tokens }) => tokens >= 2 ** i && tokens < 2 ** (i + 1)).length).toBe(count)
      for (const [i, count] of found.reuse.experts_histogram.entries())
        expect(known.filter(({ experts }) => experts === i).length).toBe(count)
      const all = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0)
      expect([all(found.reuse.tokens_histogram), all(found.reuse.experts_histogram)]).toEqual([
        known.length,
        known.length,
      ])
      const followers = ofLayer.flatMap((token, i) =>
        token.phase === phase && i > 0 ? [{ ids: token.ids, before: ofLayer[i - 1]!.ids }] : [],
      )
      if (found.repeated === null) expect(followers).toEqual([])
      else {
        const repeats = followers.flatMap(({ ids, before }) => ids.map((id) => (before.includes(id) ? 1 : 0)))
        expect(found.repeated.tokens).toBe(followers.length)
        expect(found.repeated.share).toBeCloseTo(mean(repeats), 9)
        const k = ids.length / inPhase.length
        expect(found.repeated.even_share).toBeCloseTo(k / n, 9)
        const squares = counts.reduce((sum, count) => sum + (count / inPhase.length) ** 2, 0)
        expect(found.repeated.independent_share).toBeCloseTo(squares / k, 9)
      }
    }
  }
}

/** Hits of the caches: for each layer, or of all together. `capacity`: experts of a layer's cache. */
function expectCaches(
  { caches, layers }: Figures,
  tokens: readonly Token[],
  capacities: readonly ((experts: number) => number)[],
  hasLfu = true,
): void {
  const uses = usesOf(tokens)
  const item = ({ layer, expert }: { layer: number; expert: number }) => 1000 * layer + expert
  const count = (of: readonly boolean[]) => of.filter((isHit) => isHit).length
  expect(caches.map(({ scope }) => scope)).toEqual(capacities.flatMap(() => ['layer', 'all']))
  for (const [i, cache] of caches.entries()) {
    const capacity = capacities[i >> 1]!
    const ofLayers = layers.map(({ layer, experts }) => ({ layers: [layer], capacity: capacity(experts) }))
    const total = ofLayers.reduce((sum, { capacity }) => sum + capacity, 0)
    const all = { layers: layers.map(({ layer }) => layer), capacity: total }
    expect(cache.experts).toBe(total)
    for (const [phase, found] of Object.entries(cache.by_phase)) {
      const sums = { all: 0, lru: 0, lfu: 0, pinned: 0, learned: 0, learnable: 0 }
      for (const { layers, capacity } of cache.scope === 'layer' ? ofLayers : [all]) {
        const of = uses.filter(({ layer }) => layers.includes(layer))
        const isOf = (_: boolean, i: number) => of[i]!.phase === phase
        sums.lru += count(hitsOf(of.map(item), capacity, leastRecent).filter(isOf))
        sums.lfu += count(hitsOf(of.map(item), capacity, leastUsed).filter(isOf))
        const inPhase = of.filter((use) => use.phase === phase)
        sums.all += inPhase.length
        sums.pinned += pinnedHits(inPhase.map(item), inPhase.map(item), capacity)
        const half = (layer: number) =>
          firstHalf(tokens.filter((token) => token.layer === layer && token.phase === phase).length)
        const learning = inPhase.filter(({ layer }) => half(layer) > 0)
        const isFirst = ({ layer, tokenInPhase }: (typeof of)[0]) => tokenInPhase < half(layer)
        const [first, second] = [learning.filter(isFirst), learning.filter((use) => !isFirst(use))]
        sums.learned += pinnedHits(first.map(item), second.map(item), capacity)
        sums.learnable += second.length
      }
      expect(found.activations).toBe(sums.all)
      expect(found.lru_share).toBeCloseTo(sums.lru / sums.all, 9)
      if (hasLfu) expect(found.lfu_share).toBeCloseTo(sums.lfu / sums.all, 9)
      else expect(found.lfu_share).toBeNull()
      expect(found.pinned_share).toBeCloseTo(sums.pinned / sums.all, 9)
      if (sums.learnable === 0) expect(found.learned_share).toBeNull()
      else expect(found.learned_share).toBeCloseTo(sums.learned / sums.learnable, 9)
    }
  }
}

const SHARES = [0.125, 0.25, 0.5, 0.75].map((share) => (n: number) => Math.max(1, Math.round(share * n)))

describe('recorded choices', () => {
  test('of a .ggtrace log: distances, entropy and hit rates', async () => {
    const log = 'examples/moe.ggtrace.gz'
    const [{ experts }, tokens] = await Promise.all([analyze(inputOf(log)), tokensOf(log)])
    expect(tokens.length).toBe(5 * 16 + 1 + 8 * 6) // the last layer computes only the output of a prompt
    expectLayers(experts!, tokens, () => 8)
    expectCaches(experts!, tokens, SHARES)
    // Three products of 1024 × 1536 elements in q4_0: 18 bytes for 32.
    expect(experts!.layers.map(({ expert_bytes }) => expert_bytes)).toEqual(Array(6).fill((3 * 1024 * 1536 * 18) / 32))
  })

  test('of a tensor trace: only the first token of a batch, and no shapes', async () => {
    const log = 'test/fixtures/tensor-trace/moe-2threads.bin.gz'
    const [{ experts, undetermined }, tokens] = await Promise.all([analyze(inputOf(log)), tokensOf(log)])
    expect(tokens.length).toBe(9 * 6)
    const highest = (layer: number) => Math.max(...tokens.filter((of) => of.layer === layer).flatMap(({ ids }) => ids))
    expectLayers(experts!, tokens, (layer) => highest(layer) + 1)
    expectCaches(experts!, tokens, SHARES, false)
    expect(experts!.layers.every((layer) => layer.experts_are_min)).toBe(true)
    expect(undetermined.filter(({ what }) => what.startsWith('experts')).map(({ what }) => what)).toEqual([
      'experts.layers.by_phase',
      'experts.layers.experts',
      'experts.caches.by_phase.lfu_share',
    ])
  })
})

const tokensIn = (calls: readonly MadeCall[]): Token[] =>
  calls.flatMap(({ phase, layers }, call) =>
    layers.flatMap(({ ids }, layer) => ids.map((ids) => ({ layer, phase, batch: call, ids }))),
  )

/** Two layers, k = 2 of 6; a prefill of up to 10 tokens, then decodes. */
const made = fc.gen().map((g): MadeCall[] => {
  const expert = () => g(() => fc.nat(EXPERTS - 1))
  const token = () => {
    const first = expert()
    return [first, (first + 1 + g(() => fc.nat(EXPERTS - 2))) % EXPERTS]
  }
  const layer = (tokens: number) => ({
    ids: Array.from({ length: tokens }, token),
    ns: 10 + g(() => fc.nat(90)),
    faults: g(() => fc.nat(5)),
  })
  const call = (phase: Phase, tokens: number) => ({ phase, layers: [layer(tokens), layer(tokens)] })
  const decodes = g(() => fc.integer({ min: 1, max: 40 }))
  const tokens = g(() => fc.integer({ min: 1, max: 10 }))
  return [call('prefill', tokens), ...Array.from({ length: decodes }, () => call('decode', 1))]
})

describe('made choices', () => {
  test('distances, entropy, balance and repeats', async () => {
    await fc.assert(
      fc.asyncProperty(made, async (calls) => {
        const { experts, undetermined } = await analyze(logOf(calls))
        expectLayers(experts!, tokensIn(calls), () => EXPERTS)
        expect(experts!.layers.map(({ expert_bytes }) => expert_bytes)).toEqual([EXPERT_BYTES, EXPERT_BYTES])
        expect(undetermined.filter(({ what }) => what.startsWith('experts'))).toEqual([])
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })

  test('hit rates of caches of shares, numbers and bytes', async () => {
    const bytes = (experts: number) => ({ bytes: 2 * experts * EXPERT_BYTES + 1, text: `${experts}` })
    const sizes: ExpertCacheSize[] = [{ share: 0.25 }, { experts: 3 }, bytes(4), bytes(0), { experts: 100 }]
    const capacities = [2, 3, 4, 0, EXPERTS].map((capacity) => () => capacity)
    await fc.assert(
      fc.asyncProperty(made, async (calls) => {
        const { experts } = await analyze(logOf(calls), { expertCaches: sizes })
        expectCaches(experts!, tokensIn(calls), capacities)
        expect(experts!.caches.map(({ bytes }) => bytes)).toEqual(
          [2, 3, 4, 0, EXPERTS].flatMap((each) => [2 * each * EXPERT_BYTES, 2 * each * EXPERT_BYTES]),
        )
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })

  test('correlations of distances with times and page faults, of layers and of calls', async () => {
    await fc.assert(
      fc.asyncProperty(made, async (calls) => {
        const { experts } = await analyze(logOf(calls))
        const tokens = tokensIn(calls)
        const uses = usesOf(tokens)
        const all = [0, 1].map((layer) => {
          const of = uses.filter((use) => use.layer === layer)
          const distances = distancesOf(of)
          const before = calls[0]!.layers[layer]!.ids.length
          return calls.slice(1).map(({ layers }, i) => {
            const known = of.flatMap(({ token }, j) =>
              token === before + i && distances[j] ? [distances[j]!.tokens] : [],
            )
            // Worker 1 begins 1 ns before worker 0.
            const { ns, faults } = layers[layer]!
            return { reuse: known.length > 0 ? mean(known) : undefined, time: ns + 1, faults }
          })
        })
        const pairs = (of: (typeof all)[0]) => of.filter(({ reuse }) => reuse !== undefined)
        for (const [layer, of] of all.entries()) expectPairs(experts!.layers[layer]!.reuse_and_time, pairs(of))
        const ofCalls = all[0]!.map((first, i) => {
          const both = [first, all[1]![i]!]
          const known = both.flatMap(({ reuse }) => reuse ?? [])
          return {
            reuse: known.length > 0 ? mean(known) : undefined,
            time: both[0]!.time + both[1]!.time,
            faults: both[0]!.faults + both[1]!.faults,
          }
        })
        expectPairs(experts!.reuse_and_time, pairs(ofCalls))
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })
})

function expectPairs(
  found: Figures['reuse_and_time'],
  pairs: readonly { readonly reuse: number | undefined; readonly time: number; readonly faults: number }[],
): void {
  if (pairs.length === 0) return expect(found).toBeNull()
  expect(found).toMatchObject({ count: pairs.length, every: 1, fault_counter: 'major_faults' })
  const [reuse, time, faults] = [
    pairs.map(({ reuse }) => reuse!),
    pairs.map(({ time }) => time),
    pairs.map(({ faults }) => faults),
  ] as const
  for (const [of, xs, ys] of [
    [found!.time_with_reuse, reuse, time],
    [found!.faults_with_reuse, reuse, faults],
    [found!.time_with_faults, faults, time],
  ] as const) {
    if (pairs.length < 3 || new Set(xs).size === 1 || new Set(ys).size === 1) expect(of).toBeNull()
    else {
      expect(of!.pearson).toBeCloseTo(pearson(xs, ys), 6)
      expect(of!.spearman).toBeCloseTo(pearson(ranks(xs), ranks(ys)), 6)
    }
  }
}
