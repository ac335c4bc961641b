import { copied } from '../bytes/joined.ts'
import { checkNames, UsageError } from '../errors.ts'
import { GGTRACE_WRITER_OPTIONS } from '../generated/option-names.ts'
import { numberOf } from './fields.ts'
import { BlockWriter, encodeText, type OpenBlock, textBytes } from './ggtrace-blocks.ts'
import {
  BLOCK_BYTES_MAX,
  BlockKind,
  BUFFER_USAGES,
  COUNTER_UNITS,
  GPU_APIS,
  GRAPH_NODES_MAX,
  HEADER_BYTES,
  OP_PARAMETERS,
  PAGE_MOMENTS,
  PageBits,
  QUESTIONS_OF_SCHEDULER,
  RECORD_BYTES,
  REFUSED_TENSOR_BYTES,
  RecordType,
} from './ggtrace-layout.ts'
import { type GgtraceGpuQueue, GgtraceThread } from './ggtrace-thread.ts'

/** Options of a log. */
export interface GgtraceOptions {
  /** Origin of all times passed to the writer, in nanoseconds of CLOCK_MONOTONIC. */
  readonly originNs: bigint
  /** Size of a block; 64 KiB by default, at most 1 MiB. */
  readonly blockBytes?: number
}

/** A backend buffer. */
export interface GgtraceBuffer {
  readonly name: string
  readonly backend?: string
  readonly usage?: (typeof BUFFER_USAGES)[number]
  readonly base: number
  readonly sizeBytes: number
  /** When it was allocated. */
  readonly atNs?: number
}

/** A part of a model file that is mapped, or was copied into a buffer. */
export interface GgtraceMapping {
  readonly file: string
  /** The buffer that it was copied into. */
  readonly buffer?: number
  readonly address: number
  readonly sizeBytes: number
  readonly fileOffset: number
}

/** A tensor: ids are those that the writer returned for other tensors and buffers; ops and types are ggml's numbers. */
export interface GgtraceTensor {
  readonly name: string
  readonly op?: number
  readonly type?: number
  readonly flags?: number
  readonly ne?: readonly number[]
  readonly nb?: readonly number[]
  readonly address?: number
  readonly sizeBytes?: number
  readonly buffer?: number
  readonly sources?: readonly number[]
  readonly viewSource?: number
  readonly viewOffset?: number
}

/** What a device refused: a node and its sources, or a type of memory (`op`). */
export interface GgtraceRefusal {
  readonly question: (typeof QUESTIONS_OF_SCHEDULER)[number]
  readonly device: string
  readonly op: string
  readonly tensors: readonly {
    readonly name?: string
    readonly type: string
    readonly ne: readonly number[]
    readonly nb?: readonly number[]
  }[]
  /** Number of the op, and its parameters, up to 16. */
  readonly opNumber?: number
  readonly parameters?: readonly number[]
}

/** Nodes of the pages of a buffer, each `stride`-th of them from an address on: runs of a number of pages, and their node (-1: not present, -2: not known). */
export interface GgtracePages {
  readonly buffer: number
  readonly moment: (typeof PAGE_MOMENTS)[number]
  readonly atNs: number
  readonly address: number
  readonly pageBytes?: number
  readonly stride?: number
  readonly policy?: string
  readonly kernelPageBytes?: number
  readonly runs: readonly (readonly [pages: number, node: number])[]
}

/** An answer to the question whether a device computes an op with a weight in memory of a type. */
export interface GgtraceWeightMemory {
  readonly answer: boolean
  readonly device: string
  readonly memory: string
  readonly op: string
  readonly opNumber: number
  readonly tensor: string
  readonly type: string
  readonly ne: readonly number[]
}

/** The same instant on three clocks, in nanoseconds. */
export interface GgtraceClocks {
  readonly monotonic: bigint
  readonly boottime: bigint
  readonly realtime: bigint
}

const BLOCK_BYTES = 1 << 16

/**
 * Writes a `.ggtrace` log (docs/reference/ggtrace-format.md) from JavaScript: for instrumented programs, tools and tests. Use one
 * `GgtraceWriter` per log, and one {@link GgtraceThread} per thread. Bytes accumulate until {@link take} is called.
 */
export class GgtraceWriter {
  private readonly pieces: Uint8Array[] = []
  private readonly threads: { readonly thread: GgtraceThread; readonly blocks: BlockWriter }[] = []
  private readonly definitions: BlockWriter
  private readonly runs: BlockWriter
  private readonly names = new Map<string, number>()
  private readonly ops = new Set<number>([0])
  private readonly types = new Set<number>()
  private writers = 0
  private defined = 0
  private buffers = 0
  private tensors = 0
  private graphs = 0
  private counters = 0
  private domains = 0
  private queues = 0

  constructor(private readonly options: GgtraceOptions) {
    checkNames('GgtraceWriter', options, GGTRACE_WRITER_OPTIONS)
    const size = options.blockBytes ?? BLOCK_BYTES
    if (size % 8 !== 0 || size <= HEADER_BYTES || size > BLOCK_BYTES_MAX) {
      throw new UsageError(
        `blockBytes: expected a multiple of 8, above ${HEADER_BYTES}, at most ${BLOCK_BYTES_MAX}, found ${size}`,
      )
    }
    this.runs = this.blocks(BlockKind.Run, 0, -1)
    this.definitions = this.blocks(BlockKind.Definitions, 0, -1)
  }

  /** Writes a run block: facts, and optionally the clocks at one instant, in nanoseconds. */
  run(facts: Readonly<Record<string, string>>, clocks?: GgtraceClocks): void {
    for (const [key, value] of Object.entries(facts)) {
      const [keyBytes, valueBytes] = [encodeText(key), encodeText(value)]
      const size = 4 + textBytes(keyBytes) + textBytes(valueBytes)
      this.runs.reserve(size)
      this.runs.record(RecordType.Fact, size).text(keyBytes).text(valueBytes)
    }
    if (clocks) {
      this.runs.reserve(28)
      const record = this.runs.record(RecordType.Clocks, 28)
      record.u64(clocks.monotonic).u64(clocks.boottime).u64(clocks.realtime)
    }
    this.runs.finish()
  }

  /** Ends the log: seals all blocks and writes the last one. */
  end(atNs: number): void {
    this.seal()
    let [written, dropped] = [0, 0]
    for (const { thread, blocks } of this.threads) {
      written += thread.records
      dropped += blocks.dropped
    }
    this.runs.reserve(28, atNs)
    this.runs.record(RecordType.End, 28).u64(this.absolute(atNs)).u64(written).u64(dropped)
    this.runs.finish()
  }

  /** The id of a text, which is written if it is new; 0 for the empty text. */
  name(text: string): number {
    if (text === '') return 0
    const known = this.names.get(text)
    if (known !== undefined) return known
    const id = this.names.size + 1
    this.names.set(text, id)
    const bytes = encodeText(text)
    this.define(RecordType.Name, 8 + textBytes(bytes))
      .u32(id)
      .text(bytes)
    return id
  }

  /** Sets ggml's name of an op. */
  op(number: number, name: string): void {
    const id = this.name(name)
    this.ops.add(number)
    this.define(RecordType.Op, 12).u32(number).u32(id)
  }

  /** Sets ggml's name of an element type. */
  type(number: number, name: string): void {
    const id = this.name(name)
    this.types.add(number)
    this.define(RecordType.Type, 12).u32(number).u32(id)
  }

  /** Defines a buffer; returns its id. */
  buffer({ name, backend = '', usage = 'any', base, sizeBytes, atNs }: GgtraceBuffer): number {
    const usageNumber = numberOf(BUFFER_USAGES, usage, 'usage')
    const [nameId, backendId] = [this.name(name), this.name(backend)]
    const record = this.define(RecordType.Buffer, 44).u32s(++this.buffers, nameId, backendId, usageNumber)
    record
      .u64(base)
      .u64(sizeBytes)
      .u64(atNs === undefined ? 0 : this.absolute(atNs))
    return this.buffers
  }

  /** Defines which part of a model file is at which addresses. */
  mapping({ file, buffer = 0, address, sizeBytes, fileOffset }: GgtraceMapping): void {
    const id = this.name(file)
    this.define(RecordType.Mapping, 36).u32(id).u32(buffer).u64(address).u64(sizeBytes).u64(fileOffset)
  }

  /** Defines a tensor; returns its id. Its op and its type must be defined. */
  tensor(tensor: GgtraceTensor): number {
    const { op = 0, type = 0, flags = 0, ne = [], nb = [], sources = [] } = tensor
    if (!this.types.has(type)) throw undefinedNumber('type', type)
    if (!this.ops.has(op)) throw undefinedNumber('op', op)
    const name = this.name(tensor.name)
    const record = this.define(RecordType.Tensor, 116 + 4 * sources.length).u32s(++this.tensors, name)
    record.u16(op).u16(type).u16(flags).u16(sources.length)
    for (let i = 0; i < 4; i++) record.u64(ne[i] ?? 1)
    for (let i = 0; i < 4; i++) record.u64(nb[i] ?? 0)
    record.u64(tensor.address ?? 0).u64(tensor.sizeBytes ?? 0)
    record.u32s(tensor.buffer ?? 0, tensor.viewSource ?? 0).u64(tensor.viewOffset ?? 0)
    for (const source of sources) record.u32(source)
    return this.tensors
  }

  /** Defines a graph by its nodes, in order; returns its id. */
  graph(backend: string, nodes: readonly number[]): number {
    const name = this.name(backend)
    const id = ++this.graphs
    for (let start = 0; start === 0 || start < nodes.length; start += GRAPH_NODES_MAX) {
      const part = nodes.slice(start, start + GRAPH_NODES_MAX)
      const record = this.define(RecordType.Graph, 16 + 4 * part.length).u32s(id, name, part.length)
      for (const node of part) record.u32(node)
    }
    return id
  }

  /** Defines a counter; returns the index of its value in `counts`. At most 16. */
  counted(name: string, unit: (typeof COUNTER_UNITS)[number] = 'count'): number {
    const unitNumber = numberOf(COUNTER_UNITS, unit, 'unit')
    const id = this.name(name)
    this.define(RecordType.Counted, 16).u32(this.counters).u32(id).u32(unitNumber)
    return this.counters++
  }

  /** Defines an NVTX domain; returns its id. 0 is the default domain, which needs no definition. */
  nvtxDomain(name: string): number {
    const id = this.name(name)
    this.define(RecordType.NvtxDomain, 12).u32s(++this.domains, id)
    return this.domains
  }

  /** Names an NVTX category within a domain. */
  nvtxCategory(domain: number, category: number, name: string): void {
    const id = this.name(name)
    this.define(RecordType.NvtxCategory, 16).u32(domain).u32(category).u32(id)
  }

  /** Records that a device refused a question of a scheduler. */
  refusal({ question, device, op, tensors, opNumber, parameters = [] }: GgtraceRefusal): void {
    const number = numberOf(QUESTIONS_OF_SCHEDULER, question, 'question')
    const [deviceId, opId] = [this.name(device), this.name(op)]
    const own = tensors.map(({ name = '', type, ...tensor }) => ({
      ...tensor,
      ids: [this.name(name), this.name(type)],
    }))
    const tail = opNumber === undefined ? [] : [opNumber, ...padded(parameters)]
    const size = 20 + REFUSED_TENSOR_BYTES * own.length + 4 * tail.length
    const record = this.define(RecordType.Refusal, size)
    record.u32s(number, deviceId, opId, own.length)
    for (const { ids, ne, nb = [] } of own) {
      record.u32s(...ids)
      for (let i = 0; i < 4; i++) record.u64(ne[i] ?? 1)
      for (let i = 0; i < 4; i++) record.u64(nb[i] ?? 0)
    }
    for (const number of tail) record.u32(number)
  }

  /** Records on which NUMA nodes the pages of a buffer are. */
  pages({ buffer, moment, atNs, address, runs, ...of }: GgtracePages): void {
    const { pageBytes = 4096, stride = 1, policy = '', kernelPageBytes = pageBytes } = of
    const [number, policyId] = [numberOf(PAGE_MOMENTS, moment, 'moment'), this.name(policy)]
    const record = this.define(RecordType.Pages, RECORD_BYTES[RecordType.Pages]! + 4 * runs.length)
    record.u32s(buffer, number).u64(this.absolute(atNs)).u64(address)
    record.u32s(pageBytes, stride, policyId, kernelPageBytes / 1024)
    for (const [pages, node] of runs) {
      const bits = node >= 0 ? node : node === -1 ? PageBits.noPage : PageBits.unknown
      record.u32(pages * 2 ** PageBits.node + bits)
    }
  }

  /** Records what a device answered when a program chose the memory of a weight. */
  weightMemory({ answer, device, memory, op, opNumber, tensor, type, ne }: GgtraceWeightMemory): void {
    const [deviceId, memoryId, opId] = [this.name(device), this.name(memory), this.name(op)]
    const [tensorId, typeId] = [this.name(tensor), this.name(type)]
    const record = this.define(RecordType.Weight, RECORD_BYTES[RecordType.Weight]!)
    record.u32s(answer ? 1 : 0, deviceId, memoryId, opId, opNumber, tensorId, typeId)
    for (let i = 0; i < 4; i++) record.u64(ne[i] ?? 1)
  }

  /** Sets the program's name of one of its threads. */
  threadName(tid: number, name: string): void {
    const id = this.name(name)
    this.define(RecordType.Thread, 12).u32(tid).u32(id)
  }

  /** Defines a queue of a GPU; returns its id. */
  gpuQueue(queue: GgtraceGpuQueue): number {
    const { device, name, family = 0, index = 0, flags = 0, bits = 64, api = 'vulkan', periodNs = 1 } = queue
    const id = this.name(name)
    const number = numberOf(GPU_APIS, api, 'api')
    this.define(RecordType.GpuQueue, 44)
      .u32s(++this.queues, device, id, family, index, flags, bits, number)
      .f64(periodNs)
    return this.queues
  }

  /** The part of the log that one thread writes; `worker` is ggml's ith, or -1. */
  thread(tid: number, worker = -1): GgtraceThread {
    const blocks = this.blocks(BlockKind.Events, tid, worker)
    const thread = new GgtraceThread(this.options.originNs, blocks)
    this.threads.push({ thread, blocks })
    return thread
  }

  /** Seals all blocks that have records. */
  seal(): void {
    this.definitions.finish()
    for (const { blocks } of this.threads) blocks.finish()
  }

  /** Returns the blocks sealed since the last call. */
  take(): Uint8Array {
    return copied(this.pieces.splice(0))
  }

  /** What a killed process would leave: the blocks sealed since the last {@link take}, and the open ones. */
  takeKilled(): Uint8Array {
    const open = [this.definitions, ...this.threads.map(({ blocks }) => blocks)].flatMap((blocks) => blocks.unsealed())
    return copied([...this.pieces.splice(0), ...open])
  }

  private define(type: number, size: number): OpenBlock {
    this.definitions.reserve(size, 0, -1, this.defined++)
    return this.definitions.record(type, size)
  }

  private blocks(kind: number, tid: number, worker: number): BlockWriter {
    const { originNs, blockBytes = BLOCK_BYTES } = this.options
    const owner = { kind, writer: this.writers++, tid, worker }
    return new BlockWriter(owner, blockBytes, originNs, (block) => {
      // Definitions come first, so that readers need not hold events back.
      if (kind === BlockKind.Events) this.definitions.finish()
      this.pieces.push(block.sealed(kind === BlockKind.Events ? this.defined : block.needs))
    })
  }

  private absolute(atNs: number): bigint {
    return this.options.originNs + BigInt(atNs)
  }
}

const padded = (parameters: readonly number[]) => Array.from({ length: OP_PARAMETERS }, (_, i) => parameters[i] ?? 0)

const undefinedNumber = (field: 'op' | 'type', number: number) =>
  new UsageError(
    `tensor: expected a defined ${field}, found ${number}\nhint: ${field}(${number}, ggml's name of it) defines it; 0 is the default`,
  )
