import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { GpuEvent } from '../../lib/core.ts'
import { cc } from '../compile.ts'
import type { ModelSpec, Preset } from '../llama/gguf.mjs'
import { presets } from '../llama/gguf.mjs'
import { cudaEnvironment, ensureLlama, hasLlama, model, run } from '../llama/testbed.ts'
import { inFolder, newLog, RECORDER, readLog } from '../native/recording.ts'
import { type BedWork, shortName } from './bed-list.ts'
import { ARGS, BED, CALLS, type Environment, kernelsOf, PLAIN, record, truth, useBed } from './recording.ts'

/**
 * llama.cpp's real CUDA backend, recorded on the GPU of README.md: each kernel, copy and fill has the operator that launched it. The truth
 * is the program's own, which computes node by node, and the list of what the bed ran.
 */

const KILLS = 30
const MODELS: readonly Preset[] = ['tinyDense', 'tinyMoe', 'exact']
/** Products of cuBLAS, and conversions for them. */
const HALVES: ModelSpec = { ...presets.exact, weights: 'F16' }
/** As `--n-cpu-moe 4`. */
const SOME_EXPERTS = 'blk\\.[0-3]\\.ffn_.*_exps'
/** Adds the results of devices after a graph: of no node. */
const ALL_REDUCE = 'ggml_cuda_ar_kernel: undefined'
const TWO = { BED_DEVICES: '2' }

/** Kernels are of the nodes that the program computes when they are launched. */
async function checkNodes(preset: Preset | ModelSpec, options: string, env: Environment) {
  const more = options.split(' ').filter(Boolean)
  const recorded = await record(preset, { ...PLAIN, ...env }, [...ARGS, ...more])
  const calls = await truth(preset, more, env)
  expect(calls.length).toBe(CALLS)
  for (const [call, expected] of calls.entries())
    expect(kernelsOf(recorded, call).filter((kernel) => kernel !== ALL_REDUCE)).toEqual(expected)
}

/** Kernels of replays are of the nodes of the same launches without graphs. */
async function checkReplays(preset: Preset, env: Environment) {
  const eager = await record(preset, { ...env, GGML_CUDA_DISABLE_GRAPHS: '1' })
  const graphs = await record(preset, env)
  const replayed = graphs.listed.filter(({ isOfGraph }) => isOfGraph).length
  expect(replayed).toBeGreaterThan(100)
  expect(eager.listed.some(({ isOfGraph }) => isOfGraph)).toBe(false)
  for (let call = 0; call < CALLS; call++) expect(kernelsOf(graphs, call)).toEqual(kernelsOf(eager, call))
  expect(graphs.of('api').filter(({ name }) => graphs.text(name) === 'cudaGraphLaunch').length).toBeGreaterThan(2)
}

const cuda = hasLlama() ? describe : describe.skip

cuda('the recorder with CUDA, on a GPU that does not exist (needs linux-x64, cc, c++ and make)', () => {
  useBed()

  test.each<readonly [model: Preset | ModelSpec, options: string, Environment]>([
    ...MODELS.map((preset) => [preset, '', {}] as const),
    ...[...MODELS, HALVES].flatMap((preset) => [
      [preset, '--prompt 400', {}] as const,
      [preset, '--prompt 400 --flash-attention 0', {}] as const,
      [preset, '--flash-attention 1', {}] as const,
    ]),
    [HALVES, '--parallel 4', {}],
    [HALVES, '--prompt 400', { BED_CC: '61' }],
    ['tinyMoe', '--prompt 400', { BED_CC: '75' }],
    ['tinyDense', '--type-k q8_0 --type-v q8_0 --flash-attention 1', {}],
    ['tinyQwen2', '--parallel 3', {}],
    ['big', '--prompt 400', {}],
    ['tinyDense', '--gpu-layers 3', {}],
    ['tinyMoe', `--on-cpu ${SOME_EXPERTS}`, {}],
    ['tinyMoe', `--on-cpu ${SOME_EXPERTS} --prompt 400`, {}],
    ['tinyDense', '--on-cpu attn_k|ffn_down', {}],
    ['tinyDense', '', TWO],
    ['tinyMoe', '--prompt 400', TWO],
    ['tinyDense', '--split-mode 0', TWO],
    ['tinyDense', '--split-mode 3', TWO],
    ['tinyMoe', '--split-mode 3', TWO],
    ['tinyMoe', '--split-mode 3 --prompt 400', TWO],
  ])('%j %s %j: kernels are of the node that the program computes when they are launched', checkNodes)

  test.each<Preset>(['tinyDense', 'tinyMoe', 'tinyQwen2'])(
    '%s: on several streams, where nodes have another order, kernels are of the same nodes',
    async (preset) => {
      const several = { GGML_CUDA_GRAPH_OPT: '1' }
      const unfused = await record(preset, { ...several, GGML_CUDA_DISABLE_FUSION: '1' })
      const calls = await truth(preset, [], {})
      const [one, fused] = [await record(preset), await record(preset, several)]
      for (const { works } of [unfused, fused])
        expect(new Set(works.map(({ stream }) => stream)).size).toBeGreaterThan(3)
      for (let call = 0; call < CALLS; call++) {
        expect(kernelsOf(unfused, call).sort()).toEqual(calls[call]!.sort())
        expect(kernelsOf(fused, call).sort()).toEqual(kernelsOf(one, call).sort())
      }
    },
  )

  test('a ggml-cuda that the linker binds call by call is recorded, too', async () => {
    const library = cudaEnvironment(BED)['GGML_BACKEND_PATH']!
    const [now, lazily] = [await record('tinyDense'), await record('tinyDense', {}, ARGS, `${RECORDER}:${library}`)]
    for (let call = 0; call < CALLS; call++) expect(kernelsOf(lazily, call)).toEqual(kernelsOf(now, call))
  })

  test.each<readonly [Preset, Environment]>([
    ...MODELS.map((preset) => [preset, {}] as const),
    ['tinyDense', { BED_CC: '80' }],
    ['tinyMoe', { BED_CC: '120' }],
  ])('%s %o: replays of graphs, with fused nodes, are of the nodes of the same launches without graphs', checkReplays)

  describe('CUDA 12', () => {
    const cuda12 = () => cudaEnvironment(inFolder('bed12'), 'cuda12')
    beforeAll(async () => {
      await ensureLlama({ cuda12: true })
      const folder = fileURLToPath(new URL('.', import.meta.url))
      execFileSync('make', ['-s', '-C', folder, 'CUDA=12', `BUILD=${inFolder('bed12')}`])
    })

    test.each<readonly [model: Preset | ModelSpec, options: string]>([
      ...MODELS.map((preset) => [preset, ''] as const),
      [HALVES, '--prompt 400 --flash-attention 0'],
      ['tinyMoe', '--prompt 400'],
    ])(
      '%j %s: kernels are of the node that the program computes when they are launched',
      async (preset, options) => await checkNodes(preset, options, cuda12()),
    )

    test.each(MODELS)(
      '%s: replays of graphs are of the nodes of the same launches without graphs',
      async (preset) => await checkReplays(preset, cuda12()),
    )
  })

  test('graphs that are captured in a call that is not recorded have their operators in those that are', async () => {
    const first = 4
    const [all, part] = [await record('tinyDense'), await record('tinyDense', { GGML2PERFETTO_TOKENS: `${first}..` })]
    expect([...new Set(part.works.flatMap(({ call }) => call ?? []))]).toEqual([4, 5, 6])
    for (let call = first; call < CALLS; call++) expect(kernelsOf(part, call)).toEqual(kernelsOf(all, call))
  })

  test.each<[Preset, readonly string[]]>([
    ['tinyDense', ['MUL_MAT ADD', 'MUL_MAT SWIGLU', 'RMS_NORM MUL', 'ROPE SET_ROWS']],
    ['tinyMoe', ['MUL ADD', 'MUL_MAT ADD', 'MUL_MAT_ID SWIGLU', 'RMS_NORM MUL', 'ROPE SET_ROWS', 'SOFT_MAX DIV']],
  ])('%s: fused nodes name both ends', async (preset, expected) => {
    const { works, tensor, text } = await record(preset)
    const op = (id: number) => text(tensor(id).op)
    const fused = works.flatMap(({ node }) =>
      node?.fusedTo === undefined ? [] : [`${op(node.tensor)} ${op(node.fusedTo)}`],
    )
    expect([...new Set(fused)].sort()).toEqual(expected)
  })

  test.each(MODELS)('%s: the log has what the bed ran, stream by stream', async (preset) => {
    const { works, listed, text, of } = await record(preset)
    const facts = (work: GpuEvent) => work.facts as Readonly<Record<string, string | number>>
    const kinds = { kernel: 'kernel', memcpy: 'copy', memset: 'fill', graph: 'graph', migration: 'copy' } as const
    const shape = (work: BedWork) =>
      work.kind === 'kernel' ? `${work.grid} ${work.block} ${shortName(work.name)}` : `${work.bytes}`
    for (const stream of new Set(listed.map((work) => work.stream))) {
      const inLog = works.filter((work) => work.stream === stream)
      const found = inLog.map((work) => {
        const what =
          work.what === 'kernel'
            ? `${facts(work)['grid']} ${facts(work)['block']} ${text(work.name)}`
            : `${facts(work)['bytes']}`
        return `${kinds[work.what]} ${work.endNs - work.startNs} ns ${what}`
      })
      expect(found).toEqual(
        listed.filter((work) => work.stream === stream).map((work) => `${work.kind} ${work.ns} ns ${shape(work)}`),
      )
    }
    // Launches: each has its work.
    const launched = new Set(works.map(({ correlation }) => correlation))
    for (const call of of('api').filter(({ correlation }) => correlation > 0))
      expect(launched.has(call.correlation)).toBe(true)
  })

  test('copies of weights, inputs and outputs are of no operator; all kernels are of one', async () => {
    for (const preset of MODELS) {
      const { works, text, tensor } = await record(preset)
      const ofNone = works.filter(({ what, node }) => what === 'kernel' && !node)
      expect(ofNone.map(({ name }) => text(name))).toEqual([])
      const copies = works.filter(({ what, node }) => what === 'memcpy' && node)
      const named = copies.map(({ name, node }) => `${text(name)} ${text(tensor(node!.tensor).op)}`)
      for (const copy of named) expect(copy).toMatch(/Device-to-Device\] (?:CPY|CONT|DUP)$/)
    }
  })

  test('two devices, and layers that remain on the CPU', async () => {
    const two = await record('tinyDense', { BED_DEVICES: '2' })
    expect(new Set(two.works.map(({ device }) => device))).toEqual(new Set([0, 1]))
    expect(two.works.filter(({ what, node }) => what === 'kernel' && !node)).toEqual([])
    const copies = two.works.filter(({ what }) => what === 'memcpy')
    expect(copies.length).toBe(two.listed.filter(({ kind }) => kind === 'copy').length)
    expect(copies.filter(({ name }) => two.text(name) === '[CUDA memcpy Peer-to-Peer]').length).toBe(CALLS)
    const partial = await record('tinyMoe', {}, [...ARGS.slice(0, -1), '3'])
    expect(partial.works.filter(({ what, node }) => what === 'kernel' && !node)).toEqual([])
    expect(partial.of('operator').length).toBeGreaterThan(100)
  })

  describe('other users of CUDA in the process', () => {
    const source = (name: string) => fileURLToPath(new URL(name, import.meta.url))
    const linked = (runtime: string) => [`-L${BED}`, `-l:${runtime}`, `-Wl,-rpath,${BED}`]
    const shared = (name: string, more: readonly string[]) => {
      const library = inFolder(name)
      cc('-shared', '-fPIC', '-o', library, ...more)
      return library
    }

    test.each(['local', 'global'])('two runtimes, %s: each library calls its own', (mode) => {
      const program = inFolder('runtimes')
      cc('-o', program, source('runtimes.c'), '-ldl')
      const libraries = ['libcudart.so.13', 'libcudart_other.so.13'].map((runtime, i) =>
        shared(`lib${i}.so`, ['-DLIBRARY', source('runtimes.c'), ...linked(runtime)]),
      )
      for (const order of [libraries, libraries.toReversed()]) {
        const output = (env: Environment) =>
          execFileSync(program, [mode, ...order], { env: { ...process.env, ...env }, encoding: 'utf8' })
        const plain = output({})
        expect(plain).toBe('101: 101, 0\n101: 0, 101\n101: 101, 0\n101: 0, 101\n')
        expect(output({ LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: newLog() })).toBe(plain)
      }
    })

    test('what another library launches is of no operator, and no launch of ggml', async () => {
      const library = shared('libforeign.so', [source('foreign.c'), ...linked('libcudart.so.13')])
      const { works, listed, of } = await record('tinyDense', {}, ARGS, `${RECORDER}:${library}`)
      const foreign = listed.filter(({ bytes }) => bytes === 12_345)
      expect(foreign.length).toBe(CALLS)
      expect(works.length).toBe(listed.length - foreign.length)
      expect(works.filter(({ what, node }) => what === 'kernel' && !node)).toEqual([])
      expect(of('api').filter(({ correlation }) => correlation > 0).length).toBe(
        new Set(works.map((work) => work.correlation)).size,
      )
    })
  })

  describe('faults', () => {
    test.each([
      ['busy-cupti', /another profiler uses CUPTI/],
      ['no-driver', /CUPTI cannot be used/],
    ])('%s: no times of kernels, with the reason', async (fault, reason) => {
      const { works, fact, of, text } = await record('tinyDense', { BED_FAULT: fault })
      expect(new Set(works.map(({ what }) => what))).toEqual(new Set(['graph'])) // by events: events.long.test.ts
      expect(fact('gpu.missing')).toMatch(reason)
      expect(of('api').some(({ name }) => text(name) === 'cudaGraphLaunch')).toBe(true)
    })

    test('no device: the CPU computes', async () => {
      const { works, of } = await record('tinyDense', { BED_FAULT: 'no-device', BED_LOG: '' }).catch((error) => error)
      expect(works ?? []).toEqual([])
      expect(of?.('operator').length ?? 1).toBeGreaterThan(0)
    })

    test('records out of order are the same', async () => {
      const [ordered, reversed] = [await record('tinyDense'), await record('tinyDense', { BED_FAULT: 'out-of-order' })]
      for (let call = 0; call < CALLS; call++) expect(kernelsOf(reversed, call)).toEqual(kernelsOf(ordered, call))
    })

    test('records without times, and lost buffers, are counted', async () => {
      const zero = await record('tinyDense', { BED_FAULT: 'zero-times' })
      const lost = Math.floor(zero.listed.length / 50)
      expect(zero.works.length).toBe(zero.listed.length - lost)
      expect(zero.fact('gpu.without_times')).toBe(`${lost}`)
      expect(zero.issues).toEqual([`lost work of a GPU: ${lost} pieces of work of a GPU without times, left out`])
    })

    test('a CUPTI that is none: the next one is used', async () => {
      const folder = dirname(newLog())
      mkdirSync(folder, { recursive: true })
      copyFileSync(join(BED, 'libcuda.so.1'), join(folder, 'libcupti.so.13'))
      copyFileSync(join(BED, 'libcupti.so.13'), join(folder, 'libcupti.so.12'))
      const { works, listed, fact } = await record('tinyDense', { LD_LIBRARY_PATH: `${folder}:${BED}` })
      expect([works.length, fact('gpu.missing')]).toEqual([listed.length, undefined])
    })

    test('without CUDA, its functions fail as without a driver', () => {
      const program = inFolder('absent')
      cc('-o', program, fileURLToPath(new URL('absent.c', import.meta.url)), '-ldl')
      const output = (env: Environment) => execFileSync(program, { env: { ...process.env, ...env }, encoding: 'utf8' })
      expect([output({}), output({ LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: newLog() })]).toEqual([
        '-1 -1 -1 -1 -1 ',
        '35 35 35 35 1 ',
      ])
    })

    test('records that CUPTI drops are losses', async () => {
      const log = newLog()
      mkdirSync(dirname(log), { recursive: true })
      const env = { ...cudaEnvironment(BED), GGML2PERFETTO_OUT: log, BED_FAULT: 'lost-buffers' }
      await run((await model('tinyDense')).path, [...ARGS, '--decode', '60'], { preload: RECORDER, env })
      expect((await readLog(log)).issues.join()).toMatch(/CUPTI dropped records/)
    })

    test('a program that has loaded CUPTI keeps it, unless it is named; the level of tokens has nothing of CUDA', async () => {
      const cupti = join(BED, 'libcupti.so.13')
      const own = await record('tinyDense', {}, ARGS, `${RECORDER}:${cupti}`)
      expect([own.fact('gpu.times'), own.fact('gpu.missing')]).toEqual([
        'events around graph runs',
        expect.stringMatching(/has loaded CUPTI/),
      ])
      const named = await record('tinyDense', { GGML2PERFETTO_CUPTI: cupti }, ARGS, `${RECORDER}:${cupti}`)
      expect(named.works.length).toBe(named.listed.length)
      const { works, of, fact } = await record('tinyDense', { GGML2PERFETTO_LEVEL: 'token' })
      expect([works, of('api'), fact('gpu.missing')]).toEqual([[], [], undefined])
    })

    test('killed at any time, the log is readable', async () => {
      const { path } = await model('tinyDense')
      for (let i = 0; i < KILLS; i++) {
        const log = newLog()
        mkdirSync(dirname(log), { recursive: true })
        const env = { ...cudaEnvironment(BED), GGML2PERFETTO_OUT: log }
        const timeoutMs = 100 + Math.round((i * 400) / KILLS)
        const { signal } = await run(path, [...ARGS, '--decode', '2000'], { preload: RECORDER, env, timeoutMs })
        expect(signal).toBe('SIGKILL')
        if (!existsSync(log)) continue // before ggml was called
        const { issues } = await readLog(log)
        expect(issues.filter((issue) => !/^(?:run did not end|.*lost)/.test(issue))).toEqual([])
      }
    })

    test('a launch fails, and the device is lost: the program ends as without the recorder', async () => {
      for (const fault of ['launch-error', 'device-lost']) {
        const log = newLog()
        mkdirSync(dirname(log), { recursive: true })
        const { path } = await model('tinyDense')
        const env = { ...cudaEnvironment(BED), BED_FAULT: fault, GGML_NO_BACKTRACE: '1' }
        const plain = await run(path, ARGS, { env })
        const recorded = await run(path, ARGS, { preload: RECORDER, env: { ...env, GGML2PERFETTO_OUT: log } })
        expect([recorded.code, recorded.signal]).toEqual([plain.code, plain.signal])
        expect(plain.signal).toBe('SIGABRT')
        expect((await readLog(log)).of('facts').length).toBeGreaterThan(0)
      }
    })
  })
})
