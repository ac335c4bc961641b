import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { inLong } from '../../long.ts'
import { analysed, type MadeCall, type MadeOperator, span } from './made-run.ts'

const PROMPT = 100

/** A prompt, and decode calls whose operators grow with the context; the first one is ten times slower. */
function growing(
  count: number,
  operatorsAt: (position: number) => readonly MadeOperator[],
  more: Partial<MadeCall> = {},
) {
  const calls: MadeCall[] = [{ startNs: 0, endNs: 1e6, spans: [span(0, PROMPT)], ...more }]
  let now = 1e6
  for (let i = 0; i < count; i++) {
    const operators = operatorsAt(PROMPT + i)
    const inOperators = operators.reduce((sum, { ns, waitNs = 0 }) => sum + ns + waitNs, 0)
    const startNs = now + 5000
    const endNs = startNs + (inOperators + 800) * (i === 0 ? 10 : 1)
    calls.push({ startNs, endNs, spans: [span(PROMPT + i)], operators, ...more })
    now = endNs
  }
  return calls
}

test('what growth costs is the time of the calls with a long context, of which there may be few', async () => {
  const costOf = async (longNs: number) => {
    const short = growing(60, () => [{ node: 'kqv_out-0 FLASH_ATTN_EXT', ns: 200_000 }])
    const from = short.at(-1)!.endNs
    const long = Array.from({ length: 4 }, (_, i) => ({
      ...{ startNs: from + i * (longNs + 10_000) + 5000, endNs: from + (i + 1) * (longNs + 10_000) },
      spans: [span(2000 + i)],
      operators: [{ node: 'kqv_out-0 FLASH_ATTN_EXT', ns: longNs }],
    }))
    const { findings } = await analysed([...short, ...long])
    return findings.filter(({ rule }) => rule === 'context-growth').map(({ time_ns }) => time_ns)
  }
  const [costNs, ...others] = await costOf(2_000_000)
  expect(others).toEqual([])
  // The line attributes a fifth more to the 59 short ones, whose context grows, too.
  expect(costNs! / (4 * 1_800_000)).toBeCloseTo(1.24, 1)
  expect(await costOf(400_000)).toEqual([]) // 6 % of all calls
})

describe('slope of TPOT', () => {
  test('of exact linear growth is exact, and so are its parts', async () => {
    const calls = growing(20, (position) => [
      { node: 'kq-0 MUL_MAT', ns: 300 + 2000 * position, waitNs: 500 * position },
      { node: 'kq-1 MUL_MAT', ns: 1000 * position },
      { node: 'ffn_up-0 MUL_MAT', ns: 40_000 },
      { node: 'ffn_up-0 ADD', ns: 9000 - 10 * position },
    ])
    const { slope } = (await analysed(calls)).calls
    const exact = { r_squared: 1, standard_error_ms: 0 }
    expect(slope).toMatchObject({
      ...{ context: 1, points: 19, left_out: 1, from_tokens: 101, to_tokens: 119 },
      ...{ positions: 'recorded', sequences_max: 1 },
      between_calls: { ms_per_1000_tokens: 0, mean_ns: 5000, r_squared: null },
    })
    for (const whole of [slope!.tpot, slope!.call, slope!.operators!.call]) {
      expect(whole).toMatchObject({ ...exact, ms_per_1000_tokens: 3.49 })
    }
    expect(slope!.call.at_0_ns).toBeCloseTo(300 + 40_000 + 9000 + 800, 6)
    const parts = slope!.operators!.parts.map(({ what, role, op, block, ms_per_1000_tokens: ms }) => [
      what,
      role,
      op,
      block,
      ms,
    ])
    expect(parts).toEqual([
      ['role', 'kq', 'MUL_MAT', 'attention', 3.5],
      ['rest', '', '', null, 0],
      ['role', 'ffn_up', 'MUL_MAT', 'FFN', 0],
      ['role', 'ffn_up', 'ADD', 'FFN', -0.01],
    ])
  })

  test('of calls without operators: the same, without parts, and the document has the reason', async () => {
    const calls = growing(20, (position) => [{ node: 'kq-0 MUL_MAT', ns: 1000 * position }])
    const with_ = (await analysed(calls)).calls.slope!
    const without = await analysed(calls.map(({ operators, ...call }) => call))
    expect(without.calls.slope).toEqual({ ...with_, operators: null })
    expect(without.undetermined.map(({ what }) => what)).toContain('calls.slope.operators')
  })

  test('of calls of which some have operators: parts sum to the growth of those', async () => {
    const calls = growing(40, (position) => [{ node: 'kq-0 MUL_MAT', ns: position * position }])
    const { slope } = (await analysed(calls.map((call, i) => (i % 4 ? call : { ...call, operators: [] })))).calls
    expect([slope!.points, slope!.operators!.points]).toEqual([39, 29])
    const sum = slope!.operators!.parts.reduce((sum, part) => sum + part.ms_per_1000_tokens, 0)
    expect(sum).toBeCloseTo(slope!.operators!.call.ms_per_1000_tokens, 9)
    expect(slope!.call.ms_per_1000_tokens).not.toBeCloseTo(slope!.operators!.call.ms_per_1000_tokens, 6)
  })

  test('parts sum to the whole, whatever the times are', async () => {
    const time = fc.integer({ min: 1, max: 1e6 })
    const call = fc.record({ kq: time, up: time, wait: time, hasUp: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 5, maxLength: 30 }), async (list) => {
        const calls = growing(list.length, (position) => {
          const { kq, up, wait, hasUp } = list[position - PROMPT]!
          const first = { node: 'kq-3 MUL_MAT', ns: kq, waitNs: wait }
          return hasUp ? [first, { node: 'ffn_up-3 MUL_MAT', ns: up }] : [first]
        })
        const { slope } = (await analysed(calls)).calls
        const { call, parts } = slope!.operators!
        const sum = (of: 'ms_per_1000_tokens' | 'mean_ns' | 'at_0_ns') => parts.reduce((all, part) => all + part[of], 0)
        expect(sum('ms_per_1000_tokens')).toBeCloseTo(call.ms_per_1000_tokens, 6)
        expect(sum('mean_ns') / call.mean_ns).toBeCloseTo(1, 9)
        expect(call).toEqual(slope!.call)
        expect(slope!.tpot.ms_per_1000_tokens).toBeCloseTo(
          slope!.call.ms_per_1000_tokens + slope!.between_calls.ms_per_1000_tokens,
          6,
        )
      }),
      { numRuns: 40 },
    )
  })

  inLong(test)(
    'of more calls than can wait for operators: all are points, and the latest have their operators',
    async () => {
      const calls = growing(150_000, () => []).map((call, i, { length }): MadeCall => {
        return i < length - 10 ? call : { ...call, operators: [{ node: 'kq-0 MUL_MAT', ns: 10 * (i % 10) }] }
      })
      const { slope } = (await analysed(calls)).calls
      expect([slope!.points, slope!.operators!.points]).toEqual([149_999, 10])
      expect(slope!.tpot.ms_per_1000_tokens).toBe(0)
    },
  )

  test('of more than 256 roles: the further ones are one part, and the sum holds', async () => {
    const nodes = Array.from({ length: 300 }, (_, i) => `role_${i}_x-0 ADD`)
    const calls = growing(8, (position) => nodes.map((node) => ({ node, ns: 10 * position })))
    const { call, parts } = (await analysed(calls)).calls.slope!.operators!
    expect(parts).toHaveLength(256 + 2)
    expect(parts[0]).toMatchObject({ what: 'other roles', ms_per_1000_tokens: 0.44 })
    expect(parts.reduce((sum, part) => sum + part.ms_per_1000_tokens, 0)).toBeCloseTo(3, 9)
    expect(call.ms_per_1000_tokens).toBeCloseTo(3, 9)
  })

  test('of several sequences: their mean position; the document has how many', async () => {
    const both = growing(10, (position) => [{ node: 'kq-0 MUL_MAT', ns: 1000 * position }]).map((call) => {
      return {
        ...call,
        spans: call.spans!.flatMap((of) => [of, { ...of, position: of.position && of.position + 50, sequence: 1 }]),
      }
    })
    const calls = both.map((call, i) => (i === 0 ? call : { ...call, phase: 'decode' as const }))
    const { slope } = (await analysed(calls)).calls
    expect(slope).toMatchObject({ sequences_max: 2, from_tokens: 126, to_tokens: 134, points: 9 })
    expect(slope!.tpot.ms_per_1000_tokens).toBe(1)
  })

  test.each([
    ['recorded', [0, 1, 2, 3], 'recorded', 19],
    ['not recorded: tokens are counted', [-1, -1, -1, -1], 'counted', 19],
  ] as const)('positions %s', async (_, signs, positions, points) => {
    const calls = growing(20, (position) => [{ node: 'kq-0 MUL_MAT', ns: 1000 * position }])
    const changed = calls.map((call) => {
      return { ...call, spans: call.spans!.map((of) => (signs[0] < 0 ? { ...of, position: -1 } : of)) }
    })
    const { slope } = (await analysed(changed)).calls
    expect(slope).toMatchObject({ positions, points, from_tokens: 101, to_tokens: 119 })
    expect(slope!.tpot.ms_per_1000_tokens).toBe(1)
  })

  test('positions not recorded, after a second prompt: the length is not known from there on', async () => {
    const calls = growing(6, (position) => [{ node: 'kq-0 MUL_MAT', ns: 1000 * position }])
    const again = calls.map((call) => ({ ...call, startNs: call.startNs + 1e8, endNs: call.endNs + 1e8 }))
    const changed = [...calls, ...again].map((call) => ({ ...call, spans: [{ ...call.spans![0]!, position: -1 }] }))
    expect((await analysed(changed)).calls.slope).toMatchObject({ points: 5, positions: 'counted' })
  })

  test('calls that verify drafts, or prefill too, are no points; nor is the first call after a prompt', async () => {
    const calls = growing(12, (position) => [{ node: 'kq-0 MUL_MAT', ns: 1000 * position }])
    const changed = calls.map((call, i): MadeCall => {
      if (i === 5) return { ...call, spans: [span(PROMPT + 4, 3)], areAllOutput: true, phase: 'decode' }
      return i === 8 ? { ...call, spans: [...call.spans!, span(0, 9, 1)], phase: 'mixed' } : call
    })
    // Of 12: without the first one, the verifying and the mixed one, and the one after the latter.
    expect((await analysed(changed)).calls.slope).toMatchObject({ points: 8, left_out: 2 })
  })

  test.each([
    ['too few calls', growing(3, () => []), 'it takes three decode calls after the first one'],
    [
      'unknown lengths',
      growing(9, () => []).map((call) => ({ ...call, spans: [{ ...call.spans![0]!, position: -1 }], tokens: -1 })),
      'the lengths of contexts are not known',
    ],
  ])('of %s: none, with the reason', async (_, calls, why) => {
    const { calls: figures, undetermined } = await analysed(
      calls.map((call, i) => ({ ...call, phase: i === 0 ? ('prefill' as const) : ('decode' as const) })),
    )
    expect(figures.slope).toBeNull()
    expect(undetermined).toContainEqual({ what: 'calls.slope', why, hint: undefined })
  })
})
