import { type GgtraceThread, GgtraceWriter } from '../../lib/core.ts'
import { eventsOf, Names, type TraceEvent } from '../../lib/index.ts'
import { checksum, Header } from '../../lib/log/ggtrace-layout.ts'

/** Logs to read, and ways to take them apart. */

/** All times of these logs count from here. */
export const ORIGIN_NS = 4_000_000_000_123n

const CLOCKS = { monotonic: ORIGIN_NS, boottime: 5_000_000_000_456n, realtime: 1_763_000_000_000_000_789n }
const MAPPED = 0x7f00_0000_0000
const [F32, Q4_0] = [0, 2]
const [RMS_NORM, MUL, MUL_MAT, MUL_MAT_ID, ARGSORT, VIEW] = [25, 7, 29, 30, 68, 36]

/** The names of ops and types, as the running ggml has them. */
function nameNumbers(writer: GgtraceWriter): void {
  writer.type(F32, 'f32')
  writer.type(Q4_0, 'q4_0')
  const ops = { RMS_NORM, MUL, MUL_MAT, MUL_MAT_ID, ARGSORT, VIEW }
  for (const [name, number] of Object.entries(ops)) writer.op(number, name)
}

/** A model of one layer: its tensors and its graph. `allocated`: when the cache and the compute buffer were. */
function model(writer: GgtraceWriter, allocated: readonly number[] = []) {
  const madeAt = (atNs: number | undefined) => (atNs === undefined ? {} : { atNs })
  nameNumbers(writer)
  writer.mapping({ file: '/models/tiny.gguf', address: MAPPED, sizeBytes: 1 << 20, fileOffset: 4096 })
  const weights = writer.buffer({
    name: 'CPU_Mapped',
    backend: 'CPU',
    usage: 'weights',
    base: MAPPED,
    sizeBytes: 1 << 20,
  })
  const cache = writer.buffer({ name: 'CPU', base: MAPPED + (1 << 24), sizeBytes: 1 << 16, ...madeAt(allocated[0]) })
  const compute = writer.buffer({
    name: 'CPU',
    usage: 'compute',
    base: MAPPED + (1 << 25),
    sizeBytes: 1 << 16,
    ...madeAt(allocated[1]),
  })
  const at = (buffer: number, base: number, sizeBytes: number) => ({ buffer, address: MAPPED + base, sizeBytes })
  const result = (offset: number) => ({ type: F32, ne: [64, 1, 1, 1], ...at(compute, (1 << 25) + offset, 256) })
  const shape = { type: Q4_0, ne: [64, 64, 1, 1] }
  const weight = writer.tensor({ name: 'blk.0.attn_q.weight', ...shape, ...at(weights, 8192, 2304) })
  const experts = writer.tensor({ name: 'blk.0.ffn_up_exps.weight', ...shape, ...at(weights, 65536, 18432) })
  const kv = writer.tensor({ name: 'cache_k_l0', type: F32, ne: [64, 32], ...at(cache, (1 << 24) + 1024, 8192) })
  const input = writer.tensor({ name: 'inp_embd', ...result(0) })
  const norm = writer.tensor({ name: 'norm-0', op: RMS_NORM, ...result(256), sources: [input] })
  const scaled = writer.tensor({ name: 'attn_norm-0', op: MUL, ...result(512), sources: [norm, input] })
  const query = writer.tensor({ name: 'Qcur-0', op: MUL_MAT, ...result(768), sources: [weight, scaled] })
  const view = { op: VIEW, flags: 1, viewSource: kv, viewOffset: 512, sources: [kv] }
  const cached = writer.tensor({ name: 'cache_k_l0 (view)', ...view, ...at(cache, (1 << 24) + 1536, 4096) })
  const top = writer.tensor({ name: 'ffn_moe_topk-0', op: ARGSORT, ...result(1024), sources: [query] })
  const up = writer.tensor({ name: 'ffn_moe_up-0', op: MUL_MAT_ID, ...result(1280), sources: [experts, cached, top] })
  const graph = writer.graph('CPU', [norm, scaled, query, cached, top, up])
  return { buffers: { weights, cache, compute }, weight, kv, input, norm, scaled, query, cached, top, up, graph }
}

/** Starts a log as a recorder does. */
export function begun(facts: Record<string, string> = {}, blockBytes = 4096): GgtraceWriter {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS, blockBytes })
  writer.run({ 'format.version': '0', ...facts }, CLOCKS)
  return writer
}

/** Calls of one graph on `workers` threads, after each other. */
export function runCalls(writer: GgtraceWriter, calls: readonly number[], workers: number): void {
  const { norm, scaled, query, top, up, graph } = model(writer)
  const host = writer.thread(700)
  const threads = Array.from({ length: workers }, (_, i) => writer.thread(701 + i, i))
  let now = 1000
  calls.forEach((tokens, call) => {
    const startNs = now
    for (const tensor of [norm, scaled, query, top, up]) {
      const endNs = now + 1000 * tokens
      threads.forEach((thread, i) => {
        thread.call = call
        thread.operator({ tensor, startNs: now + 10 * i, endNs: endNs - 100 * i, waitEndNs: endNs + 50 })
      })
      now = endNs + 100
    }
    host.graph({ startNs, endNs: now, graph, call })
    host.token({
      startNs: startNs - 200,
      endNs: now + 200,
      call,
      tokens,
      spans: [{ sequence: 0, position: call === 0 ? 0 : calls[0]! + call - 1, tokens }],
    })
    now += 1000
  })
}

/** A prompt of five tokens and two decodes on two workers. */
export function tiny(): Uint8Array {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS, blockBytes: 2048 })
  runCalls(writer, [5, 1, 1], 2)
  writer.end(60_000)
  return writer.take()
}

/** The same, killed before the end: what was sealed, and an open block of every thread. */
export function killed(): Uint8Array {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS, blockBytes: 1024 })
  runCalls(writer, [5, 1, 1, 1, 1], 2)
  return writer.takeKilled()
}

/** Without the third block of worker 1, and with zeros and damage between others. */
export function lossy(): Uint8Array {
  const writer = new GgtraceWriter({ originNs: ORIGIN_NS, blockBytes: 256 })
  runCalls(writer, [5, 1, 1, 1, 1, 1, 1], 2)
  writer.end(90_000)
  const blocks = blocksOf(writer.take())
  const lost = blocks.filter((block) => fieldsOf(block).worker === 1)[2]
  const kept = blocks.filter((block) => block !== lost)
  kept.splice(5, 0, new Uint8Array(64))
  kept.splice(9, 0, new Uint8Array(24).fill(0xee))
  return joined(kept)
}

/** What a program says through NVTX. */
function announce(writer: GgtraceWriter, thread: GgtraceThread): void {
  const domain = writer.nvtxDomain('io')
  writer.nvtxCategory(domain, 3, 'reads')
  writer.threadName(700, 'main')
  const message = writer.name('load')
  const event = { domain, message, category: 3, color: 0xff336699 }
  thread.nvtxPush({ atNs: 5_000_004_100, ...event, payload: { type: 'f64', value: 0.5 } })
  thread.nvtxMark({ atNs: 5_000_004_200, ...event, payload: { type: 'u64', value: 2n ** 64n - 1n } })
  thread.nvtxStart(1, { atNs: 5_000_004_300, ...event })
  thread.nvtxPop(5_000_004_400, domain)
  thread.nvtxEnd(5_000_004_500, 1)
  thread.nvtxNamed(5_000_004_600, 'cudaStream', 0x7f00_0000, message)
}

/** Every type of record at least once. */
export function everyRecord(): Uint8Array {
  const writer = begun({ command: '/usr/bin/llama-cli -m /models/tiny.gguf -p "Hi"', pid: '700', note: 'by hand' })
  const { buffers, norm, scaled, query, top, up, graph, kv } = model(writer, [500, 700])
  for (const name of ['minor-faults', 'major-faults']) writer.counted(name)
  writer.counted('bytes-read', 'bytes')
  writer.counted('task-clock', 'ns')
  const host = writer.thread(700)
  const [zero, one] = [writer.thread(700, 0), writer.thread(701, 1)]
  host.token({ startNs: 1000, endNs: 1900, call: -1, tokens: 2, kind: 'warm-up' })
  host.copy({ what: 'set', startNs: 2000, endNs: 2100, bytes: 4096, to: buffers.cache, tensor: kv })
  host.copy({ what: 'copy', startNs: 2200, endNs: 2300, bytes: 64, from: buffers.compute, to: buffers.cache })
  for (const thread of [zero, one]) thread.call = 0
  one.part({ startNs: 2850, endNs: 2890, call: 0, what: 'allocate' }) // so that its first operator does not start its block
  const resources = { minorFaults: 7, majorFaults: 2, bytesRead: 4096, processCpuNs: 5, cpuNs: 3, waitingNs: 1 }
  host.function({ what: 'sample', startNs: 2890, endNs: 2895, output: 0, context: 0x7fff_1234_5678, resources })
  host.sequence({ what: 'remove', atNs: 2896, sequence: 0, from: 4, context: 0x7000 })
  host.task({ what: 'launch', atNs: 2897, task: 3, slot: 0 })
  host.message(2898, 2, 'slot      release: id  0 | task 3 | stop processing: n_tokens = 7, truncated = 0')
  zero.operator({ tensor: norm, fusedTo: scaled, startNs: 3000, endNs: 3400, waitEndNs: 3500 })
  one.operator({ tensor: norm, fusedTo: scaled, startNs: 3010, endNs: 3500 })
  zero.operator({ tensor: query, startNs: 3600, endNs: 4600, waitEndNs: 4700, innerWaitNs: 300 })
  one.operator({ tensor: query, startNs: 3500, endNs: 4700, counts: [3, 1, 4096] })
  zero.experts({ atNs: 4800, tensor: top, call: 0, k: 2, ids: [5, 1, 5, 7, 0, 5] })
  zero.operator({ tensor: up, startNs: 4900, endNs: 5900, waitEndNs: 6000, counts: [0, 0, 0, 800], isScaled: true })
  one.operator({ tensor: up, startNs: 4900, endNs: 5_000_000_000, innerWaitNs: 40, counts: [0, 0, 0, 4_500_000_000] })
  host.graph({ startNs: 2900, endNs: 5_000_000_100, graph, call: 0, status: -1, split: 2 })
  host.token({
    startNs: 2800,
    endNs: 5_000_000_200,
    call: 0,
    tokens: 3,
    context: 0x7fff_1234_5678,
    spans: [
      { sequence: 1, position: 0, tokens: 2 },
      { sequence: 4, position: 17, tokens: 1 },
    ],
  })
  one.call = 1
  one.operator({ tensor: norm, startNs: 5_000_001_000, endNs: 5_000_001_100, innerWaitNs: 30 })
  host.token({
    startNs: 5_000_001_000,
    endNs: 5_000_001_500,
    call: 1,
    tokens: 1,
    kind: 'encode',
    result: -2,
    spans: [{ sequence: 0, position: 3, tokens: 1 }],
  })
  host.state(5_000_001_600, 700, 3, 'running')
  host.state(5_000_001_700, 700, 3, 'runnable')
  host.begin(5_000_002_000, writer.name('sampling'))
  host.end(5_000_003_000)
  host.counter(5_000_003_000, writer.name('context switches'), 12.5)
  host.copy({ what: 'get', startNs: 5_000_003_100, endNs: 5_000_003_200, bytes: 256, from: buffers.compute })
  host.free(5_000_004_000, buffers.compute)
  host.loss(5_000_004_000, 3, writer.name('the disk was full'))
  host.level(5_000_004_000, 'graphs', 10, 1_300_000, 1_000_000)
  announce(writer, host)
  onGpu(writer, host, { query, up, graph })
  host.drop(7)
  writer.seal()
  writer.run({ note: 'written at the end' })
  writer.end(5_000_005_000)
  return writer.take()
}

/** A device refuses a node and the memory of a weight, a worker changes its CPUs, pages are on two nodes, and a client sends a message. */
export function placed(): Uint8Array {
  const writer = begun({ pid: '700' })
  const tensors = [
    { type: 'f32', ne: [64, 1, 4, 1] },
    { name: 'cache_k_l0', type: 'q5_1', ne: [64, 32], nb: [4, 48] },
  ]
  writer.refusal({ question: 'supports-op', device: 'CUDA0', op: 'FLASH_ATTN_EXT', tensors })
  const weight = { tensor: 'blk.0.ffn_up.weight', type: 'q4_0', ne: [64, 30] }
  const question = { device: 'CPU', memory: 'CPU_REPACK', op: 'MUL_MAT', opNumber: MUL_MAT }
  writer.weightMemory({ answer: false, ...question, ...weight })
  const worker = writer.thread(701, 1)
  worker.affinity(1000, 3, 0)
  worker.affinity(2000, 0, 2, writer.name('bind:1'))
  const message = { side: 'client', number: 3, command: 8, requestBytes: 300, answerBytes: 64, call: 0 } as const
  const ends = { client: writer.name('127.0.0.1:40000'), server: writer.name('127.0.0.1:50052') }
  worker.rpc({ ...message, ...ends, startNs: 1000, sentNs: 1100, answeredNs: 1500, endNs: 1600 })
  const buffer = writer.buffer({ name: 'CPU', base: 0x10000, sizeBytes: 0x8000 })
  const runs = [
    [2, 0],
    [5, 1],
    [1, -1],
    [1, -2],
  ] as const
  const pages = { buffer, atNs: 1500, address: 0x10000, policy: 'interleave:0-1', runs }
  for (const moment of ['first', 'last'] as const) writer.pages({ ...pages, moment })
  writer.seal()
  writer.end(3000)
  return writer.take()
}

/** A GPU computes a node and two fused ones, and copies; the second submission is only known as a whole. */
function onGpu(writer: GgtraceWriter, host: GgtraceThread, ids: { query: number; up: number; graph: number }): void {
  const queue = writer.gpuQueue({ device: 0, name: 'llvmpipe (LLVM 15, 256 bits)', flags: 7 })
  const untimed = writer.gpuQueue({ device: 1, name: 'Old GPU', family: 1, index: 2, flags: 4, bits: 0 })
  const at = (ns: number) => 5_000_010_000 + ns
  const kernel = writer.name('mul_mat_f32')
  const of = { submission: 1, queue, call: 2, graph: ids.graph }
  host.gpuPipeline(at(0), at(900), kernel)
  host.gpuSubmission({ startNs: at(1000), endNs: at(1100), id: 1, queue, works: 4, call: 2, graph: ids.graph })
  host.gpuSubmission({ startNs: at(1200), endNs: at(1300), id: 2, queue, buffers: 2, works: 0 })
  host.gpuSubmission({ startNs: at(1400), endNs: at(1500), id: 3, queue: untimed, works: 0 })
  host.gpuWait({ what: 'vkWaitForFences', startNs: at(1600), endNs: at(4000), device: 0, call: 2 })
  host.gpuClock({ atNs: at(4100), ticks: 77n, deviationNs: 20, lateNs: -13, device: 0 })
  host.gpuWork({
    ...of,
    what: 'operator',
    startNs: at(1050),
    endNs: at(2000),
    tensor: ids.query,
    kernel,
    dispatches: 2,
  })
  const fused = { tensor: ids.query, fusedTo: ids.up, kernel, dispatches: 1, part: 1 }
  host.gpuWork({ ...of, what: 'operator', startNs: at(2000), endNs: at(2500), ...fused })
  host.gpuWork({ ...of, what: 'copy', startNs: at(2500), endNs: at(2600), bytes: 4096 })
  host.gpuWork({ ...of, what: 'fill', startNs: at(2600), endNs: at(2650), bytes: 64 })
  host.gpuComplete({ atNs: at(4000), startNs: at(1040), endNs: at(2700), submission: 1, queue })
  host.gpuComplete({ atNs: at(4000), startNs: at(2800), endNs: at(3900), submission: 2, queue })
  host.gpuComplete({ atNs: at(4000), submission: 3, queue: untimed })
}

/** One call on two workers, with hardware counters and reads from the disk. */
export function counted(): Uint8Array {
  const writer = begun({ counters: 'cycles, instructions, cache-misses, major-faults, bytes-read' })
  const { norm, query, up, graph } = model(writer)
  for (const name of ['cycles', 'instructions', 'cache-misses', 'major-faults']) writer.counted(name)
  writer.counted('bytes-read', 'bytes')
  for (const worker of [0, 1]) {
    const thread = writer.thread(701 + worker, worker)
    thread.call = 0
    thread.operator({ tensor: norm, startNs: 100, endNs: 600, waitEndNs: 700, counts: [1500, 3000, 2] })
    thread.operator({ tensor: query, startNs: 700, endNs: 2700, waitEndNs: 2800, counts: [6000, 3000, 90, 1, 4096] })
    thread.operator({ tensor: up, startNs: 2800, endNs: 7800, counts: [9000, 6000, 300, worker, 65536 * worker] })
  }
  const host = writer.thread(700)
  host.graph({ startNs: 100, endNs: 7800, graph, call: 0 })
  host.token({ startNs: 0, endNs: 8000, call: 0, tokens: 1 })
  writer.end(9000)
  return writer.take()
}

/** The logs in test/fixtures/ggtrace. */
export const FIXTURES: Readonly<Record<string, () => Uint8Array>> = {
  'tiny.ggtrace': tiny,
  'killed.ggtrace': killed,
  'lossy.ggtrace': lossy,
}

/** All events of a log, and the texts that they refer to. */
export async function read(bytes: Uint8Array | AsyncIterable<Uint8Array>) {
  const names = new Names()
  const events: TraceEvent[] = []
  for await (const batch of eventsOf({ name: 'log', source: bytes }, names, { from: 'ggtrace' })) events.push(...batch)
  const of = <K extends TraceEvent['kind']>(kind: K) =>
    events.filter((event): event is Extract<TraceEvent, { kind: K }> => event.kind === kind)
  const issues = of('issue').map(({ title, detail }) => `${title}: ${detail}`)
  return { names, events, of, issues }
}

/** A log's sealed blocks. */
export function blocksOf(log: Uint8Array): Uint8Array[] {
  const blocks: Uint8Array[] = []
  for (let at = 0; at < log.length; ) {
    const size = fieldsOf(log.subarray(at)).size
    blocks.push(log.slice(at, at + size))
    at += size
  }
  return blocks
}

/** What a block's header says. */
export function fieldsOf(block: Uint8Array) {
  const view = viewOf(block)
  return {
    size: view.getUint32(Header.size, true),
    kind: view.getUint16(Header.kind, true),
    writer: view.getUint16(Header.writer, true),
    sequence: view.getUint32(Header.sequence, true),
    worker: view.getUint32(Header.worker, true),
  }
}

/** A view on all of some bytes. */
export const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** A block with something changed in it, and the checksum that belongs to that. */
export function altered(block: Uint8Array, alter: (view: DataView) => void): Uint8Array {
  const copy = block.slice()
  const view = viewOf(copy)
  alter(view)
  view.setUint32(Header.checksum, checksum(view, 0, copy.length), true)
  return copy
}

/** Pieces as one array. */
export const joined = (pieces: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(pieces))
