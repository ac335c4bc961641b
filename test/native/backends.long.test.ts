import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import type { Model, Preset } from '../llama/gguf.mjs'
import { ensureLlama, hasLlama, LIB, model, run, runNode, runner, vulkanEnvironment } from '../llama/testbed.ts'
import { canBpftrace } from '../machine.ts'
import { buildRecorder, RECORDER, readLog } from './recording.ts'

/** The recorder in front of real llama.cpp with two backends: the CPU's, and Vulkan's, which has no operator hook. */
const folder = mkdtempSync(join(tmpdir(), 'ggml2perfetto-backends-'))
const vulkan = hasLlama() && vulkanEnvironment ? describe : describe.skip
const observed = hasLlama() && vulkanEnvironment && canBpftrace() ? test : test.skip

const CALLS = [3, 1, 1] // tokens of each: a prompt, and what is decoded after it
const COMMON = ['--threadpool', '--prompt', '3', '--decode', '2', '--no-repack']
const KV_CELLS = 256 // llama.cpp makes no fewer

/** Where a model's layers lie and compute. */
interface Placement {
  readonly title: string
  readonly preset: Preset
  readonly layers: number
  /** Of the CPU. Several of them wait long for each other on a busy machine. */
  readonly workers: number
  readonly env: Readonly<Record<string, string>>
  /** Backends of the splits of a call, in order. */
  readonly splits: readonly string[]
}

const WHOLE: Placement = {
  title: 'a dense model on Vulkan',
  preset: 'tinyDense',
  layers: 99,
  workers: 1,
  env: {},
  splits: ['CPU', 'Vulkan0'],
}
const PARTLY: Placement = { ...WHOLE, title: 'the last layer of a dense model on Vulkan', layers: 2, workers: 2 }
/** Experts and output do not fit the device: each layer goes there and back. */
const TO_AND_FRO: Placement = {
  title: 'a MoE model on Vulkan, its experts on the CPU',
  preset: 'tinyMoe',
  layers: 99,
  workers: 2,
  env: { GGML_VK_FORCE_MAX_BUFFER_SIZE: '1600000', GGML_VK_SUBALLOCATION_BLOCK_SIZE: '1600000' },
  splits: ['CPU', ...Array<string[]>(6).fill(['Vulkan0', 'CPU']).flat(), 'Vulkan0', 'CPU'],
}
const PLACEMENTS = [WHOLE, PARTLY, TO_AND_FRO]

const argsOf = ({ layers, workers }: Placement) => [...COMMON, '--gpu-layers', `${layers}`, '--threads', `${workers}`]
const isOnVulkan = ({ layers, env }: Placement, name: string) => {
  if (name === 'token_embd.weight') return false // only looked up
  if (env === TO_AND_FRO.env) return !/_exps|^output\.weight/.test(name)
  return layers === 99 || !/^blk\.[0-6]\./.test(name)
}

let logs = 0

/** Runs the model untraced and recorded, to the same result, and reads the log. */
async function compare(placement: Placement, env: Readonly<Record<string, string>> = {}) {
  const { path } = await model(placement.preset)
  const around = { ...vulkanEnvironment, ...placement.env, ...env }
  const plain = await run(path, [...argsOf(placement), '--verbose'], { env: around })
  const log = join(folder, `${logs++}.ggtrace`)
  const result = await run(path, argsOf(placement), { preload: RECORDER, env: { ...around, GGML2PERFETTO_OUT: log } })
  expect([result.stderr, result.code, plain.code]).toEqual(['', 0, 0])
  expect(result.result!.hash).toBe(plain.result!.hash)
  expect(result.result!.tokens).toEqual(plain.result!.tokens)
  return { ...(await read(log)), llamaLog: plain.stderr }
}

async function read(log: string) {
  const { of, tensors, text, issues } = await readLog(log)
  expect(issues).toEqual([])
  /** Of a call, in words. */
  const copies = (call: number) => {
    const { startNs, endNs } = of('token').find((token) => token.call === call)!
    return of('copy')
      .filter((copy) => copy.startNs >= startNs && copy.endNs <= endNs)
      .map(({ what, bytes, from, to, tensor }) =>
        shownCopy(what, bytes, text(from), text(to), text(tensors[tensor]!.name)),
      )
  }
  return { log, of, tensors, text, copies }
}

const shownCopy = (what: string, bytes: number, from: string, to: string, tensor: string) =>
  `${what} ${tensor}, ${bytes} bytes ${from}->${to}`

const compared = new Map<Placement, ReturnType<typeof compare>>()

/** The run of a placement that several tests look at. */
function recorded(placement: Placement) {
  if (!compared.has(placement)) compared.set(placement, compare(placement))
  return compared.get(placement)!
}

const nodes = new Map<Preset, string[][]>()

/** Op and name of each node that is computed, per call, with all of them on the CPU and one by one. */
async function nodesOf(preset: Preset): Promise<string[][]> {
  const known = nodes.get(preset)
  if (known) return known
  const { path } = await model(preset)
  const log = join(folder, `${logs++}.ggtrace`)
  const env = { GGML2PERFETTO_OUT: log, GGML2PERFETTO_LEVEL: 'graph', GGML2PERFETTO_SYNC: '1' }
  await run(path, COMMON, { preload: RECORDER, env })
  const cpu = await read(log)
  const found = CALLS.map((_, call) => operatorsOf(cpu, call))
  nodes.set(preset, found)
  return found
}

const operatorsOf = ({ of, tensors, text }: Awaited<ReturnType<typeof read>>, call: number) =>
  of('operator')
    .filter((operator) => operator.worker === 0 && operator.call === call)
    .map(({ tensor }) => `${text(tensors[tensor]!.op)} ${text(tensors[tensor]!.name)}`)
    .sort() // a backend may compute them in another order

/**
 * What a call has to copy, from the model's shape alone. Not in it, as no exported function tells of them: results of the
 * CPU that Vulkan itself takes over.
 */
function copiesOf({ env }: Placement, { spec }: Model, tokens: number): string[] {
  const { width, layers, vocabulary, experts = 0, expertsUsed = 0 } = spec
  const inputs = {
    inp_pos: 4 * tokens,
    attn_inp_k_idxs: 8 * tokens,
    attn_inp_v_idxs: 8 * tokens,
    attn_inp_kq_mask: 2 * KV_CELLS * tokens,
    out_ids: 4,
  }
  const there = (name: string, bytes: number) => shownCopy('copy', bytes, 'Vulkan_Host', 'Vulkan0', `Vulkan0#${name}#0`)
  const back = (name: string, bytes: number) => shownCopy('copy', bytes, 'Vulkan0', 'Vulkan_Host', `CPU#${name}#0`)
  const copies = [
    shownCopy('set', 4 * tokens, '', 'Vulkan_Host', 'inp_tokens'),
    shownCopy('set', 4 * tokens, '', 'Vulkan_Host', 'inp_pos'),
    ...Object.entries(inputs).map(([name, bytes]) => there(name, bytes)),
  ]
  const isHalf = env === TO_AND_FRO.env
  copies.push(shownCopy('get', 4 * vocabulary, isHalf ? 'Vulkan_Host' : 'Vulkan0', '', 'result_output'))
  if (!isHalf) return copies.sort()
  copies.push(back('result_norm', 4 * width))
  for (let layer = 0; layer < layers; layer++) {
    const rows = layer === layers - 1 ? 1 : tokens // the last layer computes outputs only
    copies.push(back(`ffn_norm-${layer} (reshaped)`, 4 * width * rows))
    // The first of all experts, which are sorted: rows lie further apart than they are long.
    copies.push(back(`ffn_moe_topk-${layer}`, 4 * (experts * (rows - 1) + expertsUsed)))
  }
  return copies.sort()
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

vulkan('the recorder with a second backend: Vulkan, on the CPU (needs linux-x64, cc and mesa-vulkan-drivers)', () => {
  beforeAll(async () => {
    await ensureLlama({ vulkan: true })
    buildRecorder()
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  describe.each(PLACEMENTS)('$title', (placement) => {
    test('gives the same logits; each split has its backend, and together they have the model’s nodes', async () => {
      const { of, text, llamaLog } = await recorded(placement)
      expect(llamaLog).toMatch(new RegExp(`graph: nodes = \\d+, splits = ${placement.splits.length}[, ]`))
      for (const [call, { length }] of (await nodesOf(placement.preset)).entries()) {
        const graphs = of('graph').filter((graph) => graph.call === call)
        expect(graphs.map(({ backend, status }) => [text(backend), status])).toEqual(
          placement.splits.map((backend) => [backend, 0]),
        )
        expect(sum(graphs.map(({ nodes }) => nodes))).toBe(length)
      }
      expect(of('graph').length).toBe(placement.splits.length * CALLS.length)
    })

    test('has operators in the splits of the CPU, per worker, and in no others', async () => {
      const { of, tensors, text } = await recorded(placement)
      const operators = of('operator')
      let inside = 0
      for (const { startNs, endNs, nodes, backend } of of('graph')) {
        const within = operators.filter((operator) => operator.startNs >= startNs && operator.startNs <= endNs)
        const computed = Array.from({ length: placement.workers }, (_, worker) =>
          sum(within.filter((o) => o.worker === worker).map(({ fusedTo }) => (fusedTo === undefined ? 1 : 2))),
        )
        // A split that only looks tokens up is for one worker alone.
        const isLookup = within.every(({ tensor }) => text(tensors[tensor]!.op) === 'GET_ROWS')
        const wanted = (worker: number) => (text(backend) === 'CPU' && (worker === 0 || !isLookup) ? nodes : 0)
        expect(computed).toEqual(computed.map((_, worker) => wanted(worker)))
        inside += within.length
      }
      expect(inside).toBe(operators.length)
      expect(new Set(operators.map(({ worker }) => worker)).size).toBe(placement.workers)
      expect(inside).toBeGreaterThan(0)
    })

    test('has each copy once, with bytes and buffers, in log and trace', async () => {
      const { log, of, copies } = await recorded(placement)
      const file = await model(placement.preset)
      const wanted = CALLS.map((tokens) => copiesOf(placement, file, tokens))
      for (const [call, list] of wanted.entries()) expect(copies(call).sort()).toEqual(list)
      expect(of('copy').length).toBe(wanted.flat().length)
      const trace = await openTrace(convert(inputOf(log)))
      expect(trace.problems()).toEqual([])
      const args = ['bytes', 'from', 'to', 'tensor'].map((key) => `extract_arg(arg_set_id, 'debug.${key}')`)
      const { rows } = trace.query(`select name, ${args.join()} from slice where category = 'copy'`)
      const shown = rows.map(([name, bytes, from, to, tensor]) => {
        return shownCopy(`${name}`.split(' ')[0]!, Number(bytes), `${from ?? ''}`, `${to ?? ''}`, `${tensor}`)
      })
      expect(shown.sort()).toEqual(wanted.flat().sort())
      trace.close()
    })

    test('has the buffers of Vulkan, by name, usage and size', async () => {
      const { of, llamaLog } = await recorded(placement)
      const { tensors, spec } = await model(placement.preset)
      const bytes = (usage: string) =>
        of('buffer').flatMap((buffer) => {
          const size = /^Vulkan0 of Vulkan0, (\d+) bytes at 0x/.exec(buffer.label)?.[1]
          return size && buffer.usage === usage ? [Number(size)] : []
        })
      const weights = tensors.filter(({ name }) => isOnVulkan(placement, name)).map(({ size }) => size)
      expect(sum(bytes('weights'))).toBe(sum(weights))
      const layers = Math.min(placement.layers - 1, spec.layers)
      expect(bytes('kv-cache')).toEqual([2 * 2 * KV_CELLS * (spec.width / spec.heads) * spec.kvHeads * layers])
      const [compute] = bytes('compute')
      expect(llamaLog).toContain(`Vulkan0 compute buffer size is   ${(compute! / 2 ** 20).toFixed(4)} MiB`)
      expect(of('buffer').filter(({ label }) => /^Vulkan_Host of Vulkan_Host, \d+ bytes/.test(label))).toHaveLength(1)
    })

    observed('an observer counts the same splits, copies and bytes (needs root and bpftrace)', async () => {
      const { of } = await recorded(placement)
      const count = (what: string) => of('copy').filter((copy) => copy.what === what)
      const bytes = (what: string) => sum(count(what).map((copy) => copy.bytes))
      expect(await observe(placement)).toMatchObject({
        graph: of('graph').length,
        get: count('get').length,
        get_bytes: bytes('get'),
        set: count('set').length,
        set_bytes: bytes('set'),
        copy: count('copy').length,
        copy_bytes: bytes('copy'),
      })
    })
  })

  test('weights that the scheduler sends to Vulkan for a batch: whole, or the experts that were chosen', async () => {
    const placement: Placement = { ...PARTLY, preset: 'tinyMoe', workers: 1, env: { GGML_OP_OFFLOAD_MIN_BATCH: '3' } }
    const { copies } = await compare(placement)
    const { path, spec, tensors } = await model('tinyMoe')
    const { topk } = await run(path, [...COMMON, '--topk'])
    const wanted: string[] = []
    for (const { name, size } of tensors) {
      const [, layer] = /^blk\.([0-4])\./.exec(name) ?? []
      if (layer === undefined) continue // the last layer is there already
      const sent = (what: string, bytes: number, from: string) =>
        wanted.push(shownCopy(what, bytes, from, 'Vulkan0', `Vulkan0#${name}#0`))
      if (!name.includes('_exps')) sent('copy', size, 'CPU_Mapped')
      else {
        const { ids } = topk.find((choice) => choice.call === 0 && choice.layer === Number(layer))!
        for (const bytes of expertsBytes(ids.flat(), spec.experts!, size)) sent('set', bytes, '')
      }
    }
    expect(
      copies(0)
        .filter((copy) => copy.includes('#blk.'))
        .sort(),
    ).toEqual(wanted.sort())
    expect(copies(1).filter((copy) => copy.includes('#blk.'))).toEqual([])
  })

  test('a Node program, whose libraries only each other see: the same splits and copies', async () => {
    const { path } = await model(TO_AND_FRO.preset)
    const log = join(folder, 'node.ggtrace')
    const args = ['--prompt', '3', '--decode', '2', '--gpu-layers', '99']
    const env = { ...vulkanEnvironment, ...TO_AND_FRO.env }
    const plain = await runNode(path, args, { env })
    const result = await runNode(path, args, { preload: RECORDER, env: { ...env, GGML2PERFETTO_OUT: log } })
    expect([result.stderr, result.code, result.signal]).toEqual(['', 0, null])
    expect(result.result!.tokens).toEqual(plain.result!.tokens)
    const { of, text, copies } = await read(log)
    const graphs = [...of('graph')].sort((a, b) => a.startNs - b.startNs) // Node's threads take turns, a block each
    expect(graphs.map(({ backend }) => text(backend))).toEqual(CALLS.flatMap(() => TO_AND_FRO.splits))
    const file = await model(TO_AND_FRO.preset)
    for (const [call, tokens] of CALLS.entries())
      expect(copies(call).sort()).toEqual(copiesOf(TO_AND_FRO, file, tokens))
  })

  test('if asked for, nodes of both backends one by one, marked as such, in log and trace', async () => {
    // Nodes that Vulkan would compute in one go give other last bits one by one: compared with a run that does neither.
    const env = { GGML2PERFETTO_SYNC: '1', GGML_VK_DISABLE_FUSION: '1' }
    const synced = await compare({ ...TO_AND_FRO, workers: 1 }, env)
    const { log, of, text } = synced
    for (const [call, computed] of (await nodesOf('tinyMoe')).entries())
      expect(operatorsOf(synced, call)).toEqual(computed)
    expect(of('input')[0]!.attributes['note']).toMatch(/computed and timed one by one/)
    // Until the backend is done: what the device computed by its own clock lies within one node.
    const error = Number(
      of('facts').find(({ attributes }) => 'gpu_clock_error_ns' in attributes)!.attributes['gpu_clock_error_ns'],
    )
    const works = of('gpu').filter(({ node }) => node)
    expect(works.length).toBeGreaterThan(0)
    const nodes = of('operator').map(({ startNs, endNs }) => [startNs - error, endNs + error] as const)
    for (const { startNs, endNs } of works)
      expect(nodes.some(([from, to]) => from <= startNs && endNs <= to) || [startNs, endNs]).toBe(true)
    const trace = await openTrace(convert(inputOf(log), { detail: 'full' }))
    expect(trace.problems()).toEqual([])
    const count = (sql: string) => trace.query(`select count(*) from ${sql}`).rows[0]![0]
    expect(count("metadata where str_value like '%timed one by one%'")).toBe(1)
    const shown = (backend: string) =>
      count(`slice o join track t on o.track_id = t.id join slice g on o.ts between g.ts and g.ts + g.dur where
        o.category = 'operator' and t.name = 'worker 0' and g.category = 'graph' and g.name = '${backend} graph'`)
    const computed = (backend: string) =>
      sum(of('graph').map((graph) => (text(graph.backend) === backend ? graph.nodes : 0)))
    for (const backend of ['Vulkan0', 'CPU']) expect(shown(backend)).toBe(computed(backend))
    expect(count("slice where category = 'operator'")).toBe(computed('Vulkan0') + computed('CPU'))
    expect(computed('Vulkan0')).toBeGreaterThan(computed('CPU'))
    const cache = of('buffer').find((buffer) => buffer.usage === 'kv-cache')!
    expect(count(`args where key = 'description' and display_value like '%(${cache.label})%'`)).toBe(1)
    trace.close()
  })
})

/** What the scheduler sends of a weight with experts: runs of the chosen ones, and 512 bytes of what follows. */
function expertsBytes(chosen: readonly number[], experts: number, size: number): number[] {
  const runs: number[] = []
  for (let first = 0; first < experts; first++) {
    if (!chosen.includes(first)) continue
    let next = first + 1
    while (chosen.includes(next)) next++
    runs.push(((next - first) * size) / experts + (next < experts ? 512 : 0))
    first = next
  }
  return runs
}

/** Counts splits and copies of an untraced run, by uprobes: copies call one another, and the outermost is the copy. */
async function observe(placement: Placement): Promise<Record<string, number>> {
  const { path } = await model(placement.preset)
  const base = `${join(LIB, 'libggml-base.so')}:ggml_backend_`
  const llama = `${join(LIB, 'libllama.so')}:llama_decode`
  const program = join(folder, `observed${process.pid}`) // by its name: others run the same libraries
  await symlink(await runner(), program).catch(() => {})
  const leaf = (name: string) => `uprobe:${base}tensor_${name} /@in[tid]/ {
    if (@outer[tid] == 0) { @${name} = count(); @${name}_bytes = sum(arg3); }
    if (@outer[tid] == 1) { @copy_bytes = sum(arg3); }
  }`
  const outer = (name: string, level: number, counted: string) => `
    uprobe:${base}tensor_${name} /@in[tid]/ { @outer[tid] = ${level}; ${counted} }
    uretprobe:${base}tensor_${name} { @outer[tid] = 0; }`
  const probes = [
    `uprobe:${llama} /comm == "observed${process.pid}"/ { @in[tid] = 1; } uretprobe:${llama} { @in[tid] = 0; }`,
    `uprobe:${base}graph_compute_async /@in[tid]/ { @graph = count(); }`,
    leaf('get'),
    leaf('set'),
    outer('copy', 1, '@copy = count();'),
    outer('get_async', 2, '@get = count(); @get_bytes = sum(arg4);'),
    outer('set_async', 2, '@set = count(); @set_bytes = sum(arg4);'),
    'END { clear(@in); clear(@outer); }',
  ]
  const command = [program, '--lib', LIB, '--model', path, ...argsOf({ ...placement, workers: 1 })].join(' ')
  const output = join(folder, 'bpftrace.json')
  const env = { ...process.env, ...vulkanEnvironment, ...placement.env }
  const args = ['-f', 'json', '-o', output, '-e', probes.join('\n'), '-c', command]
  execFileSync('bpftrace', args, { stdio: 'ignore', env })
  const counts: Record<string, number> = { get: 0, get_bytes: 0 }
  for (const line of readFileSync(output, 'utf8').trim().split('\n')) {
    const { type, data } = JSON.parse(line) as { type: string; data: Record<string, number> }
    for (const [key, value] of Object.entries(type === 'map' ? data : {})) counts[key.slice(1)] = value
  }
  return counts
}
