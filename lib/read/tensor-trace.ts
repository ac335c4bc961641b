// TensorTrace: fixed records of 1 024 bytes, little-endian, one per operator start on worker 0, without any file
// header (ErsjanKeri/llama.cpp, ggml/include/tensor_trace.h, versions 3 and 4; described in input-formats).
//
//     0  u64 timestamp_ns   CLOCK_MONOTONIC; 0 = empty record: the tail that the logger reserved, or a hole
//     8  u32 token_id       stays 0: not used
//    12  u16 layer_id       65535 = none
//    14  u16 thread_id      low 16 bits of the Linux tid
//    16  u8  operation_type ggml_op of the logging version
//    17  u8  phase          0 PROMPT, 1 GENERATE
//    18  u8  num_sources    0 … 4
//    24  char dst_name[128]
//   152  source[4], 160 bytes each:
//          0 char name[128]  128 u64 tensor_ptr  136 u32 size_bytes  140 u16 layer_id  142 u8 memory_source (0 DISK,
//          1 BUFFER)  144 u64 disk offset or buffer id  152 u32 tensor_idx (not used)
//   792  i32 expert_ids[16] version 4; zero in version 3
//   856  u8  num_experts
//   857  padding

import { ByteCursor } from '../input/byte-cursor.ts'
import type { TraceEvent } from '../model/events.ts'
import type { Format, ReadContext } from './format.ts'
import { type Node, Passes, type Sample } from './infer/passes.ts'
import type { Source } from './infer/places.ts'
import { pickOrigin, TimeGuard } from './infer/time-guard.ts'

const RECORD_BYTES = 1024
const NAME_BYTES = 128
const RESULT_NAME = 24
const SOURCES = 152
const SOURCE_BYTES = 160
const SOURCES_MAX = 4
const EXPERT_IDS = 792
const EXPERT_COUNT = 856
const EXPERTS_MAX = 16
/** Bytes that tell one node from another: result name and sources. */
const NODE_END = EXPERT_IDS
const NO_LAYER = 0xffff

export const tensorTrace: Format = {
  name: 'tensor-trace',
  title: 'TensorTrace records of 1 024 bytes (versions 3 and 4)',

  sniff(head) {
    const whole = Math.floor(head.length / RECORD_BYTES)
    let plausible = 0
    for (let i = 0; i < whole; i++) if (looksLikeRecord(head.subarray(i * RECORD_BYTES))) plausible++
    return plausible > 0 && plausible * 2 >= whole
  },

  async *read(source, context) {
    const cursor = new ByteCursor(source)
    const reader = new RecordReader(context)
    try {
      while (await cursor.fill()) {
        const events = reader.readWhole(cursor)
        if (events.length > 0) yield events
      }
      yield reader.finish(cursor)
    } finally {
      await cursor.close()
    }
  },
}

/** Decodes records, finds their nodes again, and hands both to {@link Passes}. */
class RecordReader {
  private readonly passes: Passes
  private readonly nodes = new NodeTable()
  private started = false
  private originHigh = 0
  private originLow = 0
  private readonly guard = new TimeGuard()
  private emptyRecords = 0
  private view: DataView<ArrayBufferLike> = new DataView(new ArrayBuffer(0))

  constructor(context: ReadContext) {
    this.passes = new Passes(tensorTrace.name, context)
  }

  /** Takes every whole record out of the cursor's window. */
  readWhole(cursor: ByteCursor): TraceEvent[] {
    // The origin is picked from three records, so that one damaged timestamp cannot move everything.
    if (!this.started && cursor.available < 3 * RECORD_BYTES) return []
    while (cursor.available >= RECORD_BYTES) this.readRecord(cursor)
    return this.passes.take()
  }

  finish(cursor: ByteCursor): TraceEvent[] {
    while (cursor.available >= RECORD_BYTES) this.readRecord(cursor)
    if (cursor.available > 0) {
      this.issue(cursor.offset, 'torn record', `expected ${RECORD_BYTES} bytes, found the first ${cursor.available}`)
    }
    this.passes.finish()
    return this.passes.take()
  }

  private readRecord(cursor: ByteCursor): void {
    const { bytes, start, offset } = cursor
    if (this.view.buffer !== bytes.buffer) this.view = new DataView(bytes.buffer)
    const at = bytes.byteOffset + start
    if (!this.started) this.start(at, cursor.available)
    const low = this.view.getUint32(at, true)
    const high = this.view.getUint32(at + 4, true)
    if (low === 0 && high === 0) this.emptyRecords++
    else {
      if (this.emptyRecords > 0) {
        this.issue(offset, 'hole in the log', `expected records, found ${this.emptyRecords} empty ones`)
        this.emptyRecords = 0
      }
      const atNs = (high - this.originHigh) * 2 ** 32 + (low - this.originLow)
      const doubt = this.guard.doubt(atNs)
      if (doubt === undefined) this.passes.add(this.decode(bytes, start, at, offset, atNs))
      else this.issue(offset, 'impossible timestamp', doubt)
    }
    cursor.skip(RECORD_BYTES)
  }

  private start(at: number, available: number): void {
    this.started = true
    const stamps: bigint[] = []
    for (let i = 0; i < 3 && (i + 1) * RECORD_BYTES <= available; i++) {
      stamps.push(this.view.getBigUint64(at + i * RECORD_BYTES, true))
    }
    const origin = pickOrigin(stamps)
    this.originHigh = Number(origin >> 32n)
    this.originLow = Number(origin & 0xffffffffn)
    this.passes.start(origin)
  }

  private decode(bytes: Uint8Array, start: number, at: number, offset: number, atNs: number): Sample {
    const view = this.view
    let phase = bytes[start + 17]!
    if (phase > 1) {
      this.issue(offset + 17, 'unknown phase', `expected 0 (PROMPT) or 1 (GENERATE), found ${phase}; taken as GENERATE`)
      phase = 1
    }
    const node = this.nodes.find(bytes, start, view, at)
    if (node.problem) this.issue(offset, 'damaged record', node.problem)
    return {
      atNs,
      byte: offset,
      node,
      thread: view.getUint16(at + 14, true),
      phase: phase === 0 ? 'prefill' : 'decode',
      experts: this.readExperts(bytes[start + EXPERT_COUNT]!, at, offset),
    }
  }

  private readExperts(count: number, at: number, offset: number): number[] | undefined {
    if (count === 0) return undefined
    if (count > EXPERTS_MAX) {
      this.issue(
        offset + EXPERT_COUNT,
        'too many experts',
        `expected at most ${EXPERTS_MAX}, found ${count}; none taken`,
      )
      return undefined
    }
    const ids: number[] = []
    for (let i = 0; i < count; i++) ids.push(this.view.getInt32(at + EXPERT_IDS + 4 * i, true))
    return ids
  }

  private issue(byte: number, title: string, detail: string): void {
    this.passes.issue({ byte }, title, detail, this.guard.lastNs)
  }
}

/** Finds the node of a record by the bytes that describe it, so that each distinct node is decoded once. */
class NodeTable {
  private readonly byHash = new Map<number, { readonly key: Uint8Array; readonly node: Node }[]>()

  find(bytes: Uint8Array, start: number, view: DataView, at: number): Node {
    const key = bytes.subarray(start, start + NODE_END)
    const hash = hashNode(view, at)
    const sameHash = this.byHash.get(hash)
    const found = sameHash?.find((entry) => isSameNode(entry.key, key))
    if (found) return found.node
    const entry = { key: key.slice(), node: decodeNode(bytes, start, view, at) }
    if (sameHash) sameHash.push(entry)
    else this.byHash.set(hash, [entry])
    return entry.node
  }
}

const { imul } = Math // looked up once: within a sandbox (a test runner's) each look-up is slow

function hashNode(view: DataView, at: number): number {
  let hash = view.getUint16(at + 12, true) ^ (view.getUint8(at + 16) << 16) ^ (view.getUint8(at + 18) << 24)
  for (let i = at + RESULT_NAME; i < at + NODE_END; i += 4) hash = imul(hash ^ view.getUint32(i, true), 0x01000193)
  return hash
}

function isSameNode(a: Uint8Array, b: Uint8Array): boolean {
  if (a[12] !== b[12] || a[13] !== b[13] || a[16] !== b[16] || a[18] !== b[18]) return false
  for (let i = RESULT_NAME; i < NODE_END; i++) if (a[i] !== b[i]) return false
  return true
}

function decodeNode(bytes: Uint8Array, start: number, view: DataView, at: number): Node {
  const count = bytes[start + 18]!
  const sources: Source[] = []
  const problems: string[] = []
  if (count > SOURCES_MAX) problems.push(`expected at most ${SOURCES_MAX} sources, found ${count}`)
  for (let i = 0; i < Math.min(count, SOURCES_MAX); i++) {
    const source = SOURCES + i * SOURCE_BYTES
    const memory = view.getUint8(at + source + 142)
    if (memory > 1) problems.push(`expected memory source 0 (DISK) or 1 (BUFFER), found ${memory}`)
    sources.push({
      name: readName(bytes, start + source),
      pointer: readAddress(view, at + source + 128),
      sizeBytes: view.getUint32(at + source + 136, true),
      layer: readLayer(view, at + source + 140),
      onDisk: memory === 0,
      place: view.getBigUint64(at + source + 144, true),
    })
  }
  return {
    name: readName(bytes, start + RESULT_NAME),
    op: bytes[start + 16]!,
    layer: readLayer(view, at + 12),
    sources,
    problem: problems.join('; '),
    id: -1,
  }
}

function readLayer(view: DataView, at: number): number {
  const layer = view.getUint16(at, true)
  return layer === NO_LAYER ? -1 : layer
}

/** Addresses of user space fit 53 bits, as numbers do; the top byte of a tagged pointer (arm64) is dropped. */
function readAddress(view: DataView, at: number): number {
  return (view.getUint32(at + 4, true) & 0x1fffff) * 2 ** 32 + view.getUint32(at, true)
}

const decoder = new TextDecoder()

function readName(bytes: Uint8Array, start: number): string {
  let end = start
  while (end < start + NAME_BYTES && bytes[end] !== 0) end++
  return decoder.decode(bytes.subarray(start, end))
}

function looksLikeRecord(record: Uint8Array): boolean {
  const isZero = (start: number, end: number) => record.subarray(start, end).every((byte) => byte === 0)
  if (record[7]! >= 0x40 || isZero(0, 8)) return false
  if (record[17]! > 1 || record[18]! > SOURCES_MAX || record[EXPERT_COUNT]! > EXPERTS_MAX) return false
  if (!isZero(19, 24) || !isZero(EXPERT_COUNT + 1, RECORD_BYTES) || !looksLikeName(record, RESULT_NAME)) return false
  for (let i = 0; i < record[18]!; i++) {
    const source = SOURCES + i * SOURCE_BYTES
    if (!looksLikeName(record, source) || record[source + 142]! > 1) return false
  }
  return true
}

/** Printable text up to a NUL or the end of the field. */
function looksLikeName(record: Uint8Array, start: number): boolean {
  for (let i = start; i < start + NAME_BYTES && record[i] !== 0; i++) if (record[i]! < 0x20) return false
  return true
}
