import { describe, expect, test } from '@jest/globals'
import { decidedBy, type QuestionTensor, variationsOf } from '../../lib/model/refusals.ts'

const tensor = (type: string, ne: readonly number[], nb: readonly number[], name = ''): QuestionTensor => {
  return { name, type, ne, nb }
}

/** Attention with heads of 48, over a cache whose rows have the heads one after the other. */
const ATTENTION = [
  tensor('f32', [48, 4, 1, 1], [4, 192, 768, 768]),
  tensor('f32', [48, 1, 4, 1], [4, 768, 192, 768]),
  tensor('f16', [48, 256, 2, 1], [2, 192, 96, 49152]),
  tensor('f16', [48, 256, 2, 1], [2, 192, 96, 49152]),
  tensor('f16', [256, 1, 1, 1], [2, 512, 512, 512]),
]

describe('questions that differ from a refused one in one property', () => {
  const found = variationsOf('FLASH_ATTN_EXT', ATTENTION)

  test('a size is replaced wherever it occurs, the nearest first, and distances follow it', () => {
    const sizes = found.filter(({ property }) => property === 'heads of 48')
    expect(sizes.slice(0, 3).map(({ instead }) => instead)).toEqual(['64', '32', '128'])
    expect(sizes[0]!.tensors).toEqual([
      tensor('f32', [64, 4, 1, 1], [4, 256, 1024, 1024]),
      tensor('f32', [64, 1, 4, 1], [4, 1024, 256, 1024]),
      tensor('f16', [64, 256, 2, 1], [2, 256, 128, 65536]),
      tensor('f16', [64, 256, 2, 1], [2, 256, 128, 65536]),
      tensor('f16', [256, 1, 1, 1], [2, 512, 512, 512]),
    ])
  })

  test('a type keeps the elements and their order; blocks of a type remain whole', () => {
    const cache = tensor('q5_1', [64, 256, 2, 1], [24, 96, 48, 24576])
    const [node, query, , , mask] = ATTENTION
    const quantised = variationsOf('FLASH_ATTN_EXT', [node!, query!, cache, cache, mask!])
    const toF16 = quantised.find(({ property, instead }) => property === 'a KV cache of q5_1' && instead === 'f16')!
    expect(toF16.tensors[2]).toEqual(tensor('f16', [64, 256, 2, 1], [2, 256, 128, 65536]))
    const rows = variationsOf('MUL_MAT', [node!, tensor('q4_K', [256, 8], [144, 144], 'a.weight'), query!])
    expect(rows.some(({ property }) => property === 'weights of q4_K')).toBe(true)
    const sizes = rows.flatMap(({ property, instead }) => (property === 'rows of 256' ? [Number(instead) % 256] : []))
    expect([sizes.length > 0, new Set(sizes)]).toEqual([true, new Set([0])])
  })

  test('a source that it does not have remains so; the others keep their numbers and what they are', () => {
    const [node, query, keys, , mask] = ATTENTION
    const none = tensor('', [0, 0, 0, 0], [0, 0, 0, 0])
    const bf16 = tensor('bf16', [48, 256, 2, 1], [2, 192, 96, 49152])
    const some = variationsOf('FLASH_ATTN_EXT', [node!, query!, keys!, bf16, none, mask!])
    expect(some.every(({ tensors }) => tensors[4] === none || tensors[4]!.ne.every((size) => size === 0))).toBe(true)
    expect(some.some(({ property }) => property === 'values of bf16')).toBe(true)
    const strided = tensor('f32', [48, 4, 1, 1], [4, 999 * 4, 4, 4])
    const third = variationsOf('ANY', [node!, query!, none, strided]).map(({ property }) => property)
    expect(third).toContain('source 3 with its distances in memory')
  })

  test('a layout: each source that is not contiguous', () => {
    const layouts = found.filter(({ instead }) => instead === 'a contiguous one')
    expect(layouts.map(({ property }) => property)).toEqual(
      [2, 3].map((i) => `source ${i} with its distances in memory`),
    )
    expect(layouts[0]!.tensors[2]!.nb).toEqual([2, 96, 24576, 49152])
  })

  test('what decided: of each property the nearest that is accepted; nothing if none is', () => {
    const answers = found.map(({ instead }) => instead === '128' || instead === '64')
    expect(decidedBy(found, answers)).toBe('heads of 48 (it takes 64)')
    expect(
      decidedBy(
        found,
        found.map(() => false),
      ),
    ).toBeUndefined()
  })
})
