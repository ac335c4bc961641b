import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { CALL_ROWS_MAX } from '../../../lib/analyze/calls/call-rows.ts'
import { summarize } from '../../../lib/index.ts'
import { Inferred } from '../../../lib/model/events.ts'
import { analysed, logOf, type MadeCall, span } from './made-run.ts'

const MS = 1e6

/** A call of the sequences' next tokens. */
const decode = (startMs: number, endMs: number, ...spans: Required<MadeCall>['spans']): MadeCall => {
  return { startNs: startMs * MS, endNs: endMs * MS, spans, phase: 'decode' }
}

describe('by sequence and context', () => {
  test('each sequence has the times of its own tokens; its next text is no successor', async () => {
    const { calls } = await analysed([
      { startNs: 0, endNs: 10 * MS, spans: [span(0, 4), span(0, 4, 1)] },
      decode(10, 20, span(4), span(4, 1, 1)), // 10 ms each
      decode(20, 34, span(5), span(5, 1, 1)), // 14 ms each
      decode(34, 40, span(5 + 1)), // 6 ms of sequence 0
      { startNs: 40 * MS, endNs: 90 * MS, spans: [span(0, 50)] }, // its next text
      decode(90, 93, span(50)), // 3 ms
      decode(93, 95, span(51)), // 2 ms
    ])
    const [context] = calls.contexts
    expect(calls.contexts).toHaveLength(1)
    expect(context).toMatchObject({
      ...{ context: 1, role: null, calls: 7, ttft_ns: 10 * MS, further_sequences: 0 },
      prefill_tokens_per_s: (58 * 1e9) / (60 * MS),
      tpot: { count: 7, min_ns: 2 * MS, max_ns: 14 * MS },
      jitter: { differences: 4, mean_difference_ns: ((4 + 8 + 3 + 1) / 4) * MS },
    })
    expect(calls.tpot).toEqual(context!.tpot)
    expect(calls.prefill_tokens_per_s).toBe((58 * 1e9) / (60 * MS))
    expect(context!.by_sequence).toMatchObject([
      {
        sequence: 0,
        tpot: { count: 5, mean_ns: 7 * MS },
        jitter: {
          differences: 3,
          mean_difference_ns: ((4 + 8 + 1) / 3) * MS,
          standard_deviation_ns: expect.closeTo(Math.sqrt(20) * MS, 3) as unknown as number,
        },
      },
      { sequence: 1, tpot: { count: 2, mean_ns: 12 * MS }, jitter: { differences: 1, mean_difference_ns: 4 * MS } },
    ])
  })

  test('a mixed call without spans counts its tokens', async () => {
    const { calls } = await analysed([
      { startNs: 0, endNs: 10 * MS, phase: 'prefill', tokens: 4 },
      { startNs: 10 * MS, endNs: 20 * MS, phase: 'decode', tokens: 1 },
      { startNs: 20 * MS, endNs: 50 * MS, phase: 'mixed', tokens: 3 },
    ])
    expect(calls.by_phase).toEqual({
      prefill: { calls: 1, tokens: 4 },
      decode: { calls: 1, tokens: 1 },
      mixed: { calls: 1, tokens: 3 },
    })
    expect(calls.tpot).toMatchObject({ count: 4 })
  })

  test('contexts are separate, and their tokens sum to all', async () => {
    const at = (context: number, call: MadeCall): MadeCall => ({ ...call, context })
    const { calls } = await analysed([
      at(1, { startNs: 0, endNs: 4 * MS, spans: [span(0, 8)] }),
      at(2, { startNs: MS, endNs: 3 * MS, spans: [span(0, 2)] }),
      at(1, decode(4, 9, span(8))),
      at(2, decode(4, 6, span(2))),
      at(2, decode(6, 8, span(3))),
    ])
    expect(calls.contexts).toMatchObject([
      { context: 1, prefill_tokens_per_s: 2000, tpot: { count: 1, mean_ns: 5 * MS } },
      { context: 2, prefill_tokens_per_s: 1000, tpot: { count: 2, mean_ns: 2.5 * MS } },
    ])
    expect(calls.tpot).toMatchObject({ count: 3, mean_ns: (10 * MS) / 3 })
    expect(calls.prefill_tokens_per_s).toBe(10 / 0.004) // both in the 4 ms of the longer one
  })

  test('drafts make no tokens and no prompts; the accepted tokens count', async () => {
    const [target, draft] = [1, 2]
    const { calls } = await analysed([
      { startNs: 0, endNs: 10 * MS, spans: [span(0, 8)], context: target },
      { startNs: 10 * MS, endNs: 12 * MS, spans: [span(0, 8)], context: draft },
      { ...decode(12, 14, span(8)), context: draft },
      { ...decode(14, 16, span(9)), context: draft },
      { ...decode(16, 26, span(8, 3)), areAllOutput: true, context: target }, // 2 of 3 are accepted
      { ...decode(26, 36, span(10)), context: target },
    ])
    expect(calls.tpot).toMatchObject({ count: 3, min_ns: 7 * MS, max_ns: 10 * MS, mean_ns: 8 * MS })
    expect(calls.prefill_tokens_per_s).toBe(800)
    expect(calls.contexts).toMatchObject([
      { role: 'target', tpot: { count: 3 }, by_sequence: [{ sequence: 0, jitter: { mean_difference_ns: 3 * MS } }] },
      { role: 'draft', prefill_tokens_per_s: 4000, tpot: { count: 2 } },
    ])
  })

  test('of more than 256 sequences, the further ones are counted', async () => {
    const spans = (position: number, tokens = 1) => Array.from({ length: 300 }, (_, i) => span(position, tokens, i))
    const { calls } = await analysed([
      { startNs: 0, endNs: MS, spans: spans(0, 2) },
      decode(1, 2, ...spans(2)),
      decode(2, 3, ...spans(3)),
    ])
    const [context] = calls.contexts
    expect([context!.by_sequence.length, context!.further_sequences, context!.tpot!.count]).toEqual([256, 44, 600])
  })
})

test('means, tokens and rates are those of the summary, whatever the calls are', async () => {
  const made = fc.record({
    gap: fc.nat(5 * MS),
    took: fc.integer({ min: 1, max: 50 * MS }),
    tokens: fc.constantFrom(1, 1, 1, 1, 2, 7),
    sequences: fc.integer({ min: 1, max: 3 }),
    context: fc.integer({ min: 1, max: 2 }),
    areAllOutput: fc.boolean(),
    result: fc.constantFrom(0, 0, 0, 0, 0, 1),
    inferred: fc.constantFrom(0, 0, 0, 0, 0, Inferred.NoEnd),
    phase: fc.constantFrom(undefined, 'prefill', 'mixed', 'decode', 'decode', 'decode'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(made, { minLength: 1, maxLength: 40 }), async (list) => {
      let now = 0
      const calls = list.map(({ gap, took, tokens, sequences, phase, ...of }, i): MadeCall => {
        const startNs = now + gap
        now = startNs + took
        const spans = Array.from({ length: sequences }, (_, sequence) => span(5 * i, tokens, sequence))
        return { startNs, endNs: now, spans, ...of, ...(phase && { phase: phase as 'decode' }) }
      })
      const summary = await summarize(logOf(calls))
      const { calls: figures } = await analysed(calls, { series: ['calls'] })
      const { decoding, contexts } = summary
      expect(figures).toMatchObject(summary.calls)
      expect(figures.tpot?.mean_ns).toBe(summary.calls.tpot_ns ?? undefined)
      expect(figures.tpot?.count).toBe(decoding?.tokens)
      for (const [i, { tpot_ns, sequences: _, decoding, ...times }] of contexts.entries()) {
        const of = figures.contexts[i]!
        expect(of).toMatchObject(times)
        expect([of.tpot?.mean_ns, of.tpot?.count]).toEqual([tpot_ns ?? undefined, decoding?.tokens])
        const tokens = of.by_sequence.reduce((sum, { tpot }) => sum + tpot.count, 0)
        expect(tokens).toBeCloseTo(of.tpot?.count ?? 0, 6)
      }
    }),
    { numRuns: 200 },
  )
})

describe('table of calls', () => {
  const run = (count: number) => [
    { startNs: 5 * MS, endNs: 6 * MS, spans: [span(0, 4)] },
    ...Array.from({ length: count }, (_, i) => decode(6 + i, 6.5 + i, span(4 + i))),
  ]

  test('is made on request only', async () => {
    expect((await analysed(run(3))).series).toBeUndefined()
  })

  test('has a row per call, with the time of operators of all workers by block', async () => {
    const [prompt, ...calls] = run(2)
    const operators = [
      { node: 'kq-0 MUL_MAT', ns: 4000, waitNs: 100 },
      { node: 'ffn_up-0 MUL_MAT', ns: 6000 },
    ]
    const failed = { ...decode(9, 10, span(6)), result: 1 }
    const { series } = await analysed([prompt!, { ...calls[0]!, operators }, calls[1]!, failed], { series: ['calls'] })
    const NO_STATES = { off_cpu_ns: null, wait_preempted_ns: null }
    const rest = { context: 1, sequences: 1, result: 0, operator_time_ns: null, wait_ns: null, ...NO_STATES }
    expect(series!.calls).toEqual({
      count: 4,
      rows_max: CALL_ROWS_MAX,
      every: 1,
      rows: [
        {
          ...rest,
          ...{ call: 0, phase: 'prefill', tokens: 4, context_tokens: 0, start_ns: 0, time_ns: MS, tpot_ns: null },
        },
        {
          ...{ ...rest, call: 1, phase: 'decode', tokens: 1, context_tokens: 4, start_ns: MS, time_ns: MS / 2 },
          ...{
            tpot_ns: MS / 2,
            operator_time_ns: { attention: 6000, FFN: 9000 },
            wait_ns: 100 + 2100 + 3000,
            ...NO_STATES,
          },
        },
        {
          ...{ ...rest, call: 2, phase: 'decode', tokens: 1, context_tokens: 5, start_ns: 2 * MS, time_ns: MS / 2 },
          tpot_ns: MS,
        },
        {
          ...{ ...rest, call: 3, phase: 'decode', tokens: 1, context_tokens: 6, start_ns: 4 * MS, time_ns: MS },
          ...{ tpot_ns: null, result: 1 },
        },
      ],
    })
  })

  test('of a long run has evenly spaced calls of each phase, and their distance', async () => {
    const count = 2.5 * CALL_ROWS_MAX
    const { series } = await analysed(run(count), { series: ['calls'] })
    const { rows, every, count: all } = series!.calls!
    expect([all, every, rows.length]).toEqual([count + 1, 4, count / 4 + 1])
    expect(rows.slice(0, 4).map(({ call, tpot_ns }) => [call, tpot_ns])).toEqual([
      [0, null],
      [1, MS / 2],
      [5, MS],
      [9, MS],
    ])
  })
})
