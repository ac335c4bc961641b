import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { plainPath } from '../cache.cjs'
import type { ModelSpec } from '../llama/gguf.mjs'
import { aloneOnArm64, ensureLlama, hasLlama, missingForArm64, model, type Run, run } from '../llama/testbed.ts'
import { buildRecorder, expectTrace, NANO, NANO_MOE, RECORDER, type Recording, readLog } from './recording.ts'

/**
 * The recorder for arm64, as it is released, before llama.cpp's own libraries for arm64, by qemu-user. It emulates the processor and hands
 * system calls on, but those that it does not know: perf_event_open. The log says what is missing.
 */

const NATIVE = fileURLToPath(new URL('../../native', import.meta.url))
const BUILD = 'build/release-arm64'
const ARM64_RECORDER = join(plainPath(NATIVE), BUILD, 'release/libggml2perfetto.so')
const missing = hasLlama() ? missingForArm64() : 'llama.cpp'
const arm64 = missing === undefined ? describe : describe.skip

arm64(`the recorder on arm64 (${missing === undefined ? 'qemu-user' : `needs ${missing}`})`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-arm64-'))
  let logs = 0

  beforeAll(async () => {
    await ensureLlama({ arm64: true })
    buildRecorder()
    mkdirSync(join(NATIVE, 'build'), { recursive: true })
    const make = ['make', '-s', '-C', NATIVE, `BUILD=${BUILD}`, 'CC=aarch64-linux-gnu-gcc', 'release']
    execFileSync('flock', [join(NATIVE, 'build/tests.lock'), ...make])
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const newLog = () => join(folder, `${logs++}.ggtrace`)

  async function record(path: string, args: readonly string[], isArm64: boolean, env: Record<string, string> = {}) {
    const log = newLog()
    const preload = isArm64 ? ARM64_RECORDER : RECORDER
    const result = await run(path, args, { arm64: isArm64, preload, env: { GGML2PERFETTO_OUT: log, ...env } })
    expect([result.code, result.signal, result.stderr]).toEqual([0, null, ''])
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    return { log, result, recording }
  }

  /** What does not depend on the machine: calls, their batches, graphs. */
  const callsAndGraphs = ({ of }: Recording) => ({
    calls: of('token').map(({ call, phase, tokens, batch }) => [call, phase, tokens, batch?.spans]),
    graphs: of('graph').map(({ call, nodes, status }) => [call, nodes, status]),
    experts: of('experts').map(({ call, ids, k }) => [call, ids.length, k]),
  })

  /** Of each operator of a worker, in order of time, its first node and its last one, which is another where nodes are fused. */
  function operatorsOf({ of, tensor, text }: Recording, ofWorker: number) {
    const own = of('operator').filter(({ worker }) => worker === ofWorker)
    const node = (id: number) => {
      const { op, name, ne, type } = tensor(id)
      return [text(op), text(name), `${ne}`, text(type)].join(' ')
    }
    own.sort((a, b) => a.startNs - b.startNs)
    return own.map(({ call, tensor: id, fusedTo }) => ({ call, first: node(id), last: node(fusedTo ?? id) }))
  }

  /** All nodes that a worker computed, in order: of the architecture where each pair of fused nodes is an operator of its own. */
  const nodesOf = (recording: Recording) =>
    operatorsOf(recording, 0).flatMap(({ call, first, last }) =>
      [first, ...(last === first ? [] : [last])].map((node) => `${call} ${node}`),
    )

  /** Where ends are inferred, an operator contains the fused nodes behind it: together they are all nodes, none twice. */
  function expectNodes(recording: Recording, worker: number, nodes: readonly string[]) {
    let at = 0
    for (const { call, first, last } of operatorsOf(recording, worker)) {
      expect([at, `${call} ${first}`]).toEqual([at, nodes[at]])
      const end = nodes.indexOf(`${call} ${last}`, at)
      expect(end - at).toBeGreaterThanOrEqual(0)
      expect(end - at).toBeLessThanOrEqual(2)
      at = end + 1
    }
    expect(at).toBe(nodes.length)
  }

  function expectToldCalls(result: Run, { of }: Recording) {
    const recorded = [...of('token')].sort((a, b) => a.startNs - b.startNs)
    expect(recorded.map(({ tokens }) => tokens)).toEqual(result.calls.map(({ tokens }) => tokens))
    const origin = Number(of('input')[0]!.originNs)
    for (const [i, { start, end }] of result.calls.entries()) {
      expect(origin + recorded[i]!.startNs).toBeGreaterThanOrEqual(start)
      expect(origin + recorded[i]!.endNs).toBeLessThanOrEqual(end)
    }
  }

  const runs: [name: string, args: string[], spec: ModelSpec][] = [
    ['dense', ['--threads', '1'], NANO],
    ['dense', ['--threads', '2'], NANO],
    ['mixture of experts', ['--threads', '2', '--threadpool'], NANO_MOE],
    ['mixture of experts', ['--threads', '2', '--dlsym'], NANO_MOE],
    ['mixture of experts', ['--threads', '2', '--change-threads', '--warmup'], NANO_MOE],
    ['mixture of experts', ['--threads', '1', '--no-repack', '--ubatch', '4'], NANO_MOE],
    ['two sequences', ['--threads', '2', '--parallel', '2'], NANO_MOE],
  ]

  test.each(runs)('%s %j: the same output, and the same log as on x64', async (_name, args, spec) => {
    const { path } = await model(spec)
    const all = ['--prompt', '12', '--decode', '5', '--times', ...args]
    const plain = await run(path, all, { arm64: true })
    const { log, result, recording } = await record(path, all, true)
    expect(result.result).toEqual({ ...plain.result!, pid: expect.any(Number) })
    expectToldCalls(result, recording)
    const x64 = await record(path, all, false)
    expect(callsAndGraphs(recording)).toEqual(callsAndGraphs(x64.recording))
    const nodes = nodesOf(x64.recording)
    expect(nodes).toHaveLength(x64.recording.of('graph').reduce((sum, graph) => sum + graph.nodes, 0))
    for (let worker = 0; worker < Number(args[1]); worker++) expectNodes(recording, worker, nodes)
    await expectTrace(log, recording)
  })

  test('names, types, shapes, sizes and GGUF offsets of the weights are the file’s', async () => {
    const { path, tensors } = await model(NANO_MOE)
    const { recording } = await record(path, ['--prompt', '4', '--decode', '1', '--no-repack'], true)
    const { of, text } = recording
    const recorded = new Map(of('tensor').map((tensor) => [text(tensor.name), tensor]))
    const found = tensors.map(({ name }) => {
      const { type, ne, sizeBytes, offset } = recorded.get(name)!
      return [name, text(type).toUpperCase(), ne, sizeBytes, offset]
    })
    expect(found).toEqual(
      tensors.map(({ name, type, shape, size, offset }) => [name, type, [...shape, 1, 1, 1].slice(0, 4), size, offset]),
    )
  })

  test('expert ids are those that the program reads from the router', async () => {
    const { path } = await model(NANO_MOE)
    const args = ['--threads', '2', '--prompt', '9', '--decode', '4']
    const told = await run(path, [...args, '--topk'], { arm64: true })
    const { recording } = await record(path, args, true)
    const recorded = recording.of('experts').map(({ call, tensor, ids, k }) => {
      const rows = Array.from({ length: ids.length / k }, (_, i) => [...ids.subarray(i * k, (i + 1) * k)])
      return { call, layer: recording.tensor(tensor).layer, ids: rows }
    })
    expect(recorded.length).toBeGreaterThan(0)
    expect(recorded).toEqual(told.topk.map(({ call, layer, ids }) => ({ call, layer, ids })))
  })

  test('thread states that cannot be had are missed with a reason; levels, --sync, --ring', async () => {
    const { path } = await model(NANO)
    const args = ['--prompt', '4', '--decode', '3']
    const { recording } = await record(path, args, true)
    expect(recording.of('input')[0]!.attributes['states']).toBe('this kernel has no perf_event_open')
    const counters = await record(path, args, true, { GGML2PERFETTO_COUNTERS: 'instructions' })
    expect(counters.recording.of('operator').length).toBe(recording.of('operator').length)
    const tokens = await record(path, args, true, { GGML2PERFETTO_LEVEL: 'token' })
    expect([tokens.recording.of('token').length, tokens.recording.of('graph').length]).toEqual([4, 0])
    // There, a scheduler's calls of the function that computes a split are bound inside ggml-base.
    const synced = await record(path, args, true, { GGML2PERFETTO_LEVEL: 'graph', GGML2PERFETTO_SYNC: '1' })
    expect(nodesOf(synced.recording)).toEqual(nodesOf((await record(path, args, false)).recording))
    const ring = await record(path, [...args, '--decode', '40'], true, { GGML2PERFETTO_RING: '1M' })
    expect(ring.recording.of('token').length).toBe(41)
  })

  const canMount = spawnSync('unshare', ['-m', 'true']).status === 0 ? test : test.skip
  canMount('a processor without a name is called by its numbers (needs root, to mount a file)', async () => {
    const cpuinfo = join(folder, 'cpuinfo')
    const features = 'Features\t: fp asimd evtstrm aes crc32 atomics'
    const numbers =
      'CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1'
    writeFileSync(cpuinfo, `processor\t: 0\nBogoMIPS\t: 50.00\n${features}\n${numbers}\n\n`)
    // Not before these programs, which are not for arm64.
    const script = `mount --bind ${cpuinfo} /proc/cpuinfo && export LD_PRELOAD=${ARM64_RECORDER} && exec "$@"`
    const { path } = await model(NANO)
    const log = newLog()
    const options = {
      arm64: true,
      before: ['unshare', '-m', 'sh', '-c', script, 'sh'],
      env: { GGML2PERFETTO_OUT: log },
    }
    const { code, stderr } = await run(path, ['--prompt', '2', '--decode', '1'], options)
    expect([code, stderr]).toEqual([0, ''])
    const { of } = await readLog(log)
    expect(of('input')[0]!.attributes['cpu']).toBe('CPU implementer 0x41, part 0xd0c')
  })

  test('the measuring program of peaks runs', () => {
    const peaks = join(folder, 'peaks')
    const make = ['-s', '-C', NATIVE, `BUILD=${folder}`, 'CC=aarch64-linux-gnu-gcc', 'CFLAGS=-O2 -static', peaks]
    execFileSync('make', make)
    expect(JSON.parse(execFileSync('qemu-aarch64-static', [peaks], { encoding: 'utf8' }))).toMatchObject({
      fp32_flops: { instruction_set: 'NEON', one: expect.any(Number) },
      int8_ops: { instruction_set: 'NEON dotprod' },
    })
  })

  test.each(['backend', 'plan', 'sched', 'named'])('ggml alone, by %s', async (way) => {
    const [first, ...rest] = [...(await aloneOnArm64()), way, '5']
    const log = newLog()
    const start = (env: Record<string, string>) => {
      const { status, stdout } = spawnSync(first!, rest, { env: { ...process.env, ...env }, encoding: 'utf8' })
      return { status, stdout }
    }
    const plain = start({})
    expect(plain).toMatchObject({ status: 0, stdout: expect.stringMatching(/ 20\n$/) })
    expect(start({ LD_PRELOAD: ARM64_RECORDER, GGML2PERFETTO_OUT: log })).toEqual(plain)
    const { of, tensor, text, issues } = await readLog(log)
    expect(issues).toEqual([])
    expect(of('graph').map(({ nodes, status }) => [nodes, status])).toEqual(Array(5).fill([4, 0]))
    const ops = of('operator').flatMap(({ worker, tensor: id }) => (worker === 0 ? [text(tensor(id).op)] : []))
    expect(ops).toEqual(Array(5).fill(['GET_ROWS', 'MUL_MAT', 'SWIGLU', 'GELU']).flat())
  })
})
