import { describe, expect, test } from '@jest/globals'
import { workOf } from '../../lib/analysis.ts'
import type { TensorEvent } from '../../lib/core.ts'

/** Work of operators, beside what was counted by hand. */

const tensor = (ne: readonly number[], sizeBytes: number): TensorEvent => ({
  kind: 'tensor',
  id: 0,
  name: 0,
  layer: -1,
  op: 0,
  type: 0,
  ne,
  sources: [],
  sizeBytes,
  buffer: -1,
  offset: undefined,
  address: 0,
  structAddress: 0,
  inferred: 0,
})
const f32 = (...ne: number[]) => tensor(ne, 4 * ne.reduce((product, n) => product * n, 1))
/** 18 bytes for 32 elements. */
const q4 = (...ne: number[]) => tensor(ne, (18 / 32) * ne.reduce((product, n) => product * n, 1))

describe('workOf', () => {
  test('MUL_MAT: m × n results of k products and sums each; each source read once', () => {
    const work = workOf('MUL_MAT', f32(256, 16), [q4(512, 256), f32(512, 16)])
    expect(work).toMatchObject({ flop: 2 * 256 * 16 * 512, bytesRead: 73728 + 32768, bytesWritten: 16384 })
    expect(work).toMatchObject({ expertBytes: 0, expertsRead: 0, isUpperBound: false })
  })

  test('MUL_MAT counts each matrix of a batch', () => {
    expect(workOf('MUL_MAT', f32(8, 4, 3, 2), [f32(16, 8, 3, 2), f32(16, 4, 3, 2)]).flop).toBe(2 * 16 * 8 * 4 * 3 * 2)
  })

  const experts = q4(512, 768, 8) // 221 184 bytes each
  test('MUL_MAT_ID of one token reads the experts that were chosen, of which each is another', () => {
    const work = workOf('MUL_MAT_ID', f32(768, 2, 1), [experts, f32(512, 1, 1), tensor([2, 1], 8)])
    expect(work).toMatchObject({ flop: 2 * 512 * 768 * 2, expertsRead: 2, expertBytes: 442368, isUpperBound: false })
    expect(work.bytesRead).toBe(442368 + 2048 + 8)
  })

  test('MUL_MAT_ID of several tokens reads all experts at most, or as many as are told', () => {
    const sources = [experts, f32(512, 1, 16), tensor([2, 16], 128)]
    const atMost = workOf('MUL_MAT_ID', f32(768, 2, 16), sources)
    expect(atMost).toMatchObject({ expertsRead: 8, isUpperBound: true, flop: 2 * 512 * 768 * 2 * 16 })
    const told = workOf('MUL_MAT_ID', f32(768, 2, 16), sources, 5)
    expect(told).toMatchObject({ expertsRead: 5, isUpperBound: false, expertBytes: 5 * 221184 })
    expect(atMost.bytesRead - told.bytesRead).toBe(3 * 221184)
  })

  test('FLASH_ATTN_EXT: for each row of each head of Q, Q·K and its product with V', () => {
    const sources = [f32(64, 16, 8), f32(64, 256, 4), f32(32, 256, 4), f32(256, 16)]
    expect(workOf('FLASH_ATTN_EXT', f32(32, 8, 16), sources).flop).toBe(2 * (64 + 32) * 256 * 16 * 8)
  })

  test('OUT_PROD and CONV_2D', () => {
    expect(workOf('OUT_PROD', f32(6, 5), [f32(6, 7), f32(5, 7)]).flop).toBe(2 * 6 * 5 * 7)
    expect(workOf('CONV_2D', f32(10, 10, 4), [f32(3, 3, 2, 4), f32(12, 12, 2)]).flop).toBe(2 * 3 * 3 * 2 * 10 * 10 * 4)
  })

  test('GET_ROWS reads the rows that it takes, SET_ROWS and CPY write as much as they read, and read no target', () => {
    const rows = workOf('GET_ROWS', f32(512, 16), [q4(512, 2048), tensor([16], 64)])
    expect(rows).toMatchObject({ flop: 0, bytesRead: 16 * 288 + 64, bytesWritten: 32768 })
    const cache = tensor([256, 256], 131072) // f16
    const set = workOf('SET_ROWS', cache, [f32(256, 16), tensor([16], 128), cache])
    expect(set).toMatchObject({ bytesRead: 16384 + 128, bytesWritten: 8192 })
    expect(workOf('CPY', f32(8), [f32(8), f32(8)])).toMatchObject({ bytesRead: 32, bytesWritten: 32 })
  })

  test('says that it does not know', () => {
    expect(workOf('MUL_MAT', f32(4, 4), [{ ...f32(4, 4), ne: undefined }, f32(4, 4)])).toMatchObject({
      flop: -1,
      bytesRead: -1,
    })
    expect(workOf('ADD', { ...f32(4), sizeBytes: -1 }, [f32(4)])).toMatchObject({ flop: 0, bytesWritten: -1 })
  })
})
