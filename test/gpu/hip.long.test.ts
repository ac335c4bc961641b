import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { missingParts } from '../../bin/summary.ts'
import { convert, summarize } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { BACKENDS, IN_ROOT, inRoot, placeHip, ROOT, whyNoHip } from '../llama/debian.ts'
import { type ModelSpec, type Preset, presets } from '../llama/gguf.mjs'
import { type GraphNodeLine, type Line, model } from '../llama/testbed.ts'
import { RECORDER, readLog, useRecorder } from '../native/recording.ts'
import { type BedWork, shortName } from './bed-list.ts'

/**
 * Debian's real HIP backend, recorded in a chroot on the GPU of README.md, by HIP's names: each launch, and each node of a graph that is
 * launched, has its operator. Times of its kernels are not recorded.
 */

const ARGS = ['--threads', '1', '--prompt', '8', '--decode', '6', '--gpu-layers', '99']
/** One of prefill, and of decode. */
const CALLS = 7
const KILLS = 20
/** Without them, a launch is of one node, and made when the node is computed. */
const PLAIN = { GGML_CUDA_DISABLE_GRAPHS: '1', GGML_CUDA_DISABLE_FUSION: '1' }
const MODELS: Readonly<Record<string, Preset | ModelSpec>> = {
  dense: 'tinyDense',
  moe: 'tinyMoe',
  exact: 'exact',
  halves: { ...presets.exact, weights: 'F16' },
}

type Environment = Readonly<Record<string, string>>

const problem = whyNoHip()
const hip = problem === undefined ? describe : describe.skip

hip(`the recorder with HIP, on a GPU that does not exist (${problem ?? 'as root'})`, () => {
  useRecorder()
  let folder = ''

  beforeAll(async () => {
    folder = mkdtempSync(join(ROOT, 'tmp/hip-'))
    placeHip(folder)
    copyFileSync(RECORDER, join(folder, 'recorder.so'))
    for (const [name, spec] of Object.entries(MODELS))
      copyFileSync((await model(spec)).path, join(folder, `${name}.gguf`))
    execFileSync('make', [
      '-s',
      '-C',
      fileURLToPath(new URL('.', import.meta.url)),
      'hip',
      `BUILD=${join(folder, 'bed')}`,
    ])
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const inside = (name: string) => `${inRoot(folder)}/${name}`
  let logs = 0

  /** With BED_LOG on its own output, what the bed runs is between the nodes that the program prints. */
  function run(name: string, args: readonly string[], env: Environment, timeoutMs = 240_000) {
    const variables = { LD_LIBRARY_PATH: inside('bed'), GGML_BACKEND_PATH: inside('libggml-hip.so'), ...env }
    const set = Object.entries(variables).map(([key, value]) => `${key}=${value}`)
    const program = [inside('run'), ...BACKENDS, '--model', inside(`${name}.gguf`), ...ARGS, ...args]
    const [first, ...rest] = [...IN_ROOT, 'env', ...set, ...program]
    const options = { encoding: 'utf8', timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: 1 << 28 } as const
    const { status, signal, stdout, stderr } = spawnSync(first!, rest, options)
    const lines = stdout
      .slice(0, stdout.lastIndexOf('\n') + 1)
      .split('\n')
      .filter(Boolean)
    return { status, signal, stderr, lines: lines.map((line) => JSON.parse(line) as Line | BedWork) }
  }

  const preloaded = (log: string) => ({ LD_PRELOAD: inside('recorder.so'), GGML2PERFETTO_OUT: inside(log) })

  /** Runs it with the recorder, to the same result, and reads the log. */
  async function record(name: string, env: Environment = {}, args: readonly string[] = []) {
    const [log, list] = [`${logs++}.ggtrace`, `${logs}.jsonl`]
    const plain = run(name, args, env)
    const recorded = run(name, args, { ...preloaded(log), BED_LOG: inside(list), ...env })
    const hash = ({ lines }: typeof plain) => lines.flatMap((line) => (line.event === 'result' ? [line.hash] : []))
    expect(hash(plain)).toHaveLength(1)
    expect([recorded.status, recorded.stderr, hash(recorded)]).toEqual([0, plain.stderr, hash(plain)])
    const recording = await readLog(join(folder, log))
    expect(recording.issues).toEqual([])
    const { of, text, tensor } = recording
    const nodeName = (id: number) => `${text(tensor(id).op)} ${text(tensor(id).name)}`
    const launches = of('api').toSorted((a, b) => a.startNs - b.startNs)
    const works = launches.flatMap(({ untimed = [], call }) => untimed.map((work) => ({ ...work, call })))
    const listed = readFileSync(join(folder, list), 'utf8').trimEnd().split('\n')
    return {
      ...recording,
      path: join(folder, log),
      nodeName,
      launches,
      works,
      listed: listed.map((line) => JSON.parse(line) as BedWork),
    }
  }

  type Recorded = Awaited<ReturnType<typeof record>>

  /** Kernels of a call in the order of their launches: what they compute, from the first to the last node. */
  const kernelsOf = ({ works, nodeName, text }: Recorded, call: number) =>
    works
      .filter((work) => work.call === call && work.what === 'kernel')
      .map(({ name, signature, node }) => {
        const range = node && [node.tensor, ...(node.fusedTo === undefined ? [] : [node.fusedTo])].map(nodeName)
        return `${signature === 0 ? 'gemm' : text(name)}: ${range?.join(' … ')}`
      })

  const kernelName = (name: string) => (name.startsWith('bed_gemm') ? 'gemm' : shortName(name))

  /** What the program computes of each call, node by node, and what each launches. */
  function truth(name: string, args: readonly string[], env: Environment): string[][] {
    const calls: string[][] = []
    let at: GraphNodeLine | undefined
    for (const line of run(name, [...args, '--each-node'], { ...PLAIN, ...env, BED_LOG: '-' }).lines) {
      if (line.event === 'node') at = line
      else if (line.event === 'work' && line.kind === 'kernel' && at) {
        calls[at.call] ??= []
        calls[at.call]!.push(`${kernelName(line.name)}: ${at.node.op} ${at.node.name}`)
      }
    }
    return calls
  }

  test.each<readonly [string, string, Environment]>([
    ...Object.keys(MODELS).map((name) => [name, '', {}] as const),
    ['dense', '--prompt 400', {}],
    ['moe', '--prompt 400', {}],
    ['halves', '--prompt 400 --flash-attention 0', {}],
    ['moe', '--prompt 400', { BED_ARCH: 'gfx942' }],
    ['dense', '', { BED_DEVICES: '2' }],
    ['moe', '--gpu-layers 3', {}],
  ])('%s %s %j: launches are of the node that the program computes when they are made', async (name, more, env) => {
    const args = more.split(' ').filter(Boolean)
    const recorded = await record(name, { ...PLAIN, ...env }, args)
    const calls = truth(name, args, env)
    expect(calls.length).toBe(CALLS)
    for (const [call, expected] of calls.entries()) expect(kernelsOf(recorded, call)).toEqual(expected)
  })

  test('products of hipBLAS are launches, too', async () => {
    const recorded = await record('halves', PLAIN, ['--prompt', '400', '--flash-attention', '0'])
    expect(kernelsOf(recorded, 0).filter((kernel) => kernel.startsWith('gemm: MUL_MAT')).length).toBeGreaterThan(10)
  })

  test.each(Object.keys(MODELS))(
    '%s: nodes of graphs, fused ones too, are those of the same launches without graphs',
    async (name) => {
      const eager = await record(name, { GGML_CUDA_DISABLE_GRAPHS: '1' })
      const graphs = await record(name)
      expect(graphs.listed.filter(({ isOfGraph }) => isOfGraph).length).toBeGreaterThan(100)
      expect(eager.listed.some(({ isOfGraph }) => isOfGraph)).toBe(false)
      for (let call = 0; call < CALLS; call++) expect(kernelsOf(graphs, call)).toEqual(kernelsOf(eager, call))
      const replays = graphs.launches.filter(({ name: id }) => graphs.text(id) === 'hipGraphLaunch')
      expect(replays.length).toBeGreaterThan(2)
      for (const { untimed } of replays) expect(untimed!.length).toBeGreaterThan(10)
    },
  )

  test.each(Object.keys(MODELS))(
    '%s: the log has the kernels that the bed ran; copies of weights, inputs and outputs are of no operator',
    async (name) => {
      const { works, listed, text, tensor, of, attributes } = await record(name)
      const shapes = works.flatMap(({ what, facts, name: id, signature }) => {
        const { grid, block } = facts as Readonly<Record<string, string>>
        return what === 'kernel' ? [signature === 0 ? 'gemm' : `${text(id)} ${grid} ${block}`] : []
      })
      const expected = listed.filter(({ kind }) => kind === 'kernel')
      expect(shapes).toEqual(
        expected.map(({ name: mangled, grid, block }) => {
          const short = kernelName(mangled)
          return short === 'gemm' ? short : `${short} ${grid} ${block}`
        }),
      )
      expect(works.filter(({ what, node }) => what === 'kernel' && !node)).toEqual([])
      for (const { what, node } of works)
        if (what === 'memcpy') expect(text(tensor(node!.tensor).op)).toMatch(/^(?:CPY|CONT|DUP)$/)
      expect(of('gpu')).toEqual([])
      expect(attributes['gpu.missing']).toMatch(/^times of HIP's kernels/)
      const calls = new Set(of('api').map(({ name: id, library }) => `${library} ${text(id)}`))
      for (const call of ['hipLaunchKernel', 'hipMemcpyAsync', 'hipGraphLaunch', 'hipStreamSynchronize'])
        expect(calls).toContain(`hip ${call}`)
    },
  )

  test('the trace has the operator of each launch, and the reason why it has no times', async () => {
    const { path, launches } = await record('moe')
    const trace = await openTrace(convert(inputOf(path)))
    const numbers = (sql: string) => trace.query(sql).rows.map((row) => row.map(Number))
    const single = launches.filter(({ untimed }) => untimed?.length === 1 && untimed[0]!.node)
    const graphs = launches.filter(({ untimed }) => (untimed?.length ?? 0) > 1)
    const arg = (name: string) => `extract_arg(arg_set_id, 'debug.${name}')`
    try {
      expect(numbers("select count(*) from stats where severity = 'error' and value > 0")).toEqual([[0]])
      expect(numbers(`select count(*) from slice where category = 'api' and ${arg('tensor')} is not null`)).toEqual([
        [single.length],
      ])
      expect(numbers(`select sum(${arg('launched_works')}) from slice where name = 'hipGraphLaunch'`)).toEqual([
        [graphs.reduce((sum, { untimed }) => sum + untimed!.length, 0)],
      ])
    } finally {
      trace.close()
    }
    expect(missingParts(await summarize(inputOf(path))).join()).toMatch(
      /operators of ROCm0 were not seen: times of HIP's kernels/,
    )
  })

  test('no device: the CPU computes', async () => {
    const { lines, status } = run('dense', [], { ...preloaded('none.ggtrace'), BED_FAULT: 'no-device' })
    expect([status, lines.some(({ event }) => event === 'result')]).toEqual([0, true])
    const { of } = await readLog(join(folder, 'none.ggtrace'))
    expect([of('api'), of('operator').length > 100]).toEqual([[], true])
  })

  test('killed at any time, the log is readable', async () => {
    for (let i = 0; i < KILLS; i++) {
      const log = `killed-${i}.ggtrace`
      run('dense', ['--decode', '400'], preloaded(log), 100 + Math.round((i * 400) / KILLS))
      if (!existsSync(join(folder, log))) continue // before ggml was called
      const { issues } = await readLog(join(folder, log))
      expect(issues.filter((issue) => !/^(?:run did not end|.*lost)/.test(issue))).toEqual([])
    }
  })

  test('a launch fails, and the device is lost: the program ends as without the recorder', async () => {
    for (const fault of ['launch-error', 'device-lost']) {
      const env = { BED_FAULT: fault, GGML_NO_BACKTRACE: '1' }
      const plain = run('dense', [], env)
      const recorded = run('dense', [], { ...env, ...preloaded(`${fault}.ggtrace`) })
      expect([recorded.status, recorded.signal]).toEqual([plain.status, plain.signal])
      expect(plain.status).not.toBe(0)
      expect((await readLog(join(folder, `${fault}.ggtrace`))).of('facts').length).toBeGreaterThan(0)
    }
  })
})
