import { writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { type Analysis, analyze } from '../../../lib/index.ts'
import { at, run, useFolder } from '../../cli/helpers.ts'
import { BYTES, type MadeSplits, madeSplits, NS } from './made-splits.ts'

useFolder()

const placed = async (splits: MadeSplits): Promise<NonNullable<Analysis['placement']>> => {
  const { placement, undetermined } = await analyze({ name: 'made', source: madeSplits(splits) })
  expect(undetermined.filter(({ what }) => what.startsWith('placement'))).toEqual([])
  return placement!
}

type Moved = NonNullable<Analysis['placement']>['moved'][number]

/** What of a row of operators tests compare. */
const short = ({ phase, ops, backend, layer_backend, reason, detail, layers }: Moved) =>
  [phase, ops.join('+'), `${backend} for ${layer_backend}`, `${reason} ${detail}`.trim(), layers.join()].join(': ')

describe('where layers are, and what computes them', () => {
  test('a model on a device: one split for the embedding, one for all else', async () => {
    const { backends, layers, outside_layers, phases, moved } = await placed({ layers: [{}, {}, {}] })
    expect(backends).toEqual(['CPU', 'CUDA0'])
    expect(layers).toEqual([
      {
        ...{ first_layer: 0, last_layer: 2, backend: 'CUDA0', kv_cache: ['CUDA0'] },
        weights: [
          {
            ...{ buffer: 'CUDA0', tensors: 9, bytes: 9 * 2304 },
            roles: ['attn_output.weight', 'attn_q.weight', 'ffn_down.weight'],
          },
        ],
      },
    ])
    expect(outside_layers).toEqual([
      { role: 'embd', op: 'GET_ROWS', backend: 'CPU', buffer: 'CPU_Mapped' },
      { role: 'result_output', op: 'MUL_MAT', backend: 'CUDA0', buffer: 'CUDA0' },
    ])
    expect(moved).toEqual([])
    const common = { inputs: 4, input_bytes: 4 * BYTES.result, copies: 4, copied_bytes: 4096, copying_ns: 4 * NS.copy }
    expect(phases[1]).toMatchObject({
      ...{ phase: 'decode', calls: 4, splits: 8, ...common },
      by_backend: [
        { backend: 'CPU', splits: 4, nodes: 4, time_ns: 4 * NS.CPU },
        { backend: 'CUDA0', splits: 4, nodes: 64, time_ns: 4 * NS.CUDA0 },
      ],
    })
  })

  test('attention on the CPU: its splits, their time, and what is copied to them', async () => {
    const { moved, phases } = await placed({ layers: [{ attention: 'CPU' }, { attention: 'CPU' }, {}] })
    expect(moved.map(short)).toEqual([
      'decode: FLASH_ATTN_EXT: CPU for CUDA0: unknown: 0,1',
      'prefill: FLASH_ATTN_EXT: CPU for CUDA0: unknown: 0,1',
    ])
    expect(phases[1]!.splits).toBe(4 * 6)
    expect(moved[0]).toMatchObject({ calls: 4, nodes: 8, splits: 8, time_ns: 8 * NS.CPU })
    // A query and the keys for each.
    expect(moved[0]!.input_bytes).toBe(8 * (BYTES.result + BYTES.cache))
    expect(moved[0]!.example).toBe('f32 64 of f32 64, q5_1 64')
  })

  test('single weights elsewhere than their layer, as --override-tensor places them', async () => {
    const { layers, moved } = await placed({ layers: [{}, { down: 'CPU' }, { down: 'CPU' }] })
    expect(
      layers.map(({ first_layer, last_layer, backend, weights }) => [first_layer, last_layer, backend, weights.length]),
    ).toEqual([
      [0, 0, 'CUDA0', 1],
      [1, 2, 'CUDA0', 2],
    ])
    expect(layers[1]!.weights[1]).toEqual({ buffer: 'CPU_Mapped', tensors: 2, bytes: 4608, roles: ['ffn_down.weight'] })
    expect(short(moved[0]!)).toBe('decode: MUL_MAT: CPU for CUDA0: weights CPU_Mapped: 1,2')
  })

  test('layers that remain on the CPU are no operators elsewhere', async () => {
    const { layers, moved, phases } = await placed({
      layers: [{ weights: 'CPU_Mapped' }, { weights: 'CPU_Mapped' }, {}],
    })
    expect(
      layers.map(({ first_layer, last_layer, backend, kv_cache }) => [first_layer, last_layer, backend, kv_cache]),
    ).toEqual([
      [0, 1, 'CPU', ['CPU']],
      [2, 2, 'CUDA0', ['CUDA0']],
    ])
    expect([moved, phases[1]!.splits]).toEqual([[], 8])
  })

  test('a KV cache in memory of the host', async () => {
    const { moved, layers } = await placed({ layers: [{ cache: 'CPU', attention: 'CPU' }, {}] })
    expect(moved.map(short)[0]).toBe('decode: FLASH_ATTN_EXT: CPU for CUDA0: kv-cache CPU: 0')
    expect(layers.map(({ kv_cache }) => kv_cache)).toEqual([['CPU'], ['CUDA0']])
  })
})

describe('stats', () => {
  const stats = (splits: MadeSplits, ...args: string[]) => {
    writeFileSync(at('made.ggtrace'), madeSplits(splits))
    const { code, stdout, stderr } = run(['stats', at('made.ggtrace'), ...args])
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }

  test('a section, and a line of the short form', () => {
    const layers = [{ attention: 'CPU' }, { attention: 'CPU' }, { weights: 'CPU_Mapped' }] as const
    const text = stats({ layers }, '--full')
    expect(text).toMatch(/^placement\n {2}layers +0–1 CUDA0, 2 CPU\n {2}outside layers +embd GET_ROWS CPU, /m)
    expect(text).toMatch(
      /^ {2}decode +7 +CPU 4 with 9 nodes, 160 µs; CUDA0 3 with 8 nodes, 15 µs +6 KiB +6 µs +15 µs$/m,
    )
    expect(text).toMatch(/^ {2}FLASH_ATTN_EXT +decode +CPU +CUDA0 +0–1 +2 +80 µs +8\.5 KiB +reason unknown$/m)
    expect(stats({ layers })).toMatch(
      /^ {2}placement +layers 0–1 CUDA0, 2 CPU; FLASH_ATTN_EXT of 2 on CPU; 7 splits a dec/m,
    )
  })

  test('nothing of it where only the CPU computes', () => {
    expect(stats({ layers: [{ weights: 'CPU_Mapped' }] }, '--full')).not.toContain('placement')
  })
})
