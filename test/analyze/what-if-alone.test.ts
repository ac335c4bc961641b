import { describe, expect, test } from '@jest/globals'
import { afterAlone, keptOf, ofSequences } from '../../lib/analyze/what-if/alone.ts'
import { analyze } from '../../lib/index.ts'
import { ofMostNodes } from '../../lib/node/kernels.ts'
import { inputOf } from '../../lib/node.ts'

describe('what a step takes beside what was measured of it alone', () => {
  const usual = keptOf(1)

  test('is added after a change, and no factor', () => {
    const { low, expected, high } = afterAlone({ run: 45, before: 29, after: 192 }, usual)
    expect(expected * 45).toBeCloseTo(192 + 16, 9)
    expect([low * 45, high * 45]).toEqual([expect.closeTo(192 + 8, 9), expect.closeTo(192 + 24, 9)])
    // So many times as much, of more tokens.
    expect(afterAlone({ run: 45, before: 29, after: 192 }, usual, 4).expected * 45).toBeCloseTo(192 + 64, 9)
  })

  test('a measurement that took longer than the run was disturbed: half of it is expected', () => {
    const { low, expected, high } = afterAlone({ run: 64, before: 100, after: 200 }, usual)
    expect([low, high]).toEqual([2, 200 / 64])
    expect(expected).toBeCloseTo((200 * 0.8) / 64, 9)
  })

  test('with more sequences, it is between as much and as many times as much', () => {
    expect(ofSequences(usual, 4)).toEqual({ low: usual.low, expected: 2 * usual.expected, high: 4 * usual.high })
    expect(ofSequences(usual, 1 / 4)).toEqual({ low: usual.low / 4, expected: usual.expected / 2, high: usual.high })
    expect(ofSequences(usual, 1)).toEqual(usual)
  })

  test.each([
    [1.05, 0.5, 1],
    [1.2, 0.25, 1],
    [1.6, 0.5 / 6, Math.SQRT1_2],
  ])('of products that take %d times what was measured, what is unusual may not remain', (ratio, low, expected) => {
    expect(keptOf(ratio)).toEqual({ low: expect.closeTo(low, 9), expected: expect.closeTo(expected, 9), high: 1.5 })
  })
})

test('a round of a measurement whose graphs had few matrices, which caches contain, does not count', () => {
  const round = (rows: number, nodes: number | undefined, ns: number) => ({ rows, nodes, ns })
  const rounds = [
    round(768, 20, 13),
    round(768, 149, 26),
    round(768, 148, 25),
    round(256, 5, 4),
    round(9, undefined, 1),
  ]
  expect(ofMostNodes(rounds, ({ rows }) => `${rows}`).map(({ ns }) => ns)).toEqual([26, 25, 4, 1])
})

test('the last layer of a prompt computes its feed-forward products for tokens with outputs only', async () => {
  const { series } = await analyze(await inputOf('examples/moe.ggtrace.gz'), { series: ['calls', 'steps'] })
  const { groups, calls } = series!.steps!
  const [prompt] = calls
  const tokensOf = (role: string) => {
    const group = groups.findIndex((group) => group.role === role)
    return [prompt!.tokens[group], (prompt!.steps[group]! - 1) * 16]
  }
  const [gate, ofOthers] = tokensOf('ffn_moe_gate')
  expect(gate).toBe(ofOthers! + 1)
  const [query, ofAllButOne] = tokensOf('Qcur')
  expect(query).toBe(ofAllButOne! + 16)
})
