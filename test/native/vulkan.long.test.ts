import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { analyze, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { cc } from '../compile.ts'
import type { ModelSpec, Preset } from '../llama/gguf.mjs'
import { ensureLlama, hasLlama, model, type Run, run, vulkanEnvironment } from '../llama/testbed.ts'
import { buildRecorder, expectSameTimes, NANO, RECORDER, readLog } from './recording.ts'

/** Work that ggml submits to Vulkan, by Mesa's driver for the CPU: its operators with tensors, copies, submissions, waits. */
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-vulkan-'))
const vulkan = hasLlama() && vulkanEnvironment ? describe : describe.skip
const LAYER = 'VK_LAYER_KHRONOS_validation'
const validated = existsSync('/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json') ? test : test.skip

const CALLS = [3, 1, 1] // tokens of each
const COMMON = ['--threadpool', '--prompt', '3', '--decode', '2', '--no-repack', '--threads', '1']
const ON_GPU = [...COMMON, '--gpu-layers', '99']
const UNFUSED = { GGML_VK_DISABLE_FUSION: '1' }
/** So many layers that one call submits more than a pool of queries has room for. */
const DEEP: ModelSpec = { ...NANO, layers: 96 }
const POOL_QUERIES = 2048

type Environment = Readonly<Record<string, string>>
let logs = 0

const recordings = new Map<string, ReturnType<typeof runBoth>>()

/** A recording of the model, the same for several tests. */
function record(...args: Parameters<typeof runBoth>) {
  const key = JSON.stringify(args)
  const known = recordings.get(key) ?? runBoth(...args)
  recordings.set(key, known)
  return known
}

/** Runs the model with and without the recorder, to the same result. */
async function runBoth(of: Preset | ModelSpec, env: Environment = {}, preload = RECORDER) {
  const { path } = await model(of)
  const log = join(folder, `${logs++}.ggtrace`)
  const plain = await run(path, ON_GPU, { env: { ...vulkanEnvironment, ...env } })
  const recorded = await run(path, ON_GPU, {
    preload,
    env: { ...vulkanEnvironment, GGML2PERFETTO_OUT: log, ...env },
  })
  const outcome = ({ code, stderr, result }: Run) => ({ code, stderr, hash: result?.hash, tokens: result?.tokens })
  expect(outcome(recorded)).toEqual(outcome(plain))
  expect(recorded.code).toBe(0)
  return { log, ...(await read(log)) }
}

async function read(log: string) {
  const recording = await readLog(log)
  const { of, tensor, text, issues } = recording
  expect(issues).toEqual([])
  const nodeName = (id: number) => `${text(tensor(id).op)} ${text(tensor(id).name)}`
  const kernels = of('gpu').filter((work) => work.node)
  /** Those of a call, in the order in which the GPU ran them; a node's continuation in another command buffer is no node. */
  const nodesOf = (call: number) =>
    kernels
      .filter((work) => work.call === call && !('part' in work.facts))
      .sort((a, b) => a.startNs - b.startNs)
      .map(({ node }) => node!)
  const apis = (name: string) => of('api').filter((call) => text(call.name) === name)
  const fact = (key: string) =>
    of('facts').reduce<string | number | undefined>((value, { attributes }) => attributes[key] ?? value, undefined)
  return { ...recording, nodeName, kernels, nodesOf, apis, fact }
}

type Vulkan = Awaited<ReturnType<typeof record>>

/** Op and name of each node that is computed, per call, as the CPU computes them, one by one. */
async function computed(of: Preset | ModelSpec): Promise<string[][]> {
  const log = join(folder, `${logs++}.ggtrace`)
  const env = { GGML2PERFETTO_OUT: log, GGML2PERFETTO_LEVEL: 'graph', GGML2PERFETTO_SYNC: '1' }
  await run((await model(of)).path, COMMON, { preload: RECORDER, env })
  const { of: events, tensor, text } = await readLog(log)
  return CALLS.map((_, call) =>
    events('operator')
      .filter((operator) => operator.call === call)
      .map((operator) => `${text(tensor(operator.tensor).op)} ${text(tensor(operator.tensor).name)}`)
      .sort(),
  )
}

/** Work of a call: after its first submission, before the host's last wait for it; none at the same time as other work. */
function expectTimes({ of, apis, fact }: Vulkan): void {
  const error = Number(fact('gpu_clock_error_ns'))
  expect(error).toBeGreaterThanOrEqual(0)
  const submissions = new Map(apis('vkQueueSubmit').map((call) => [call.correlation, call]))
  const waits = apis('vkWaitForFences')
  const works = of('gpu').toSorted((a, b) => a.startNs - b.startNs)
  let before = { startNs: -Infinity, endNs: -Infinity }
  for (const work of works) {
    const submission = submissions.get(work.correlation)!
    expect(work.startNs).toBeGreaterThanOrEqual(submission.startNs - error)
    expect(work.startNs).toBeGreaterThanOrEqual(before.endNs)
    before = work
  }
  for (const [call] of CALLS.entries()) {
    const [own, later] = [0, 1].map((next) => apis('vkQueueSubmit').filter((of) => of.call === call + next))
    const fromNs = Math.min(...own!.map(({ startNs }) => startNs))
    const untilNs = Math.min(...later!.map(({ startNs }) => startNs))
    const waited = waits.filter(({ endNs }) => endNs > fromNs && endNs < untilNs)
    const toNs = Math.max(...waited.map(({ endNs }) => endNs))
    const ofCall = works.filter((work) => work.call === call)
    expect(Math.max(...ofCall.map(({ endNs }) => endNs))).toBeLessThanOrEqual(toNs + error)
    expect(ofCall.reduce((sum, work) => sum + work.endNs - work.startNs, 0)).toBeLessThanOrEqual(toNs - fromNs + error)
  }
}

vulkan('the recorder with Vulkan, on the CPU (needs linux-x64, cc and mesa-vulkan-drivers)', () => {
  beforeAll(async () => {
    await ensureLlama({ vulkan: true })
    buildRecorder()
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  describe.each(['tinyDense', 'tinyMoe'] as const)('%s', (preset) => {
    test('each node once per call, with its name', async () => {
      const unfused = await record(preset, UNFUSED)
      const { of, tensor, text, nodesOf, nodeName, kernels } = unfused
      const expected = await computed(preset)
      for (const [call, nodes] of expected.entries()) {
        const onCpu = of('operator').filter((operator) => operator.call === call)
        const found = [...onCpu, ...nodesOf(call)].map((node) => nodeName(node.tensor))
        expect(found.sort()).toEqual(nodes)
      }
      expect(kernels.every(({ node }) => node!.fusedTo === undefined)).toBe(true)
      const layers = kernels.map(({ node }) => tensor(node!.tensor)).filter(({ layer }) => layer >= 0)
      expect(layers.every(({ name, layer }) => text(name).includes(`${layer}`))).toBe(true)
      expectTimes(unfused)
    })

    test('fused nodes, from the first to the last', async () => {
      const [unfused, fused] = [await record(preset, UNFUSED), await record(preset)]
      expect(fused.kernels.some(({ node }) => node!.fusedTo !== undefined)).toBe(true)
      for (const call of CALLS.keys()) {
        const nodes = unfused.nodesOf(call).map(({ tensor }) => unfused.nodeName(tensor))
        let next = 0
        for (const { tensor, fusedTo } of fused.nodesOf(call)) {
          expect(fused.nodeName(tensor)).toBe(nodes[next])
          if (fusedTo !== undefined) next = nodes.indexOf(fused.nodeName(fusedTo), next + 1)
          expect(next).toBeGreaterThanOrEqual(0)
          next++
        }
        expect(next).toBe(nodes.length)
      }
      expectTimes(fused)
    })
  })

  test('draws operators on the queue as on the CPU, with the submission that launched them', async () => {
    const { log, of, kernels, apis, fact } = await record('tinyDense')
    const trace = await openTrace(convert(inputOf(log)))
    expect(trace.problems()).toEqual([])
    const rows = (sql: string) => trace.query(sql).rows
    const arg = (key: string) => `extract_arg(g.arg_set_id, '${key}')`
    const gate = `gpu_slice g where g.name = 'ffn_gate MUL_MAT' and ${arg('layer')} = '3' and ${arg('call')} = '1'`
    const keys = ['tensor', 'op', 'shape', 'src0', 'src0_type', 'kind'].map(arg)
    expect(rows(`select ${keys.join()} from ${gate}`)).toEqual([
      ['ffn_gate-3', 'MUL_MAT', '1408 f32', 'blk.3.ffn_gate.weight 512×1408', 'q4_0', 'kernel'],
    ])
    expect(rows(`select ${arg('kernel')} from ${gate}`)[0]![0]).toMatch(/^mul_mat/)
    expect(rows(`select count(*) from gpu_slice g where ${arg('tensor')} is not null`)).toEqual([[kernels.length]])
    expect(rows('select distinct t.name from gpu_slice g join track t on t.id = g.track_id')).toEqual([
      ['compute 0.0 · GPU 0'],
    ])
    const launched = `slice s join gpu_slice g on g.submission_id = extract_arg(s.arg_set_id, 'debug.correlation')
      where s.name = 'vkQueueSubmit' and s.ts <= g.ts`
    expect(rows(`select count(*) from ${launched}`)).toEqual([[of('gpu').length]])
    // Selecting a call or a graph shows its submissions; selecting these, their work.
    const arrows = (from: string, to: string) =>
      rows(`select count(*), count(distinct a.id) from flow f join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in
        where a.category = '${from}' and ${to} and a.ts <= b.ts`)[0]!.map(Number)
    const ofGraphs = apis('vkQueueSubmit').filter(({ isOfGraph }) => isOfGraph)
    expect(ofGraphs.length).toBeGreaterThan(CALLS.length)
    expect(arrows('graph', "b.name = 'vkQueueSubmit'")).toEqual([ofGraphs.length, CALLS.length])
    expect(arrows('token', "b.name = 'Vulkan0 graph'")).toEqual([CALLS.length, CALLS.length])
    const api = (name: string) => rows(`select count(*) from slice where category = 'api' and name = '${name}'`)[0]![0]
    for (const name of ['vkQueueSubmit', 'vkWaitForFences', 'vkCreateComputePipelines']) {
      expect(api(name)).toBe(apis(name).length)
      expect(apis(name).length).toBeGreaterThan(0)
    }
    expect(apis('vkCreateComputePipelines').every(({ facts }) => typeof Object(facts).shader === 'string')).toBe(true)
    expect(fact('gpus')).toMatch(/^0 llvmpipe/)
    expect(fact('gpu.missing')).toBeUndefined()
    trace.close()
  })

  describe.each([
    ['waits', {}],
    ['times of the GPU', { GGML2PERFETTO_FUNCTIONS: '0' }],
  ])('calls end with their work, by %s:', (_, env) => {
    test.each([
      ['one prompt', '--prompt 16 --decode 4 --sample'],
      ['a prompt in several calls', '--prompt 64 --batch 16 --decode 4'],
    ])('%s takes as long as llama.cpp measures', async (_, args) => {
      const options = [...args.split(' '), '--perf', '--threadpool', '--no-repack', '--gpu-layers', '99']
      await expectSameTimes(async () => {
        const log = join(folder, `${logs++}.ggtrace`)
        const recorded = { preload: RECORDER, env: { ...vulkanEnvironment, ...env, GGML2PERFETTO_OUT: log } }
        const { perf } = await run((await model('tinyDense')).path, options, recorded)
        const { calls, call_time } = await analyze(inputOf(log))
        const decodeNs = call_time.find(({ phase }) => phase === 'decode')!.time_ns
        const prefillMs = (perf!.prompt * 1e3) / calls.prefill_tokens_per_s!
        return [calls.ttft_ns! / 1e6 / perf!.promptMs, prefillMs / perf!.promptMs, decodeNs / 1e6 / perf!.decodeMs]
      }, 0.02)
    })
  })

  test('records more work than a pool of queries has room for', async () => {
    const { nodesOf } = await record(DEEP)
    expect(2 * nodesOf(0).length).toBeGreaterThan(POOL_QUERIES)
    expect(nodesOf(1)).toHaveLength(nodesOf(2).length)
    for (const call of [0, 1, 2])
      expect(new Set(nodesOf(call).map(({ tensor }) => tensor)).size).toBe(nodesOf(call).length)
  })

  test('the program’s time while the GPU waits for it: activities whose sum is that of the gaps', async () => {
    const { log } = await record(NANO)
    const [device] = (await analyze(inputOf(log))).gpu!.devices
    const { time_ns, count } = device!.idle!.host_wait
    expect(count).toBeGreaterThanOrEqual(CALLS.length - 1)
    const activities = new Map(device!.host_wait!.map((of) => [of.what, of.time_ns]))
    expect([...activities.values()].reduce((sum, ns) => sum + ns, 0)).toBe(time_ns)
    for (const what of ['submitting', 'rest of calls', 'outside calls', 'launch latency'] as const)
      expect(activities.get(what)).toBeGreaterThan(0)
  })

  test('without labels: submissions, and the reason', async () => {
    const unlabelled = join(folder, 'unlabelled.so')
    cc('-shared', '-fPIC', '-o', unlabelled, fileURLToPath(new URL('../llama/unlabelled.c', import.meta.url)))
    const { of, kernels, fact } = await record(NANO, {}, `${unlabelled}:${RECORDER}`)
    expect(kernels).toEqual([])
    expect(of('gpu').filter(({ what }) => what === 'graph').length).toBeGreaterThan(CALLS.length)
    expect(fact('gpu.missing')).toMatch(/does not label/)
  })

  test('nothing of the GPU if that is not wanted', async () => {
    const { of } = await record(NANO, { GGML2PERFETTO_GPU: '0' })
    expect([of('gpu'), of('api')]).toEqual([[], []])
    expect(of('graph').length).toBeGreaterThan(0)
  })

  validated('Vulkan’s validation has nothing to say about the recorder (needs vulkan-validationlayers)', async () => {
    const { path } = await model(NANO)
    const messages = async (name: string, preload?: string) => {
      const found = join(folder, `${name}.txt`)
      const settings = { report_flags: 'error,warn', debug_action: 'VK_DBG_LAYER_ACTION_LOG_MSG', log_filename: found }
      const lines = Object.entries(settings).map(([key, value]) => `khronos_validation.${key} = ${value}`)
      writeFileSync(join(folder, 'vk_layer_settings.txt'), `${lines.join('\n')}\n`)
      const layer = { VK_INSTANCE_LAYERS: LAYER, VK_LAYER_SETTINGS_PATH: folder, GGML_VK_DEBUG_MARKERS: '1' }
      const env = { ...vulkanEnvironment, ...layer, GGML2PERFETTO_OUT: join(folder, `${name}.ggtrace`) }
      expect((await run(path, ON_GPU, { env, ...(preload && { preload }) })).code).toBe(0)
      return readFileSync(found, 'utf8').match(/VUID-[\w-]+|UNASSIGNED-[\w-]+/g) ?? []
    }
    const plain = await messages('plain')
    expect(plain).not.toEqual([]) // ggml's own
    expect(await messages('recorded', RECORDER)).toEqual(plain)
    const { kernels } = await read(join(folder, 'recorded.ggtrace'))
    expect(kernels.length).toBeGreaterThan(0)
  })
})
