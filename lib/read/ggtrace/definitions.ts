import {
  BUFFER_USAGES,
  COUNTER_UNITS,
  COUNTERS_MAX,
  RecordType,
  TENSOR_NOT_COMPUTED,
} from '../../log/ggtrace-layout.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { BufferUsage, TensorEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import { parseTensorName } from '../../model/tensors.ts'
import { UNKNOWN } from '../../model/unknown.ts'
import type { EventBatch } from '../common/batches.ts'
import type { Report } from './blocks.ts'
import { type LogClock, readAddress, readText, readU64 } from './fields.ts'
import { GpuRecords } from './gpu.ts'
import { NvtxNames } from './nvtx.ts'
import { readPages } from './pages.ts'
import { readRefusal, readWeightMemory } from './refusals.ts'

/** A graph that a GRAPH record defines. */
export interface LogGraph {
  /** Of its {@link GraphNodesEvent}. */
  readonly id: number
  readonly backend: number
  /** Number of nodes that are computed. */
  nodes: number
}

interface LogBuffer {
  readonly name: number
  readonly backend: number
  readonly usage: number
  readonly base: number
  readonly sizeBytes: number
  isCache: boolean
  /** Its allocation was added. */
  isLive: boolean
  /** Id of its {@link BufferEvent}; -1 until that was added. */
  id: number
}

interface Mapping {
  readonly file: number
  /** Id of the buffer it applies to; 0 for any. */
  readonly buffer: number
  readonly address: number
  readonly end: number
  readonly fileOffset: number
}

interface Place {
  readonly buffer: number
  readonly offset: number | undefined
}

const NOWHERE: Place = { buffer: -1, offset: undefined }
/** Most mapped files, and weights copied from them, that are kept: large models have a thousand weights. */
const MAPPINGS_MAX = 4096
/** Names of tensors in buffers of the KV cache: `cache_k_l0`, `cache_v_l0`, … */
const CACHE = /^cache_/

/** The definitions of a log by their ids. Adds events of tensors and buffers as they are defined. */
export class LogDefinitions {
  /** The log is complete from here on only: earlier allocations are added at this time. */
  fromNs = -Infinity
  /** Definitions of NVTX. */
  readonly nvtx: NvtxNames
  /** Records of GPUs, and their queues. */
  readonly gpu: GpuRecords
  private readonly texts = new Map<number, number>()
  private readonly ops = new Map<number, number>()
  private readonly types = new Map<number, number>()
  private readonly buffers = new Map<number, LogBuffer>()
  private readonly unknownBuffers = new Map<number, number>()
  private readonly mappings: Mapping[] = []
  private readonly fileBuffers = new Map<string, number>()
  /** By the log's ids. They are small unless the log is damaged, which only makes the array slower. */
  private readonly tensors: (number | undefined)[] = []
  private readonly notComputed = new Set<number>()
  private readonly graphs = new Map<number, LogGraph>()
  private readonly counters = new Set<number>()
  private tensorCount = 0
  private bufferCount = 0

  constructor(
    readonly names: Names,
    private readonly batch: EventBatch,
    private readonly report: Report,
    private readonly clock: LogClock,
  ) {
    const name = (id: number, byte: number) => this.name(id, byte)
    this.nvtx = new NvtxNames(names, name, report)
    const backend = (graph: number) => this.graphs.get(graph)?.backend ?? 0
    this.gpu = new GpuRecords({ names, clock, name, tensor: (id, byte) => this.tensor(id, byte), backend })
  }

  /** Reads one record of a definitions block, which is long enough for its type. */
  read(type: number, view: DataView, at: number, end: number, byte: number): void {
    switch (type) {
      case RecordType.Name:
        return this.readName(view, at, end, byte)
      case RecordType.Op:
        this.ops.set(view.getUint32(at + 4, true), this.name(view.getUint32(at + 8, true), byte))
        return
      case RecordType.Type:
        this.types.set(view.getUint32(at + 4, true), this.name(view.getUint32(at + 8, true), byte))
        return
      case RecordType.Buffer:
        return this.readBuffer(view, at, byte)
      case RecordType.Mapping:
        return this.readMapping(view, at, byte)
      case RecordType.Tensor:
        return this.readTensor(view, at, end, byte)
      case RecordType.Graph:
        return this.readGraph(view, at, end, byte)
      case RecordType.Counted:
        return this.readCounted(view, at, byte)
      case RecordType.Refusal:
        return this.readRefusal(view, at, end, byte)
      case RecordType.Pages:
        return this.readPages(view, at, end, byte)
      case RecordType.Weight:
        return this.batch.add(readWeightMemory(view, at, (id) => this.name(id, byte)))
      case RecordType.GpuQueue:
        return this.batch.add(this.gpu.define(view, at, byte))
      default:
        return this.nvtx.define(type, view, at, byte)
    }
  }

  /** The name of a log's id; 0 for none. */
  name(id: number, byte: number): number {
    return id === 0 ? 0 : this.known(this.texts, id, 'name', byte)
  }

  /** Is the name of a log's id defined? */
  hasName(id: number): boolean {
    return id === 0 || this.texts.has(id)
  }

  /** The text of a log's id of a name. */
  lookUp(id: number, byte: number): string {
    return this.names.text(this.name(id, byte))
  }

  /** The tensor event's id of a log's id; adds an event for one that was never defined. */
  tensor(id: number, byte: number): number {
    return this.tensors[id] ?? this.unknownTensor(id, byte)
  }

  /** The name of a buffer; 0 for none. */
  bufferName(id: number, byte: number): number {
    const buffer = this.buffers.get(id)
    if (buffer) return buffer.name
    return id === 0 ? 0 : this.known(this.unknownBuffers, id, 'buffer', byte)
  }

  /** The graph of a log's id, or undefined. */
  graph(id: number): LogGraph | undefined {
    return this.graphs.get(id)
  }

  /** Adds a definition for a counter that has none before its first value. */
  needCounter(index: number, byte: number): void {
    if (this.counters.has(index)) return
    this.counters.add(index)
    this.batch.add({ kind: 'counted', index, name: this.placeholder('counter', index, byte), unit: 'count' })
  }

  /** A buffer was freed. */
  free(id: number, atNs: number): void {
    const buffer = this.buffers.get(id)
    if (!buffer?.isLive) return
    buffer.isLive = false
    this.allocate(buffer, atNs, -buffer.sizeBytes)
  }

  private readName(view: DataView, at: number, end: number, byte: number): void {
    const read = readText(view, at + 8, end)
    if (!read) return this.report('damaged-record', 'expected a text within its NAME record, found a longer one', byte)
    this.texts.set(view.getUint32(at + 4, true), this.names.id(read.text))
  }

  private readBuffer(view: DataView, at: number, byte: number): void {
    const id = view.getUint32(at + 4, true)
    const atNs = this.clock.read(view, at + 36)
    const buffer: LogBuffer = {
      name: this.name(view.getUint32(at + 8, true), byte),
      backend: this.name(view.getUint32(at + 12, true), byte),
      usage: view.getUint32(at + 16, true),
      base: readAddress(view, at + 20),
      sizeBytes: readU64(view, at + 28),
      isCache: false,
      isLive: atNs !== undefined,
      id: -1,
    }
    this.buffers.set(id, buffer)
    if (atNs !== undefined) this.allocate(buffer, atNs, buffer.sizeBytes)
  }

  private readMapping(view: DataView, at: number, byte: number): void {
    const address = readAddress(view, at + 12)
    if (this.mappings.length === MAPPINGS_MAX) this.mappings.shift()
    this.mappings.push({
      file: this.name(view.getUint32(at + 4, true), byte),
      buffer: view.getUint32(at + 8, true),
      address,
      end: address + readU64(view, at + 20),
      fileOffset: readU64(view, at + 28),
    })
  }

  private readTensor(view: DataView, at: number, end: number, byte: number): void {
    const id = view.getUint32(at + 4, true)
    const name = this.name(view.getUint32(at + 8, true), byte)
    const op = view.getUint16(at + 12, true)
    const sourceCount = view.getUint16(at + 18, true)
    const sourcesStart = at + 116
    if (sourcesStart + 4 * sourceCount > end) {
      this.report('damaged-record', `expected ${sourceCount} sources within its TENSOR record, found fewer`, byte)
    }
    const sources: number[] = []
    const sourcesEnd = Math.min(sourcesStart + 4 * sourceCount, end - 3)
    for (let place = sourcesStart; place < sourcesEnd; place += 4) {
      const source = view.getUint32(place, true)
      // ggml_cast makes its result its own second source, for backends that treat it as ggml_cpy: it is not read.
      if (source !== id) sources.push(this.tensor(source, byte))
    }
    const address = readAddress(view, at + 84)
    const { buffer, offset } = this.place(view.getUint32(at + 100, true), address, this.names.text(name), byte)
    if ((view.getUint16(at + 16, true) & TENSOR_NOT_COMPUTED) !== 0) this.notComputed.add(id)
    else this.notComputed.delete(id)
    this.addTensor(id, {
      name,
      layer: parseTensorName(this.names.text(name)).layer,
      // Leaves have the op 0, which ggml calls NONE.
      op: op === 0 ? 0 : this.known(this.ops, op, 'op', byte),
      type: this.known(this.types, view.getUint16(at + 14, true), 'type', byte),
      ne: [20, 28, 36, 44].map((field) => readU64(view, at + field)),
      sources,
      viewOf: this.tensors[view.getUint32(at + 104, true)],
      sizeBytes: readU64(view, at + 92),
      buffer,
      offset,
      address,
    })
  }

  private addTensor(logId: number, fields: Omit<TensorEvent, 'kind' | 'id' | 'structAddress' | 'inferred'>): number {
    const id = this.tensorCount++
    this.tensors[logId] = id
    this.batch.add({ kind: 'tensor', id, ...fields, structAddress: 0, inferred: 0 })
    return id
  }

  private unknownTensor(id: number, byte: number): number {
    return this.addTensor(id, { ...UNKNOWN.tensor, name: this.placeholder('tensor', id, byte) })
  }

  private readGraph(view: DataView, at: number, end: number, byte: number): void {
    const id = view.getUint32(at + 4, true)
    const count = view.getUint32(at + 12, true)
    const graph = getOrMake(this.graphs, id, () => {
      return { id: this.graphs.size, backend: this.name(view.getUint32(at + 8, true), byte), nodes: 0 }
    })
    const present = (end - at - 16) / 4
    if (count > present) {
      this.report('damaged-record', `expected ${count} nodes within its GRAPH record, found ${present}`, byte)
    }
    const nodes: number[] = []
    for (let i = 0; i < Math.min(count, present); i++) {
      const node = view.getUint32(at + 16 + 4 * i, true)
      if (this.notComputed.has(node)) continue
      graph.nodes++
      const tensor = this.tensors[node]
      if (tensor !== undefined) nodes.push(tensor)
    }
    this.batch.add({ kind: 'graph-nodes', id: graph.id, backend: graph.backend, nodes: Int32Array.from(nodes) })
  }

  private readRefusal(view: DataView, at: number, end: number, byte: number): void {
    const event = readRefusal(view, at, end, (id) => this.name(id, byte))
    if (event) this.batch.add(event)
    else this.report('damaged-record', 'expected a known question and its tensors within its REFUSAL record', byte)
  }

  private readPages(view: DataView, at: number, end: number, byte: number): void {
    const { clock } = this
    const [name, buffer] = [(id: number) => this.name(id, byte), (id: number) => this.bufferName(id, byte)]
    const event = readPages(view, at, end, { clock, name, buffer })
    if (event) this.batch.add(event)
    else this.report('damaged-record', 'expected a known moment in its PAGES record', byte)
  }

  private readCounted(view: DataView, at: number, byte: number): void {
    const index = view.getUint32(at + 4, true)
    if (index >= COUNTERS_MAX) {
      return this.report('damaged-record', `expected a counter from 0 to ${COUNTERS_MAX - 1}, found ${index}`, byte)
    }
    this.counters.add(index)
    const name = this.name(view.getUint32(at + 8, true), byte)
    this.batch.add({ kind: 'counted', index, name, unit: COUNTER_UNITS[view.getUint32(at + 12, true)] ?? 'count' })
  }

  /** The place of data: a mapped model file, or else a buffer. */
  private place(bufferId: number, address: number, tensor: string, byte: number): Place {
    if (address === 0) return NOWHERE
    const buffer = this.buffers.get(bufferId)
    // The latest mapping applies; or, where the file is not mapped any more, a buffer of another use.
    const isWeights = !buffer || BUFFER_USAGES[buffer.usage] === 'weights'
    const mapping = this.mappings.findLast(
      (candidate) =>
        candidate.address <= address &&
        address < candidate.end &&
        (candidate.buffer === 0 ? isWeights : candidate.buffer === bufferId),
    )
    if (mapping) {
      return { buffer: this.fileBuffer(mapping), offset: address - mapping.address + mapping.fileOffset }
    }
    if (!buffer) {
      if (bufferId !== 0) this.known(this.unknownBuffers, bufferId, 'buffer', byte)
      return NOWHERE
    }
    if (CACHE.test(tensor)) buffer.isCache = true
    if (buffer.id < 0) this.addBuffer(buffer)
    const offset = address - buffer.base
    const isInside = buffer.base > 0 && offset >= 0 && offset < buffer.sizeBytes
    return { buffer: buffer.id, offset: isInside ? offset : undefined }
  }

  /** The buffer event's id of a file, or of its copy in one buffer. */
  private fileBuffer({ file, buffer }: Mapping): number {
    const key = `${file} ${buffer}`
    const known = this.fileBuffers.get(key)
    if (known !== undefined) return known
    const id = this.bufferCount++
    this.fileBuffers.set(key, id)
    const path = this.names.text(file) || 'a mapped file'
    const copied = this.buffers.get(buffer)
    const label = copied ? `${this.describe(copied)}, copied from ${path}` : path
    this.batch.add({
      kind: 'buffer',
      id,
      usage: 'weights',
      label,
      offsetsFrom: 'the start of the GGUF file',
      name: copied?.name,
      file: file || undefined,
    })
    return id
  }

  private allocate({ name }: LogBuffer, atNs: number, bytes: number): void {
    const isEarlier = atNs < this.fromNs
    this.batch.add({ kind: 'allocation', buffer: name, atNs: isEarlier ? this.fromNs : atNs, bytes, isEarlier })
  }

  private addBuffer(buffer: LogBuffer): void {
    buffer.id = this.bufferCount++
    const [usage, label] = [usageOf(buffer), this.describe(buffer)]
    const { id, sizeBytes, name } = buffer
    this.batch.add({ kind: 'buffer', id, usage, label, offsetsFrom: 'its base', name, sizeBytes })
  }

  private describe({ name, backend, base, sizeBytes }: LogBuffer): string {
    const words = [this.names.text(name), this.names.text(backend) && `of ${this.names.text(backend)}`]
    const place = `${sizeBytes} bytes at 0x${base.toString(16)}`
    return [words.filter(Boolean).join(' '), place].filter(Boolean).join(', ')
  }

  /** The name of an id; for one that the log never defined, makes a name and adds an issue, once. */
  private known(table: Map<number, number>, id: number, what: string, byte: number): number {
    return getOrMake(table, id, () => this.placeholder(what, id, byte))
  }

  private placeholder(what: string, id: number, byte: number): number {
    const name = `${what} ${id}`
    this.report('undefined-id', `expected a definition of ${name} before its first use, found none`, byte)
    return this.names.id(name)
  }
}

function usageOf({ usage, isCache }: LogBuffer): BufferUsage {
  const word = BUFFER_USAGES[usage]
  if (word === 'weights' || word === 'compute') return word
  return isCache ? 'kv-cache' : 'other'
}
