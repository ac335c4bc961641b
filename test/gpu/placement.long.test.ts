import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { placementSection } from '../../bin/stats/placement.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { askDevices } from '../../lib/node/record/ask.ts'
import { inputOf } from '../../lib/node.ts'
import { IN_ROOT, inRoot, placeBlas, ROOT, whyNoBlas } from '../llama/debian.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import {
  cudaEnvironment,
  ensureLlama,
  hasLlama,
  LIB,
  model,
  plantedProgram,
  run,
  vulkanEnvironment,
} from '../llama/testbed.ts'
import { NANO, NANO_MOE, newLog, RECORDER, useRecorder } from '../native/recording.ts'
import { BED, buildBed } from './recording.ts'

/**
 * Operators and layers that llama.cpp leaves on the CPU for planted reasons, on its real CUDA backend (README.md) and on Vulkan by lavapipe:
 * what the Analysis names, the property that decided as the device answers again, and the findings. Runs without a plant have none.
 */

const ARGS = ['--threads', '1', '--prompt', '8', '--decode', '6']
const DECODES = 6
const BASE: ModelSpec = {
  ...{ layers: 4, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 },
}
/** No kernel of CUDA has heads of 48, none of Vulkan such that 8 does not divide. */
const HEADS_48: ModelSpec = { ...BASE, width: 192 }
const HEADS_20: ModelSpec = { ...BASE, width: 160, heads: 8, kvHeads: 4 }
const MOE: ModelSpec = { ...BASE, experts: 4, expertsUsed: 2 }
const OURS = /^(moved-operators|layers-on-cpu|flash-attention-off)$/

type Where = 'CUDA0' | 'Vulkan0' | 'CPU'
type Environment = Readonly<Record<string, string>>

function environmentOf(where: Where): Environment {
  if (where === 'CPU') return {}
  return where === 'CUDA0' ? cudaEnvironment(BED) : (vulkanEnvironment as Environment)
}

/** Records it, with the same result as without the recorder. */
async function recorded(
  spec: ModelSpec,
  where: Where,
  args: readonly string[],
  more: Environment = {},
): Promise<Analysis> {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const { path } = await model(spec)
  const env = { ...environmentOf(where), ...more }
  const plain = await run(path, [...ARGS, ...args], { env })
  const traced = await run(path, [...ARGS, ...args], { preload: RECORDER, env: { ...env, GGML2PERFETTO_OUT: log } })
  expect([traced.code, traced.stderr, traced.result?.hash]).toEqual([0, plain.stderr, plain.result?.hash])
  await askDevices(log, RECORDER, { ...process.env, ...env })
  return analyze(inputOf(log))
}

const foundIn = ({ findings }: Analysis) => findings.filter(({ rule }) => OURS.test(rule))

const linux = hasLlama() ? describe : describe.skip

linux('operators and layers on the CPU (needs linux-x64, cc, c++ and make)', () => {
  useRecorder()
  beforeAll(async () => {
    await ensureLlama({ cuda: true, vulkan: true })
    buildBed()
  })

  const onVulkan = vulkanEnvironment
    ? ([['Vulkan0', HEADS_20, [], /f16 20×/, 'heads of 20 (it takes 24)']] as const)
    : []
  test.each<readonly [Where, ModelSpec, readonly string[], RegExp, string]>([
    ['CUDA0', HEADS_48, [], /f16 48×/, 'heads of 48 (it takes 64)'],
    [
      ...(['CUDA0', BASE, ['--type-k', 'iq4_nl', '--type-v', 'iq4_nl'], /iq4_nl 64×/] as const),
      'a KV cache of iq4_nl (it takes f16)',
    ],
    ...onVulkan,
  ])('flash attention that %s refuses (%#)', async (where, spec, args, refused, decided) => {
    const analysis = await recorded(spec, where, ['--gpu-layers', '99', '--flash-attention', '1', ...args])
    const { moved, phases } = analysis.placement!
    const decode = moved.filter(({ phase }) => phase === 'decode')
    expect(decode).toEqual([
      expect.objectContaining({
        ...{ ops: ['FLASH_ATTN_EXT'], backend: 'CPU', layer_backend: where, layers: [0, 1, 2, 3], reason: 'refused' },
        ...{ nodes: 4 * DECODES, splits: 4 * DECODES, refused: expect.stringMatching(refused), decided },
      }),
    ])
    expect(phases.find(({ phase }) => phase === 'decode')!.splits).toBe(10 * DECODES)
    for (const { rule, sentence } of foundIn(analysis)) {
      expect([rule, sentence]).toEqual([
        'moved-operators',
        expect.stringMatching(/^FLASH_ATTN_EXT of 4 layers runs on/),
      ])
      expect(sentence).toMatch(refused)
    }
  })

  const mixed = ['--flash-attention', '1', '--type-k', 'bf16', '--type-v', 'f16']
  const mixedOnVulkan = vulkanEnvironment ? ([['Vulkan0', BASE, mixed, /bf16 64×.*, f16 64×/]] as const) : []
  test.each<readonly [Where, ModelSpec, readonly string[], RegExp]>(mixedOnVulkan)(
    'a KV cache of two types that %s refuses',
    async (where, spec, args, refused) => {
      const { placement } = await recorded(spec, where, ['--gpu-layers', '99', ...args])
      for (const row of placement!.moved)
        expect(row).toMatchObject({
          ops: ['FLASH_ATTN_EXT'],
          reason: 'refused',
          refused: expect.stringMatching(refused),
          decided: 'keys of bf16 (it takes f16)',
        })
      expect(placement!.moved.length).toBe(2)
    },
  )

  test('weights of a type that the device refuses when llama.cpp places them', async () => {
    const analysis = await recorded({ ...BASE, types: { ffn_down: 'TQ2_0' } }, 'CUDA0', ['--gpu-layers', '99'])
    const { layers, moved } = analysis.placement!
    expect(layers.map(({ backend, weights }) => [backend, weights.length])).toEqual([['CUDA0', 2]])
    expect(layers[0]!.weights[1]).toMatchObject({ tensors: 4, roles: ['ffn_down.weight'] })
    for (const row of moved)
      expect(row).toMatchObject({
        ...{ ops: ['MUL_MAT'], layers: [0, 1, 2, 3], backend: 'CPU', layer_backend: 'CUDA0', reason: 'weights' },
        refused: expect.stringMatching(/ of tq2_0 256×256, /),
        decided: 'weights of tq2_0 (it takes f16)',
      })
    expect(moved.length).toBe(2)
    for (const { rule, sentence } of foundIn(analysis))
      expect([rule, sentence]).toEqual([
        'moved-operators',
        expect.stringMatching(
          / in (a mapped file|the buffer CPU\w*): CUDA0 has no kernel for weights of tq2_0 .* of tq2_0 /,
        ),
      ])
  })

  const planted = vulkanEnvironment ? test : test.skip
  planted.each<readonly [string, string | null, string, string]>([
    [
      ...(['layout', 'ARGSORT', 'i32 16×16 of f32 16×16'] as const),
      'source 1 with its distances in memory (it takes a contiguous one)',
    ],
    [
      'sinks',
      'FLASH_ATTN_EXT',
      'f32 20×2×16 of f32 20×16×2, f16 20×16×2, f16 20×16×2, f32 2',
      'heads of 20 (it takes 24)',
    ],
    ['solve', 'SOLVE_TRI', 'f32 2048×16 of f32 16×16, f32 2048×16', 'rows of 2048 (it takes 1024)'],
    ['none', null, '', ''],
  ])('an operator of a program of its own, which the device refuses: %s', async (plant, op, refused, decided) => {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { ...process.env, ...vulkanEnvironment }
    const preload = { LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log }
    execFileSync(await plantedProgram(), [LIB, plant, '2'], { env: { ...env, ...preload }, stdio: 'ignore' })
    await askDevices(log, RECORDER, env)
    const analysis = await analyze(inputOf(log))
    const { layers, moved, phases, refusals } = analysis.placement!
    expect(layers.map(({ first_layer, last_layer, backend }) => [first_layer, last_layer, backend])).toEqual([
      [0, 1, 'Vulkan0'],
    ])
    expect(phases.map(({ calls, splits }) => [calls, splits])).toEqual([[2, op ? 2 * 5 : 2]])
    if (!op) return expect([moved, refusals, foundIn(analysis)]).toEqual([[], [], []])
    expect(moved).toEqual([
      expect.objectContaining({
        ...{
          ops: [op],
          backend: 'CPU',
          layer_backend: 'Vulkan0',
          layers: [0, 1],
          reason: 'refused',
          refused,
          decided,
        },
        ...{ calls: 2, nodes: 2 * 2, splits: 2 * 2 },
      }),
    ])
    for (const { rule, sentence } of foundIn(analysis))
      expect([rule, sentence.endsWith(`: Vulkan0 has no kernel for ${decided}: ${refused}`)]).toEqual([
        'moved-operators',
        true,
      ])
  })

  const expertsOnCpu = ['ffn_.*_exps', /_exps\.weight$/, 'MUL_MAT_ID'] as const
  test.each<readonly [ModelSpec, Where, string, RegExp, string, readonly number[]]>([
    [BASE, 'CUDA0', 'blk\\.[01]\\.ffn_down', /^ffn_down/, 'MUL_MAT', [0, 1]],
    [MOE, 'CUDA0', ...expertsOnCpu, [0, 1, 2, 3]],
    ...(vulkanEnvironment ? [[NANO_MOE, 'Vulkan0', ...expertsOnCpu, [0, 1]] as const] : []),
  ])(
    'single weights that remain on the CPU, as --override-tensor places them (%#)',
    async (spec, where, regex, role, op, ofLayers) => {
      const { placement } = await recorded(spec, where, ['--gpu-layers', '99', '--on-cpu', regex])
      const { layers, moved } = placement!
      expect(layers.every(({ backend }) => backend === where)).toBe(true)
      for (const weights of layers.flatMap((row) => row.weights))
        if (weights.buffer !== where) for (const name of weights.roles) expect(name).toMatch(role)
      for (const row of moved) {
        expect(row).toMatchObject({
          backend: 'CPU',
          layer_backend: where,
          layers: ofLayers,
          reason: 'weights',
          refused: null,
        })
        expect(row.ops).toEqual([op])
      }
      expect(moved.length).toBe(2)
    },
  )

  test('flash attention that llama.cpp switches off by itself', async () => {
    const analysis = await recorded(HEADS_48, 'CUDA0', ['--gpu-layers', '99'])
    expect(analysis.placement!.moved).toEqual([])
    expect(foundIn(analysis).map(({ rule, sentence }) => [rule, sentence])).toEqual([
      [
        'flash-attention-off',
        expect.stringMatching(/^flash attention was switched off: CUDA0 has no kernel for heads of 48 .* f16 48×/),
      ],
    ])
  })

  test('layers that remain on the CPU, and a model that does', async () => {
    const some = await recorded(BASE, 'CUDA0', ['--gpu-layers', '3'])
    expect(
      some.placement!.layers.map(({ first_layer, last_layer, backend }) => [first_layer, last_layer, backend]),
    ).toEqual([
      [0, 1, 'CPU'],
      [2, 3, 'CUDA0'],
    ])
    const all = await recorded(BASE, 'CUDA0', [])
    expect(all.placement!.devices!.map(({ name }) => name)).toEqual(['CPU', 'CUDA0'])
    for (const [analysis, expected] of [
      [
        some,
        /^2 layers of 4 \(0–1\) are on the CPU although CUDA0 was there.*, with [\d.]+ GiB of CUDA0 left free for their [\d.]+ [KM]iB of weights: /,
      ],
      [all, /^the model is wholly on the CPU although CUDA0 was there/],
    ] as const) {
      const found = foundIn(analysis)
      expect(found.length).toBeGreaterThan(0)
      for (const { rule, sentence } of found)
        expect([rule, sentence]).toEqual(['layers-on-cpu', expect.stringMatching(expected)])
    }
    const prefill = foundIn(all).find(({ evidence }) => evidence['phase'] === 'prefill')
    if (prefill) expect(prefill.sentence).toMatch(/CUDA0 did not take products of \d+ tokens .*\(offload_op\)$/)
  })

  test.each<readonly [string, ModelSpec, Where, readonly string[], Environment]>([
    ['on the CPU', BASE, 'CPU', [], {}],
    ['on a device', BASE, 'CUDA0', ['--gpu-layers', '99'], {}],
    [
      'with a KV cache of another type',
      BASE,
      'CUDA0',
      ['--gpu-layers', '99', '--flash-attention', '1', '--type-k', 'q5_1', '--type-v', 'q5_1'],
      {},
    ],
    ['of experts', MOE, 'CUDA0', ['--gpu-layers', '99'], {}],
    ['on two devices', BASE, 'CUDA0', ['--gpu-layers', '99'], { BED_DEVICES: '2' }],
    ['without a device', BASE, 'CUDA0', [], { BED_FAULT: 'no-device' }],
    ['on the CPU, as asked for', BASE, 'CUDA0', ['--gpu-layers', '0'], {}],
    ...(vulkanEnvironment ? ([['on Vulkan', BASE, 'Vulkan0', ['--gpu-layers', '99'], {}]] as const) : []),
  ])('nothing is found in a run %s', async (_, spec, where, args, env) => {
    const analysis = await recorded(spec, where, args, env)
    expect([foundIn(analysis), analysis.placement!.moved]).toEqual([[], []])
  })
})

const noBlas = hasLlama() ? whyNoBlas() : 'needs linux-x64, cc, c++ and make'
const blas = noBlas === undefined ? describe : describe.skip

blas(`products of BLAS, in llama.cpp of Debian sid (${noBlas ?? 'as root'})`, () => {
  useRecorder()

  /** The layers of a model, of which the last computes the end of its attention and what follows for one token only. */
  const LAYERS = 2
  const DENSE: ModelSpec = { ...NANO, layers: LAYERS }

  test('are those of a prompt only; no operator counts as moved', async () => {
    const folder = mkdtempSync(join(ROOT, 'tmp/blas-'))
    try {
      copyFileSync(RECORDER, join(folder, 'recorder.so'))
      copyFileSync((await model(DENSE)).path, join(folder, 'model.gguf'))
      const inside = (name: string) => join(inRoot(folder), name)
      const options = ['-n', '4', '-no-cnv', '-t', '1', '--temp', '0', '--no-repack', '--no-warmup']
      const program = ['llama-completion', '-m', inside('model.gguf'), '-p', 'abcdefgh'.repeat(8), ...options]
      const run = (env: Environment) => {
        const set = Object.entries({ ...placeBlas(folder), ...env }).map(([key, value]) => `${key}=${value}`)
        const [first, ...rest] = [...IN_ROOT, 'env', ...set, ...program]
        const { status, stdout } = spawnSync(first!, rest, { encoding: 'utf8', timeout: 240_000 })
        return { status, stdout }
      }
      const plain = run({})
      const traced = run({ LD_PRELOAD: inside('recorder.so'), GGML2PERFETTO_OUT: inside('run.ggtrace') })
      expect(traced).toEqual({ ...plain, status: 0 })
      expectBlas(await analyze(inputOf(join(folder, 'run.ggtrace'))))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  function expectBlas(analysis: Analysis): void {
    const { backends, devices, layers, moved, phases, refusals } = analysis.placement!
    expect(backends).toEqual(['CPU', 'BLAS'])
    expect(devices!.find(({ name }) => name === 'BLAS')!.description).toMatch(/^accelerator: /)
    expect(layers).toMatchObject([{ first_layer: 0, last_layer: LAYERS - 1, backend: 'CPU' }])
    const [cpu, own] = phases.find(({ phase }) => phase === 'prefill')!.by_backend
    // Q, K, V and output of attention, gate, up, down; of the last layer, the three have one column.
    expect(own).toMatchObject({ backend: 'BLAS', ops: ['MUL_MAT'], nodes: 7 * LAYERS - 3, splits: cpu!.splits - 1 })
    expect(own!.time_ns).toBeGreaterThan(0)
    const decode = phases.find(({ phase }) => phase === 'decode')!
    expect(decode.by_backend).toMatchObject([{ backend: 'CPU', splits: decode.calls }])
    expect([moved, refusals, foundIn(analysis)]).toEqual([[], [], []])
    const section = JSON.stringify(placementSection(analysis))
    expect(section).toContain(`BLAS ${own!.splits} with ${own!.nodes} nodes (MUL_MAT), `)
  }
})
