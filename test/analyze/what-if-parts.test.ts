import { beforeAll, describe, expect, test } from '@jest/globals'
import { type Analysis, analyze, type KernelTimes, type WhatIf, type WhatIfPart, whatIf } from '../../lib/analysis.ts'
import { inputOf } from '../../lib/node.ts'
import { factorsOf, kernelsOf } from './made-kernels.ts'

/** What is predicted of parts of a model, experts and attention, in real runs. */
const AFTER = 'test/printed/logs/after.ggtrace.gz'
const PROMPT = 'test/recorded/prompt.ggtrace.gz'
/** A prompt of 16 tokens and 8 decode calls, of a model in which each token uses 2 of 8 experts. */
const EXPERTS = 'examples/moe.ggtrace.gz'

let [after, prompt] = [undefined as unknown as Analysis, undefined as unknown as Analysis]
beforeAll(async () => {
  const analysisOf = async (path: string) => analyze(await inputOf(path), { series: ['calls', 'steps'] })
  ;[after, prompt] = [await analysisOf(AFTER), await analysisOf(PROMPT)]
})

describe('another number of experts of a token', () => {
  const prefill = ({ parts }: WhatIf, op: string) =>
    parts.filter((part) => part.phase === 'prefill' && part.op === op).map(({ now_ns, then_ns }) => then_ns / now_ns)

  test('products of experts grow with it, those of the router and of attention remain', async () => {
    const result = await whatIf(await inputOf(EXPERTS), { experts: 4 })
    expect(prefill(result, 'MUL_MAT_ID').length).toBeGreaterThan(0)
    for (const factor of prefill(result, 'MUL_MAT_ID')) expect(factor).toBeCloseTo(2, 9)
    const unchanged = result.parts.filter(({ role }) => /^(attn|Qcur|Kcur|Vcur|ffn_moe_logits)/.test(role))
    expect(unchanged.length).toBeGreaterThan(0)
    for (const { now_ns, then_ns } of unchanged) expect(then_ns).toBe(now_ns)
    expect(result.basis.join('\n')).toContain('without calibration, 4 experts of a token: proportional in decode')
    expect(result.basis.join('\n')).toMatch(/ggml2perfetto peaks <log> --types \S+ --experts 4/)
  })

  test.each<[path: string, experts: number, why: RegExp]>([
    [EXPERTS, 9, /a token cannot use 9 of 8 experts/],
    [PROMPT, 2, /no product of experts was recorded on the CPU/],
  ])('cannot say: %s, %d', async (path, experts, why) => {
    expect((await whatIf(await inputOf(path), { experts })).ttft_ns.why).toMatch(why)
  })

  test('as many as in the run change nothing', async () => {
    const { ttft_ns } = await whatIf(await inputOf(EXPERTS), { experts: 2 })
    expect([ttft_ns.expected, ttft_ns.low]).toEqual([ttft_ns.now, ttft_ns.now])
  })

  test('by measured products of so many experts', async () => {
    const analysis = await analyze(await inputOf(EXPERTS), { series: ['calls', 'steps'] })
    const { groups, calls } = analysis.series!.steps!
    const times = groups.flatMap((group, i) => {
      const { type, weight_columns: columns, weight_rows: rows, weight_elements, experts_used } = group
      if (experts_used === null) return []
      // The last layer computes those of tokens with outputs.
      const ns = (16 * calls[0]!.undisturbed_ns[i]!) / calls[0]!.tokens[i]! / 1.05 // measured alone
      const matrix = { type, columns, rows, experts: weight_elements / (columns * rows), buffer: 'CPU', best_ns: ns }
      const runs = [
        { used: 2, ns },
        { used: 4, ns: 1.5 * ns },
      ].map((run) => ({ ...matrix, ...run, tokens: 16 }))
      // Any number of copies that the weights of the model may be.
      return runs.flatMap((run) =>
        [4, 8, 16, 32, 64].map((copies) => ({ ...run, copies, threads: analysis.run.workers })),
      )
    })
    const kernels = { ...kernelsOf(analysis, [], () => 1), products: times }
    const result = await whatIf(analysis, { experts: 4 }, { kernels })
    const products = result.parts.filter(({ phase, op }) => phase === 'prefill' && op === 'MUL_MAT_ID')
    const sumOfAll = (field: 'now_ns' | 'then_ns') => products.reduce((sum, part) => sum + part[field], 0)
    expect(sumOfAll('then_ns') / sumOfAll('now_ns')).toBeCloseTo(1 + 0.5 / 1.05, 1)
    expect(result.basis.join()).toMatch(/prefill: 3 of 3 kinds of products by what ggml's own take with/)
  })
})

/** What a step of a group takes in a run. */
function stepNs({ series }: Analysis, group: number): number {
  const calls = series!.steps!.calls
  const sumOfAll = (list: 'steps' | 'undisturbed_ns') => calls.reduce((sum, call) => sum + (call[list][group] ?? 0), 0)
  return sumOfAll('undisturbed_ns') / sumOfAll('steps')
}

test('other threads, by measured attention: not as if it scaled perfectly', async () => {
  const { groups, calls } = after.series!.steps!
  const group = groups.findIndex(({ attention }) => attention)
  const middle = calls[calls.length >> 1]!
  const row = after.series!.calls!.rows.find(({ call }) => call === middle.call)!
  const ns = middle.undisturbed_ns[group]! / middle.steps[group]!
  const run = { copies: 8, tokens: 1, context: row.context_tokens!, cache: middle.cache_tokens!, best_ns: ns }
  const shape = groups[group]!.attention!
  const attention = [1, 2].map((threads) => ({ ...shape, ...run, threads, ns: threads === 2 ? ns : 1.6 * ns }))
  const kernels = { ...kernelsOf(after, [], () => 1), attention }
  const isAttention = ({ op }: WhatIfPart) => op === 'FLASH_ATTN_EXT'
  const result = await whatIf(after, { threads: 1 }, { kernels })
  // What it takes beside what was measured is loaded by one thread then.
  const own = stepNs(after, group)
  expect(factorsOf(result, isAttention)).toEqual([expect.closeTo((1.6 * ns + 2 * (own - ns)) / own, 6)])
  expect(result.basis.join('\n')).toContain('decode: attention as measured (peaks --types)')
  const other = { ...kernels, attention: attention.map((time) => ({ ...time, heads: time.heads + 1 })) }
  expect(factorsOf(await whatIf(after, { threads: 1 }, { kernels: other }), isAttention)).toEqual([2])
})

test('several sequences, by measured attention of as many: not in proportion', async () => {
  const { groups, calls } = after.series!.steps!
  const group = groups.findIndex(({ attention }) => attention)
  const middle = calls[calls.length >> 1]!
  const context = after.series!.calls!.rows.find(({ call }) => call === middle.call)!.context_tokens!
  const ns = middle.undisturbed_ns[group]! / middle.steps[group]!
  const run = { ...groups[group]!.attention!, copies: 8, context, threads: after.run.workers, best_ns: ns }
  const one = { ...run, tokens: 1, cache: middle.cache_tokens!, ns }
  const four = { ...run, tokens: 4, sequences: 4, cache: 4 * middle.cache_tokens!, ns: 4.6 * ns }
  const factorsBy = async (...attention: KernelTimes['attention'] & object) => {
    const kernels = { ...kernelsOf(after, [], () => 1), attention }
    return factorsOf(await whatIf(after, { batch: 4 }, { kernels }), ({ op }) => op === 'FLASH_ATTN_EXT')
  }
  // What it takes beside what was measured, each sequence takes.
  const inRun = stepNs(after, group)
  expect(await factorsBy(one, four)).toEqual([expect.closeTo((4.6 * ns + 4 * (inRun - ns)) / inRun, 6)])
  // A prompt of four tokens is no four sequences.
  const inBounds = await factorsBy(one, { ...four, sequences: undefined })
  expect(inBounds).toEqual([expect.closeTo(4 * 1.15, 6)])
})

test('a longer context, by measured attention', async () => {
  const { groups, calls } = prompt.series!.steps!
  const group = groups.findIndex(({ attention }) => attention)
  const rows = prompt.series!.calls!.rows.filter(({ phase }) => phase === 'decode')
  const middle = rows[rows.length >> 1]!
  const steps = calls.find(({ call }) => call === middle.call)!
  const ns = steps.undisturbed_ns[group]! / steps.steps[group]!
  const moved = 128 - rows[0]!.context_tokens!
  const [now, then] = [middle.context_tokens!, middle.context_tokens! + moved]
  const run = { ...groups[group]!.attention!, copies: 1, tokens: 1, cache: 256, threads: 1, best_ns: ns }
  const attention = [
    { ...run, context: now, ns },
    { ...run, context: then, ns: 1.7 * ns },
  ]
  const kernels = { ...kernelsOf(prompt, [], () => 1), attention }
  const result = await whatIf(prompt, { context: 128, without: ['preempted'] }, { kernels })
  const growthOf = ({ parts }: WhatIf) =>
    parts.find(({ phase, op }) => phase === 'decode' && op === 'FLASH_ATTN_EXT')!.then_ns
  const before = await whatIf(prompt, { without: ['preempted'] }, { kernels })
  expect(growthOf(result) / growthOf(before)).toBeCloseTo(1.7, 0)
  expect(result.basis.join('\n')).toContain('growth of attention as measured (peaks --types)')
})
