import { writeFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { MAPPED_FILE } from '../../../lib/analyze/placement/graph-parts.ts'
import { reasonText } from '../../../lib/cli.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'
import { at, run, useFolder } from '../../cli/helpers.ts'
import { expectChecks } from '../findings/made-run.ts'
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
        { backend: 'CPU', splits: 4, nodes: 4, ops: ['GET_ROWS'], time_ns: 4 * NS.CPU },
        { backend: 'CUDA0', splits: 4, nodes: 64, ops: ['MUL_MAT', 'FLASH_ATTN_EXT', 'ADD'], time_ns: 4 * NS.CUDA0 },
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

  test('what several splits of a backend read is copied once for each graph', async () => {
    const [plain, withPositions] = await Promise.all(
      [false, true].map(async (hasPositions) => {
        const { phases } = await placed({ layers: [{ attention: 'CPU' }, { attention: 'CPU' }], hasPositions })
        return phases.find(({ phase }) => phase === 'decode')!
      }),
    )
    const { calls, inputs, input_bytes, splits } = plain!
    expect([calls, splits]).toEqual([4, 4 * 6])
    // Two splits of the device read the positions.
    expect(withPositions).toMatchObject({ inputs: inputs + calls, input_bytes: input_bytes + 8 * calls })
  })
})

/** The CPU for what a device refused: of the node of layer `i`, as the scheduler asked for it. */
const attention = (type: string) => ({
  ...({ question: 'supports-op', device: 'CUDA0', op: 'FLASH_ATTN_EXT' } as const),
  tensors: [
    { name: '__fattn__-0', type: 'f32', ne: [64] },
    { name: 'Qcur-0', type: 'f32', ne: [64] },
    { name: 'cache_k_l0 (view)', type, ne: [64] },
  ],
})

describe('what devices refused', () => {
  test('the reason of an operator is the refusal of a node with its types', async () => {
    const layers = [{ attention: 'CPU' }, {}] as const
    const refusing = (type: string) => placed({ layers, define: (writer) => writer.refusal(attention(type)) })
    const { moved, refusals } = await refusing('q5_1')
    expect(short(moved[0]!)).toBe('decode: FLASH_ATTN_EXT: CPU for CUDA0: refused supports_op: 0')
    expect(moved[0]!.refused).toBe('f32 64 of f32 64, q5_1 64')
    expect(refusals).toEqual([
      {
        ...{ device: 'CUDA0', op: 'FLASH_ATTN_EXT', question: 'supports-op', is_computed: true, columns_max: 1 },
        ...{ shapes: 1, example: 'f32 64 of f32 64, q5_1 64', decided: null },
      },
    ])
    expect((await refusing('f16')).moved[0]).toMatchObject({ reason: 'unknown', refused: null })
  })

  test('a source that a node does not have is in its place in what was asked, and not in the node', async () => {
    const asked = attention('q5_1')
    const [node, query, keys] = asked.tensors
    const none = { type: '', ne: [0, 0, 0, 0] }
    const tensors = [node!, query!, none, keys!]
    const { moved } = await placed({
      layers: [{ attention: 'CPU' }, {}],
      define: (writer) => writer.refusal({ ...asked, tensors }),
    })
    expect(moved[0]).toMatchObject({ reason: 'refused', refused: 'f32 64 of f32 64, q5_1 64' })
  })

  test('the refusal of a weight, because of which it is in other memory', async () => {
    const down = {
      ...({ question: 'supports-op', device: 'CUDA0', op: 'MUL_MAT' } as const),
      tensors: [
        { type: 'f32', ne: [64, 512] },
        { name: 'blk.0.ffn_down.weight', type: 'q4_0', ne: [64, 64] },
        { type: 'f32', ne: [64, 512] },
      ],
    }
    const { moved } = await placed({ layers: [{ down: 'CPU' }, {}], define: (writer) => writer.refusal(down) })
    expect(moved[0]).toMatchObject({ reason: 'weights', refused: 'f32 64×512 of q4_0 64×64, f32 64×512' })
    expect(reasonText(moved[0]!)).toMatch(/^their weights are in the buffer CPU_Mapped: CUDA0 refused f32 64×512 of /)
    expect(reasonText({ ...moved[0]!, detail: MAPPED_FILE })).toMatch(/^their weights are in a mapped file: /)
  })
})

test('the graph of a call without operators, as of a device: its nodes in the order of splits, without times', async () => {
  const source = madeSplits({ layers: [{ attention: 'CPU' }, {}] })
  const { series } = await analyze({ name: 'made', source }, { series: ['graph'] })
  const { call, phase, nodes } = series!.graph!
  expect([call, phase]).toEqual([2, 'decode'])
  const name = (id: number) => nodes.find((node) => node.id === id)?.name
  const rest = (layer: number) => [`attn_out-${layer}`, `ffn_out-${layer}`, `l_out-${layer}`]
  const own = nodes.filter(({ kind }) => kind !== 'view')
  expect(own.map(({ split, backend, name }) => `${split} ${backend} ${name}`)).toEqual([
    '0 CPU embd',
    '1 CUDA0 Qcur-0',
    '2 CPU __fattn__-0',
    ...[...rest(0), 'Qcur-1', '__fattn__-1', ...rest(1), 'result_output'].map((name) => `3 CUDA0 ${name}`),
  ])
  expect(own.every(({ kind, wall_ns }) => kind === 'not recorded' && wall_ns === null)).toBe(true)
  const sources = own.map((node) => node.sources.flatMap((id) => name(id) ?? []))
  expect(sources.slice(0, 4)).toEqual([[], ['embd'], ['Qcur-0'], ['__fattn__-0']])
})

describe('findings', () => {
  const found = async (splits: MadeSplits) => {
    const input = { name: 'made', source: madeSplits(splits) }
    const analysis = await analyze(input)
    await expectChecks(analysis, input)
    return analysis.findings.filter(({ rule }) => /operators|layers|flash|divided/.test(rule))
  }
  const GPU = { 'device.CPU': 'CPU: x', 'device.CUDA0': 'GPU: y' }

  test('none of a model on one backend, of one on the CPU without a device, and of one layer after another on two', async () => {
    expect(await found({ layers: [{}, {}], facts: GPU })).toEqual([])
    expect(await found({ layers: [{ weights: 'CPU_Mapped' }], facts: { 'device.CPU': 'CPU: x' } })).toEqual([])
  })

  test('attention on the CPU, in one sentence', async () => {
    const [first, ...others] = await found({
      ...{ layers: [{ attention: 'CPU' }, { attention: 'CPU' }, {}], facts: GPU, decodes: 10 },
      define: (writer) => writer.refusal(attention('q5_1')),
    })
    expect(first!.sentence).toBe(
      'FLASH_ATTN_EXT of 2 layers runs on the CPU: 2 of 6 splits, up to 84.6 µs of 141 µs a decode call: CUDA0 refused it (supports_op): f32 64 of f32 64, q5_1 64',
    )
    expect(first).toMatchObject({ rule: 'moved-operators', confidence: 'high', evidence: { splits: 2, layers: '0–1' } })
    expect(others.map(({ rule, evidence }) => [rule, evidence['phase']])).toEqual([['moved-operators', 'prefill']])
  })

  test.each([
    ['ggml_backend_dev_supports_op', 'low'],
    ['llama_tokenize', 'high'],
  ])(
    'are less sure where the recorder does not see all questions to devices, not for other functions: %s',
    async (name, confidence) => {
      const facts = { ...GPU, 'program.copies': name }
      const [first] = await found({ layers: [{ attention: 'CPU' }, {}], facts, decodes: 10 })
      expect(first).toMatchObject({ rule: 'moved-operators', confidence })
    },
  )

  test('what decided, where the device was asked again; not of other types', async () => {
    const asked = (type: string) => ({
      ...GPU,
      'asked.CUDA0.FLASH_ATTN_EXT.1': `f32 8 of f32 8, ${type} 8: a KV cache of ${type} (it takes f16)`,
      'asked.CUDA0.FLASH_ATTN_EXT.2': 'f32 64 of f32 64, q5_1 64: unknown: it did not answer again',
    })
    const sentenceOf = async (facts: Readonly<Record<string, string>>) => {
      const define: MadeSplits['define'] = (writer) => writer.refusal(attention('q5_1'))
      const [first] = await found({ layers: [{ attention: 'CPU' }, {}], facts, decodes: 10, define })
      return first!.sentence
    }
    expect(await sentenceOf(asked('q5_1'))).toMatch(
      /: CUDA0 has no kernel for a KV cache of q5_1 \(it takes f16\): f32 64 of f32 64, q5_1 64$/,
    )
    expect(await sentenceOf(asked('f16'))).toMatch(/: CUDA0 refused it \(supports_op\): f32 64 of f32 64, q5_1 64$/)
  })

  test('layers on the CPU beside a device, and all of them', async () => {
    const cpu = { weights: 'CPU_Mapped' } as const
    const some = await found({ layers: [cpu, cpu, {}], facts: GPU })
    expect(some[0]!.sentence).toMatch(/^2 layers of 3 \(0–1\) are on the CPU although CUDA0 was there: 40 µs of /)
    const all = await found({ layers: [cpu, cpu], facts: GPU })
    expect(all[0]!.sentence).toMatch(/^the model is wholly on the CPU although CUDA0 was there: 40 µs of /)
    expect(new Set([...some, ...all].map(({ rule }) => rule))).toEqual(new Set(['layers-on-cpu']))
  })

  test('fewer layers than the program asked for, or as many', async () => {
    const cpu = { weights: 'CPU_Mapped' } as const
    const sentenceWith = async (options: string) => {
      const facts = { ...GPU, command: `./llama-cli -m tiny.gguf ${options} -p Hi` }
      return (await found({ layers: [cpu, cpu, {}], facts }))[0]!.sentence
    }
    expect(await sentenceWith('-ngl 2')).toMatch(
      /although CUDA0 was there \(the program asked for 2 of 4 with the output on a device\): /,
    )
    expect(await sentenceWith('--n-gpu-layers=99 --cpu-moe')).toMatch(
      /\(the program asked for all 4 with the output on a device\): /,
    )
    expect(await sentenceWith('')).toMatch(/although CUDA0 was there: /)
    const [all] = await found({ layers: [cpu], facts: { 'device.CPU': 'CPU: x', command: './llama-cli -ngl 99' } })
    expect(all!.sentence).toMatch(
      /^the model is wholly on the CPU as no device was found \(the program asked for all 2 with the output on a device\): /,
    )
    for (const option of ['-ngl 0', '--device none', '-ngl 99 -dev none'])
      expect(await found({ layers: [cpu], facts: { ...GPU, command: `./llama-cli ${option}` } })).toEqual([])
    const facts = { command: './llama-cli -ngl 3 -ot exps=CPU --cpu-moe -nkvo -m x.gguf -sm row -fa' }
    const { options } = await placed({ layers: [{}], facts })
    expect(options).toEqual(['-ngl 3', '-ot exps=CPU', '--cpu-moe', '-nkvo', '-sm row', '-fa'])
  })

  test('flash attention that was switched off', async () => {
    const refusal = { ...attention('q5_1'), op: 'FLASH_ATTN_EXT' }
    const define: MadeSplits['define'] = (writer) => writer.refusal(refusal)
    const off = await found({ layers: [{}, {}], facts: GPU, define, hasFlash: false })
    expect(off.map(({ rule, sentence }) => [rule, sentence])).toEqual([
      [
        'flash-attention-off',
        'flash attention was switched off: CUDA0 refused FLASH_ATTN_EXT (supports_op) for f32 64 of f32 64, q5_1 64',
      ],
    ])
    expect(await found({ layers: [{}, {}], facts: GPU, define })).toEqual([])
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
      /^ {2}decode +7 +CPU 4 with 9 nodes \(4 ops\), 160 µs; CUDA0 3 with 8 nodes \(MUL_MAT ADD\), 15 µs +6 KiB +6 µs +15 µs$/m,
    )
    expect(text).toMatch(/^ {2}FLASH_ATTN_EXT +decode +CPU +CUDA0 +0–1 +2 +80 µs +8\.5 KiB +reason unknown$/m)
    expect(stats({ layers })).toMatch(
      /^ {2}placement +layers 0–1 CUDA0, 2 CPU; FLASH_ATTN_EXT of 2 on CPU; 7 splits a/m,
    )
  })

  test('nothing of it where only the CPU computes', () => {
    expect(stats({ layers: [{ weights: 'CPU_Mapped' }] }, '--full')).not.toContain('placement')
  })
})
