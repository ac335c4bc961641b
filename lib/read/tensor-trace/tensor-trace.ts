// TensorTrace (ErsjanKeri/llama.cpp, ggml/include/tensor_trace.h): fixed records, little-endian, one per operator start on worker
// 0, or per source of it, without a file header. The records of its versions have 1 024, 256, 128 or 64 bytes. Of 1 024:
//
//        0  00 26 85 c1 38 3f 22 02 00 00 00 00 00 00 17 f7   u64 CLOCK_MONOTONIC in ns, u32 not used, u16 layer, u16 thread
//       16  1d 00 02 00 …                                     u8 op (29: MUL_MAT), u8 phase (0: PROMPT), u8 number of sources
//       24  Qcur-0                                            the result's name
//      152  blk.0.attn_q.weight                               the first source's name; further ones 160 bytes each
//      280  00 00 00 00 00 7f 00 00                           its address, size, layer, DISK or BUFFER, offset
//      792  ff ff ff ff … 00                                  ids of up to 16 experts, and their number
//
// The logger reserves a file of up to 2 GB: the rest is zeros. Threads write batches of records without a lock: some records are
// late, and there may be holes. Ends of operators, calls and graphs are not logged: the reader infers them.
//
//     layouts.ts   offsets of the fields by version; detection of the version
//     nodes.ts     a record → its node: the same result from the same sources, decoded once
//     passes.ts    operator starts → operators, graphs, calls
//     places.ts    sources → tensors in buffers: meaning of pointers, bases of buffers
//
// Companions, each a format: buffer-stats.ts and buffer-timeline.ts (both use buffers.ts), memory-map.ts, ggml-graph.ts.

import { ByteCursor } from '../../input/byte-cursor.ts'
import { peek } from '../../input/gunzip.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { plural } from '../../model/units.ts'
import { type ChunkReader, type EventBatch, readBatches } from '../common/batches.ts'
import { pickOrigin, TimeGuard } from '../common/time-guard.ts'
import { type Format, HEAD_BYTES, type ReadContext } from '../format.ts'
import { DEFAULT_LAYOUT, detectLayout, type Layout } from './layouts.ts'
import { NodeTable } from './nodes.ts'
import { Passes, type Sample } from './passes.ts'

/**
 * So many consecutive empty records are the end of the log. Fewer may be a hole: threads flush their batches, of up to 1 024
 * records, without a lock.
 */
const EMPTY_RECORDS_MAX = 4096
const NO_EXPERT = 0xff

export const tensorTrace: Format = {
  name: 'tensor-trace',
  title: 'TensorTrace records of 1 024, 256, 128 or 64 bytes',

  sniff: (head) => detectLayout(head) !== undefined,

  async *read(source, context) {
    const { head, rest } = await peek(source, HEAD_BYTES)
    const layout = detectLayout(head.subarray(0, HEAD_BYTES), true) ?? DEFAULT_LAYOUT
    const cursor = new ByteCursor(rest)
    yield* readBatches(cursor, new RecordReader(cursor, layout, context))
  },
}

/** Decodes records, finds their nodes, and passes both to {@link Passes}. */
class RecordReader implements ChunkReader {
  private readonly passes: Passes
  private readonly nodes: NodeTable
  private started = false
  private originHigh = 0
  private originLow = 0
  private readonly guard = new TimeGuard()
  private emptyRecords = 0
  private view: DataView = new DataView(new ArrayBuffer(0))

  constructor(
    private readonly cursor: ByteCursor,
    private readonly layout: Layout,
    context: ReadContext,
  ) {
    const facts = { record_bytes: layout.recordBytes }
    this.passes = new Passes(tensorTrace.name, { ...context, opTable: layout.ops ?? context.opTable }, facts)
    this.nodes = new NodeTable(layout, context.definitions)
  }

  get batch(): EventBatch {
    return this.passes.batch
  }

  /** Were there so many empty records that the log has ended? */
  get isAtEnd(): boolean {
    return this.emptyRecords > EMPTY_RECORDS_MAX
  }

  readChunk(isLast: boolean): boolean {
    const { cursor } = this
    const { recordBytes } = this.layout
    // The origin is picked from three records, so that one damaged timestamp cannot move everything.
    if (!isLast && !this.started && cursor.available < 3 * recordBytes) return false
    while (cursor.available >= recordBytes && !this.isAtEnd) this.readRecord()
    if (!isLast) return false
    if (cursor.available > 0 && !this.isAtEnd) {
      this.issue(cursor.offset, 'torn-record', `expected ${recordBytes} bytes, found the first ${cursor.available}`)
    }
    this.passes.finish()
    return false
  }

  private readRecord(): void {
    const { cursor } = this
    const { bytes, start, offset } = cursor
    if (this.view.buffer !== bytes.buffer) this.view = new DataView(bytes.buffer)
    const at = bytes.byteOffset + start
    if (!this.started) this.start(at, cursor.available)
    const low = this.view.getUint32(at, true)
    const high = this.view.getUint32(at + 4, true)
    if (low === 0 && high === 0) this.emptyRecords++
    else {
      if (this.emptyRecords > 0) {
        this.issue(offset, 'log-hole', `expected records, found ${plural(this.emptyRecords, 'empty one')}`)
        this.emptyRecords = 0
      }
      const atNs = (high - this.originHigh) * 2 ** 32 + (low - this.originLow)
      const doubt = this.guard.doubt(atNs)
      if (doubt === undefined) this.passes.add(this.decode(bytes, start, at, offset, atNs))
      else this.issue(offset, 'impossible-time', doubt)
    }
    cursor.skip(this.layout.recordBytes)
  }

  private start(at: number, available: number): void {
    this.started = true
    const { recordBytes } = this.layout
    const stamps: bigint[] = []
    for (let i = 0; i < 3 && (i + 1) * recordBytes <= available; i++) {
      stamps.push(this.view.getBigUint64(at + i * recordBytes, true))
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
      this.issue(offset + 17, 'unknown-phase', `expected 0 (PROMPT) or 1 (GENERATE), found ${phase}; taken as GENERATE`)
      phase = 1
    }
    const node = this.nodes.find(bytes, start, view, at)
    if (node.problem) this.issue(offset, 'damaged-record', node.problem)
    return {
      atNs,
      byte: offset,
      node,
      thread: view.getUint16(at + 14, true),
      phase: phase === 0 ? 'prefill' : 'decode',
      experts: this.readExperts(at, offset),
    }
  }

  private readExperts(at: number, offset: number): number[] | undefined {
    const { expert, experts } = this.layout
    if (expert !== undefined) {
      const id = this.view.getUint8(at + expert)
      return id === NO_EXPERT ? undefined : [id]
    }
    const count = experts ? this.view.getUint8(at + experts.count) : 0
    if (!experts || count === 0) return undefined
    if (count > experts.most) {
      const detail = `expected at most ${experts.most}, found ${count}; none taken`
      this.issue(offset + experts.count, 'too-many-experts', detail)
      return undefined
    }
    const ids: number[] = []
    for (let i = 0; i < count; i++) ids.push(this.view.getInt32(at + experts.ids + 4 * i, true))
    return ids
  }

  private issue(byte: number, code: IssueCode, detail: string): void {
    this.passes.report(issueOf(code, detail, { byte }, this.guard.lastNs))
  }
}
