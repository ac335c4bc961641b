import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { placementSection } from '../../bin/stats/placement.ts'
import type { OperatorRow } from '../../lib/analyze/operators/figures.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { IN_ROOT, inRoot, placeBlas, ROOT, whyNoBlas } from '../llama/debian.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import { bundledServer, PREPARE_MS, startServer } from '../llama/server.ts'
import { ensureLlama, hasLlama, model, vulkanEnvironment } from '../llama/testbed.ts'
import { NANO, NANO_MOE, RECORDER, useRecorder } from '../native/recording.ts'
import {
  expectAsPrinted,
  expectBytes,
  expectNothing,
  type Ran,
  recorded,
  recordedPlant,
  said,
  sum,
  type Where,
} from './placement-runs.ts'
import { buildBed, type Environment } from './recording.ts'
import { backendsOfLayers, computedGraphs, onCpu, type PrintedGraph, printedGraphs } from './scheduler-debug.ts'

/**
 * Operators and layers that llama.cpp leaves on the CPU for planted reasons, on its real CUDA backend (README.md), on Vulkan by lavapipe, and with
 * BLAS: what the Analysis contains against what ggml's scheduler prints of the same run, and the reason against a second run in which only the
 * property differs that decided. Then runs without a plant, of which no finding says anything. docs/reference/statistics.md lists the plants.
 */

const ALL = ['--gpu-layers', '99']
const FLASH = [...ALL, '--flash-attention', '1']
const BASE: ModelSpec = {
  ...{ layers: 4, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 },
}
/** No kernel of CUDA has heads of 48, none of Vulkan such that 8 does not divide. */
const HEADS_48: ModelSpec = { ...BASE, width: 192 }
const HEADS_20: ModelSpec = { ...BASE, width: 160, heads: 8, kvHeads: 4 }
const HEADS_24: ModelSpec = { ...HEADS_20, width: 192 }
const MOE: ModelSpec = { ...BASE, experts: 4, expertsUsed: 2 }
const EVERY_LAYER = [0, 1, 2, 3]

interface Plant {
  readonly where: Where
  readonly op: string
  readonly layers: readonly number[]
  readonly reason: 'refused' | 'weights'
  /** In what the device refused. */
  readonly refused: RegExp | null
  readonly decided: string | null
  readonly ran: () => Promise<Ran>
  /** The same run with another value of the property that decided. */
  readonly cured: () => Promise<Ran>
}

/** Op, layers, splits, cost and reason of a plant. */
function expectMoved({ where, op, layers, reason, refused, decided }: Plant, { analysis, computed, decodeNs }: Ran) {
  const { moved, phases } = analysis.placement!
  expect(moved.length).toBe(phases.length)
  for (const row of moved) {
    const { phase, calls } = row
    const graph = phase === 'prefill' ? computed[0]! : computed.at(-1)!
    const splits = onCpu(graph, op)
    const nodes = splits.flatMap((split) => split.nodes)
    expect([...new Set(nodes.map(({ layer }) => layer))].sort()).toEqual(layers)
    expect(row).toMatchObject({
      ...{ ops: [op], backend: 'CPU', layer_backend: where, layers, reason, decided },
      ...{ nodes: calls * nodes.length, splits: calls * splits.length },
      refused: refused && expect.stringMatching(refused),
    })
    expectBytes(row.input_bytes / calls, splits)
    // Each split takes the time of its operators at least; all of them, less than the calls.
    const isOwn = (own: OperatorRow) => own.op === op && own.phase === phase && own.backend === 'CPU'
    const operators = analysis.operators.rows.filter(isOwn)
    expect(row.time_ns).toBeGreaterThanOrEqual(sum(operators.map(({ wall_ns }) => wall_ns)))
    if (phase === 'decode') expect(row.time_ns).toBeLessThan(decodeNs)
    const cost = `${splits.length} of ${graph.length} splits, `
    const sentence = `${op} of ${layers.length} layers runs on the CPU: ${cost}`
    expect(said(analysis).filter(([, text]) => text.includes(` a ${phase} call`))).toEqual([
      ['moved-operators', expect.stringContaining(sentence)],
    ])
  }
  for (const [, sentence] of said(analysis))
    expect(sentence).toMatch(decided === null ? /: their weights are in / : new RegExp(`: ${where} has no kernel for `))
  if (decided !== null) for (const [, sentence] of said(analysis)) expect(sentence).toContain(` ${decided}: `)
}

const linux = hasLlama() ? describe : describe.skip
const onVulkan = <T>(...rows: readonly T[]): readonly T[] => (vulkanEnvironment ? rows : [])
const llama = (spec: ModelSpec, where: Where, ...args: readonly string[]) => recorded(spec, where, args)
const keys = (k: string, v: string) => [...FLASH, '--type-k', k, '--type-v', v]

const CUDA = { where: 'CUDA0', layers: EVERY_LAYER } as const
const VULKAN = { where: 'Vulkan0', layers: EVERY_LAYER } as const
const ATTENTION = { op: 'FLASH_ATTN_EXT', reason: 'refused' } as const
const PROGRAM = { where: 'Vulkan0', layers: [0, 1], reason: 'refused' } as const
const EXPERTS = { op: 'MUL_MAT_ID', reason: 'weights', refused: null, decided: null } as const

const PLANTS: readonly (readonly [string, Plant])[] = [
  [
    'heads of 48, CUDA',
    {
      ...{ ...CUDA, ...ATTENTION, refused: /f16 48×/, decided: 'heads of 48 (it takes 64)' },
      ran: () => llama(HEADS_48, 'CUDA0', ...FLASH),
      cured: () => llama(BASE, 'CUDA0', ...FLASH),
    },
  ],
  [
    'a KV cache of iq4_nl, CUDA',
    {
      ...{ ...CUDA, ...ATTENTION, refused: /iq4_nl 64×/, decided: 'a KV cache of iq4_nl (it takes f16)' },
      ran: () => llama(BASE, 'CUDA0', ...keys('iq4_nl', 'iq4_nl')),
      cured: () => llama(BASE, 'CUDA0', ...keys('q5_1', 'q5_1')),
    },
  ],
  [
    'weights of TQ2_0, CUDA',
    {
      ...{ ...CUDA, op: 'MUL_MAT', reason: 'weights', refused: / of tq2_0 256×256, / },
      decided: 'weights of tq2_0 (it takes f16)',
      ran: () => llama({ ...BASE, types: { ffn_down: 'TQ2_0' } }, 'CUDA0', ...ALL),
      cured: () => llama({ ...BASE, types: { ffn_down: 'Q8_0' } }, 'CUDA0', ...ALL),
    },
  ],
  [
    'experts on the CPU, CUDA',
    {
      ...{ ...CUDA, ...EXPERTS },
      ran: () => llama(MOE, 'CUDA0', ...ALL, '--on-cpu', 'ffn_.*_exps'),
      cured: () => llama(MOE, 'CUDA0', ...ALL),
    },
  ],
  [
    'weights of two layers on the CPU, CUDA',
    {
      ...{ ...CUDA, ...EXPERTS, op: 'MUL_MAT', layers: [0, 1] },
      ran: () => llama(BASE, 'CUDA0', ...ALL, '--on-cpu', 'blk\\.[01]\\.ffn_down'),
      cured: () => llama({ ...BASE, seed: 2 }, 'CUDA0', ...ALL),
    },
  ],
  ...onVulkan<readonly [string, Plant]>(
    [
      'heads of 20, Vulkan',
      {
        ...{ ...VULKAN, ...ATTENTION, refused: /f16 20×/, decided: 'heads of 20 (it takes 24)' },
        ran: () => llama(HEADS_20, 'Vulkan0', ...FLASH),
        cured: () => llama(HEADS_24, 'Vulkan0', ...FLASH),
      },
    ],
    [
      'keys of bf16 and values of f16, Vulkan',
      {
        ...{ ...VULKAN, ...ATTENTION, refused: /bf16 64×.*, f16 64×/, decided: 'keys of bf16 (it takes f16)' },
        ran: () => llama(BASE, 'Vulkan0', ...keys('bf16', 'f16')),
        cured: () => llama(BASE, 'Vulkan0', ...keys('f16', 'f16')),
      },
    ],
    [
      'experts on the CPU, Vulkan',
      {
        ...{ ...VULKAN, ...EXPERTS, layers: [0, 1] },
        ran: () => llama(NANO_MOE, 'Vulkan0', ...ALL, '--on-cpu', 'ffn_.*_exps'),
        cured: () => llama(NANO_MOE, 'Vulkan0', ...ALL),
      },
    ],
    [
      'ARGSORT of a part of each row, Vulkan',
      {
        ...{ ...PROGRAM, op: 'ARGSORT', refused: /^i32 16×16 of f32 16×16$/ },
        decided: 'source 1 with its distances in memory (it takes a contiguous one)',
        ran: () => recordedPlant('layout'),
        cured: () => recordedPlant('argsort'),
      },
    ],
    [
      'SOLVE_TRI with rows of 2048, Vulkan',
      {
        ...{ ...PROGRAM, op: 'SOLVE_TRI', refused: /^f32 2048×16 of f32 16×16, f32 2048×16$/ },
        decided: 'rows of 2048 (it takes 1024)',
        ran: () => recordedPlant('solve'),
        cured: () => recordedPlant('narrow'),
      },
    ],
    [
      'attention without a mask, with sinks and heads of 20, Vulkan',
      {
        ...{ ...PROGRAM, ...ATTENTION, refused: /^f32 20×2×16 of f32 20×16×2, f16 20×16×2, f16 20×16×2, f32 2$/ },
        decided: 'heads of 20 (it takes 24)',
        ran: () => recordedPlant('sinks'),
        cured: () => recordedPlant('sinks-24'),
      },
    ],
  ),
]

linux('operators and layers on the CPU (needs linux-x64, cc, c++ and make)', () => {
  useRecorder()
  beforeAll(async () => {
    await ensureLlama({ cuda: true, vulkan: true })
    buildBed()
  })

  test.each(PLANTS)('%s', async (_, plant) => {
    const ran = await plant.ran()
    expectAsPrinted(ran)
    expectMoved(plant, ran)
    const cured = await plant.cured()
    expect(onCpu(cured.computed.at(-1)!, plant.op).flatMap(({ nodes }) => nodes)).toEqual([])
    expectNothing(cured)
  })

  test('flash attention that llama.cpp switches off by itself', async () => {
    const ran = await llama(HEADS_48, 'CUDA0', ...ALL)
    const has = (graphs: readonly PrintedGraph[]) => graphs.filter((graph) => onCpu(graph, 'FLASH_ATTN_EXT').length > 0)
    expect([has(ran.printed).length > 0, has(ran.computed)]).toEqual([true, []])
    expectAsPrinted(ran)
    expect(ran.analysis.placement!.moved).toEqual([])
    expect(said(ran.analysis)).toEqual([
      [
        'flash-attention-off',
        expect.stringMatching(
          /^flash attention was switched off: CUDA0 has no kernel for heads of 48 \(it takes 64\): .* f16 48×/,
        ),
      ],
    ])
  })

  /** Layers of the same backend, as the Analysis has them, and as the scheduler printed the nodes that read their weights. */
  function expectLayers({ analysis, computed }: Ran, expected: readonly string[]): void {
    const { layers } = analysis.placement!
    const rows = layers.flatMap(({ first_layer: first, last_layer: last, backend }) =>
      Array.from({ length: last - first + 1 }, () => backend),
    )
    const printed = [...backendsOfLayers(computed.at(-1)!)].sort(([a], [b]) => a - b).map(([, backend]) => backend)
    expect([rows, printed]).toEqual([expected, expected])
  }

  test.each<readonly [string, readonly string[], Environment, readonly string[], RegExp]>([
    [
      'two layers',
      ['--gpu-layers', '3'],
      {},
      ['CPU', 'CPU', 'CUDA0', 'CUDA0'],
      /^2 layers of 4 \(0–1\) are on the CPU although CUDA0 was there \(the program asked for 3 of 5 with the output on a device\), though CUDA0 has [\d.]+ GiB free, and their weights take [\d.]+ [KM]iB: /,
    ],
    ['all layers', [], {}, ['CPU', 'CPU', 'CPU', 'CPU'], /^the model is wholly on the CPU although CUDA0 was there, /],
    [
      'all layers, as there is no device',
      ALL,
      { BED_FAULT: 'no-device' },
      ['CPU', 'CPU', 'CPU', 'CPU'],
      /^the model is wholly on the CPU as no device was found \(the program asked for all 5 with the output on a device\): /,
    ],
  ])('%s that remain on the CPU', async (_, args, env, layers, sentence) => {
    const ran = await recorded(BASE, 'CUDA0', args, env)
    expectAsPrinted(ran)
    expectLayers(ran, layers)
    expect(said(ran.analysis)).toEqual([1, 2].map(() => ['layers-on-cpu', expect.stringMatching(sentence)]))
    expect(ran.analysis.placement!.moved).toEqual([])
    const prefill = said(ran.analysis).find(([, text]) => text.includes('a prefill call'))![1]
    if (args.length === 0) expect(prefill).toMatch(/CUDA0 did not take products of \d+ tokens .*\(offload_op\)$/)
  })

  const ONE = { ...BASE, layers: 1 }
  test.each<readonly [string, ModelSpec, Where, readonly string[], Environment?]>([
    ['on the CPU', BASE, 'CPU', []],
    ['of experts on the CPU, read into memory', MOE, 'CPU', ['--no-mmap']],
    ['of one layer on the CPU, with weights as they are in the file', NANO, 'CPU', ['--no-repack', '--warmup']],
    ['on the CPU, as asked for', BASE, 'CUDA0', ['--gpu-layers', '0']],
    [
      'on the CPU, as asked for, of which the device computes the prompt',
      ONE,
      'CUDA0',
      ['--gpu-layers', '0', '--prompt', '64'],
    ],
    ['without a device', BASE, 'CUDA0', [], { BED_FAULT: 'no-device' }],
    ['of one layer', ONE, 'CUDA0', ALL],
    ['without flash attention', BASE, 'CUDA0', [...ALL, '--flash-attention', '0']],
    ['on two devices', BASE, 'CUDA0', ALL, { BED_DEVICES: '2' }],
    ['of four sequences', BASE, 'CUDA0', [...ALL, '--parallel', '4', '--warmup']],
    ['in graphs of a few tokens', BASE, 'CUDA0', [...ALL, '--prompt', '40', '--ubatch', '16']],
    ['without CUDA graphs', ONE, 'CUDA0', ALL, { GGML_CUDA_DISABLE_GRAPHS: '1' }],
  ])('nothing is found in a run %s', async (_, spec, where, args, env = {}) => {
    const { analysis } = await recorded(spec, where, args, env)
    expect(said(analysis)).toEqual([])
    // Of layers on the CPU, a device computes products of long prompts.
    for (const { backend } of analysis.placement!.moved)
      expect([backend, args]).toEqual(['CUDA0', expect.arrayContaining(['64'])])
  })
})

const server = bundledServer.problem === undefined ? describe : describe.skip

server(`a ${bundledServer.name} (${bundledServer.problem ?? 'real'})`, () => {
  beforeAll(bundledServer.prepare, PREPARE_MS)

  test('nothing is found', async () => {
    const started = await startServer(bundledServer, {
      model: 'tinyMoe',
      args: ['-c', 512, '-t', 1],
      recorder: RECORDER,
    })
    try {
      const body = { prompt: 'w1 w2 w3', n_predict: 4, temperature: 0 }
      await started.ask({ path: '/completion', body })
      expect(await started.stop()).toBe(0)
      const analysis = await analyze(inputOf(started.log))
      expect([said(analysis), analysis.placement!.moved]).toEqual([[], []])
    } finally {
      await started.remove()
    }
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
      const start = (env: Environment, ...more: readonly string[]) => {
        const set = Object.entries({ ...placeBlas(folder), ...env }).map(([key, value]) => `${key}=${value}`)
        const [first, ...rest] = [...IN_ROOT, 'env', ...set, ...program, ...more]
        return spawnSync(first!, rest, { encoding: 'latin1', timeout: 240_000 })
      }
      // The program ends while its log's thread still writes: also without the recorder, the last bytes may be missing, on a busy machine most.
      const isWritten = ({ stdout }: { stdout: string }) => stdout.includes('abcdefgh')
      let plain = start({})
      for (let left = 9; left > 0 && !isWritten(plain); left--) plain = start({})
      const traced = start({ LD_PRELOAD: inside('recorder.so'), GGML2PERFETTO_OUT: inside('run.ggtrace') })
      const [short, long] = [plain.stdout, traced.stdout].sort((a, b) => a.length - b.length)
      expect([traced.status, long!.slice(0, short!.length), isWritten(plain)]).toEqual([0, short, true])
      const analysis = await analyze(inputOf(join(folder, 'run.ggtrace')))
      // Here, too, the end may be missing: what it writes of its context is last.
      const graphs = () => start({ GGML_SCHED_DEBUG: '2' }, '-v').stderr
      let stderr = graphs()
      for (let left = 9; left > 0 && !stderr.includes('~llama_context: '); left--) stderr = graphs()
      const [printed, computed] = [printedGraphs(stderr), computedGraphs(stderr)]
      expect(computed).toHaveLength(2) // of the prompt, and of the tokens, which use one
      expectNothing({ analysis, printed, computed, decodeNs: Infinity })
      expectBlas(analysis)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  function expectBlas(analysis: Analysis): void {
    const { backends, devices, layers, phases, refusals } = analysis.placement!
    expect(backends).toEqual(['CPU', 'BLAS'])
    expect(devices!.find(({ name }) => name === 'BLAS')!.description).toMatch(/^accelerator: /)
    expect(layers).toMatchObject([{ first_layer: 0, last_layer: LAYERS - 1, backend: 'CPU' }])
    const [cpu, own] = phases.find(({ phase }) => phase === 'prefill')!.by_backend
    // Q, K, V and output of attention, gate, up, down; of the last layer, the three have one column.
    expect(own).toMatchObject({ backend: 'BLAS', ops: ['MUL_MAT'], nodes: 7 * LAYERS - 3, splits: cpu!.splits - 1 })
    expect(own!.time_ns).toBeGreaterThan(0)
    const decode = phases.find(({ phase }) => phase === 'decode')!
    expect(decode.by_backend).toMatchObject([{ backend: 'CPU', splits: decode.calls }])
    expect(refusals).toEqual([])
    const section = JSON.stringify(placementSection(analysis))
    expect(section).toContain(`BLAS ${own!.splits} with ${own!.nodes} nodes (MUL_MAT), `)
  }
})
