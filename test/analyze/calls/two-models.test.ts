import { describe, expect, test } from '@jest/globals'
import { lookedAt, whatIf } from '../../../lib/analysis.ts'
import { type Analysis, analyze, summarize } from '../../../lib/index.ts'
import { logOf, type MadeCall, type MadeOperator, span } from './made-run.ts'

/** Runs of two models: figures that compare calls with each other are those of the same log without the calls of the other model. */

const [MAIN, OTHER] = [1, 2]
const [PROMPT, CYCLES] = [32, 48]

/** Operators of a call that lasts this long: attention, and the rest. */
const operators = (model: string, ns: number): readonly MadeOperator[] => [
  { node: `${model}kqv_out-0 FLASH_ATTN_EXT`, ns: 0.6 * ns },
  { node: `${model}ffn_out-0 MUL_MAT`, ns: 0.3 * ns },
]

/** Where a call of the main model is ten times slower: the first decode call, none, or the other model's first one. */
type Slow = 'main' | 'none' | 'other'

/**
 * Two models by turns, from the same positions on: the other one is 50 times faster and has three calls for each one of the main model. With
 * drafts, each fourth call of the main model verifies three tokens, which shows which model drafts.
 */
function turns(hasDrafts: boolean, slow: Slow): MadeCall[] {
  const calls: MadeCall[] = []
  let [now, position] = [0, PROMPT]
  const add = (context: number, ns: number, call: Partial<MadeCall>) => {
    const startNs = now
    now += ns + 1000
    calls.push({
      startNs,
      endNs: startNs + ns,
      context,
      operators: operators(context === MAIN ? '' : 'd_', ns),
      ...call,
    })
  }
  for (const context of [MAIN, OTHER])
    add(context, context === MAIN ? 8e6 : 160_000, { phase: 'prefill', spans: [span(0, PROMPT)] })
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const isFirst = cycle === 0
    for (let i = 0; i < 3; i++)
      add(OTHER, slow === 'other' && isFirst && i === 0 ? 4e7 : 20_000 + 10 * position, {
        phase: 'decode',
        spans: [span(position + i)],
      })
    const verifies = hasDrafts && cycle % 4 === 1
    const ns = (1e6 + 20_000 * position) * (slow === 'main' && isFirst ? 10 : 1)
    add(MAIN, ns, { phase: 'decode', spans: [span(position, verifies ? 3 : 1)], areAllOutput: verifies })
    position += verifies ? 3 : 1
  }
  return calls
}

const SERIES = { series: ['calls', 'steps'] as const }
const isOfMain = ({ context }: MadeCall) => context === MAIN

const byRule = ({ findings }: Pick<Analysis, 'findings'>, rules: readonly string[]) =>
  findings.flatMap(({ rule, sentence, time_ns, evidence }) =>
    rules.includes(rule) ? [{ rule, sentence: sentence.replace(' of the target', ''), time_ns, evidence }] : [],
  )
/** Rules that compare calls with each other. */
const COMPARING = ['first-call', 'context-growth', 'between-calls']

/** What compares calls with each other, without the numbers of calls and the roles, which a single model does not have. */
async function compared(calls: readonly MadeCall[]) {
  const analysis = await analyze(logOf(calls), SERIES)
  const { context, tpot, calls: count, ttft_ns } = analysis.calls.contexts.find((one) => one.context === MAIN)!
  const { tpot_ns } = await whatIf(analysis, { without: ['first-call'] })
  const looked = lookedAt(analysis).filter(({ rule }) => COMPARING.includes(rule))
  return {
    first: analysis.first_calls.map(({ call: _, role: __, ...first }) => first),
    slope: analysis.calls.slope,
    ...{ context, tpot, count, ttft_ns },
    findings: byRule(analysis, COMPARING).map(({ time_ns: _, ...finding }) => finding),
    looked: looked.map(({ figures }) => figures.map(({ figure }) => figure.replace(' of the target', ''))),
    prediction: { factor: (tpot_ns.expected ?? NaN) / tpot_ns.now!, why: tpot_ns.why },
  }
}

describe.each([true, false])('with drafts: %s', (hasDrafts) => {
  test.each<Slow>(['main', 'none', 'other'])(
    'calls are compared with those of their own model; slow first: %s',
    async (slow) => {
      const all = turns(hasDrafts, slow)
      const { prediction, ...both } = await compared(all)
      const { prediction: own, ...alone } = await compared(all.filter(isOfMain))
      expect(both).toEqual(alone)
      expect(own.why).toBeNull()
      // Tokens that two models make together are not predicted; those of each model by itself are, from its own calls.
      expect(prediction.why === null).toBe(!hasDrafts)
      if (!hasDrafts) expect(prediction.factor).toBeCloseTo(own.factor, 1)
      const rules = both.findings.map(({ rule }) => rule)
      expect(rules.includes('first-call')).toBe(slow === 'main')
    },
  )

  test('conversions look at the same calls', async () => {
    const log = logOf(turns(hasDrafts, 'main'))
    const [{ findings = [] }, whole] = [await summarize(log, { findings: true }), await analyze(log)]
    expect(byRule({ findings }, COMPARING)).toEqual(byRule(whole, COMPARING))
    expect(byRule({ findings }, COMPARING).length).toBeGreaterThan(0)
  })
})

test('figures of several models together are marked; drafts are none', async () => {
  const sentenceOf = async (hasDrafts: boolean) => (await analyze(logOf(turns(hasDrafts, 'none')))).verdict.sentence
  expect(await sentenceOf(false)).toMatch(/^decode [\d ]+ tok\/s of 2 contexts together/)
  expect(await sentenceOf(true)).not.toMatch(/contexts/)
})
