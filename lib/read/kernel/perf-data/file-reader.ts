// perf.data: the output of `perf record`, little-endian. The end of a file contains what is needed to read its records:
//
//     0  "PERFILE2"   8  u64 size of this header: 104 (a pipe: 16, and the rest follows as records)
//    16  u64 size of an event's description   24  u64 place, u64 size of these (perf_event_attr + place of its ids)
//    40  place of the records   56  –   72  256 bits: features, whose places are after the records
//
//     records: u32 type, u16 misc, u16 size, … : samples of tracepoints, names, forks, exits, switches
//     feature 1 contains the formats of the tracepoints, 29 (CLOCK_DATA) the same time on two clocks
//
// Records are in rounds, by CPU; the reader sorts them by time.

import { joined } from '../../../bytes/joined.ts'
import { ByteCursor } from '../../../input/byte-cursor.ts'
import { ByteRanges } from '../../../input/byte-ranges.ts'
import { viewOf } from '../../../input/field-reader.ts'
import { ZstdStream } from '../../../input/inflate.ts'
import type { TraceEvent } from '../../../model/events.ts'
import type { IssueCode } from '../../../model/issues.ts'
import { type ChunkReader, type EventBatch, readBatches } from '../../common/batches.ts'
import type { ReadContext } from '../../format.ts'
import { PerfEvents, Record } from './events.ts'
import { noFacts, type PerfData, type PerfFacts, PIPE_HEAD_BYTES, readPerfHead, readPipeFact } from './head.ts'

const FORMAT = 'perf-data'

/** Reads a recording: see {@link Format.read}. */
export async function* readRecording(
  source: AsyncIterable<Uint8Array>,
  { names, range }: ReadContext,
): AsyncGenerator<TraceEvent[]> {
  const hint = 'decompress it and give the file itself, or pipe the output of `perf record -o -`'
  const ranges = new ByteRanges(source, range, FORMAT, hint)
  const facts = noFacts()
  const data = await readPerfHead(ranges, FORMAT, facts)
  const events = new PerfEvents(FORMAT, names, facts)
  const place = data ?? { offset: PIPE_HEAD_BYTES, bytes: Infinity }
  yield* new PerfRecords(ranges, place, FORMAT, facts, events).read()
}

/** Events of a batch. */
const BATCH_EVENTS = 8192
const HEAD_BYTES = 8
/** Compressed bytes per step: they can decompress to ten thousand times as many. */
const PACKED_BYTES = 1024
/** More bytes of event formats in a pipe are damage. */
const FORMATS_BYTES_MAX = 64 << 20
const NO_BYTES = new Uint8Array(0)
/** Records of a pipe that contain facts. */
const FACTS: Readonly<{ [type: number]: 'attr' | 'feature' }> = {
  [Record.headerAttr]: 'attr',
  [Record.headerFeature]: 'feature',
}

/** Reads perf's records one after the other: u32 type, u16 misc, u16 size (with these 8 bytes), then the rest. */
class PerfRecords implements ChunkReader {
  readonly batch: EventBatch
  private readonly cursor: ByteCursor
  private readonly end: number
  private readonly shift: number
  private view: DataView = new DataView(new ArrayBuffer(0))
  private readonly zstd = new ZstdStream((plain) => this.readPlain(plain, this.packedByte))
  /** The rest of the current compressed record, and its place. */
  private packed = NO_BYTES
  private packedByte = 0
  /** The start of a decompressed record that the next piece continues. */
  private rest = NO_BYTES
  /** Bytes after a record that are still to skip. */
  private skipped = 0
  private isDamaged = false

  constructor(
    ranges: ByteRanges,
    { offset, bytes }: PerfData,
    private readonly format: string,
    private readonly facts: PerfFacts,
    private readonly events: PerfEvents,
  ) {
    this.batch = events.batch
    this.shift = offset
    this.end = bytes
    this.cursor = new ByteCursor(ranges.take(offset, offset + bytes))
  }

  read(): AsyncGenerator<TraceEvent[]> {
    return readBatches(this.cursor, this)
  }

  get isAtEnd(): boolean {
    return this.isDamaged
  }

  async readChunk(isLast: boolean): Promise<boolean> {
    for (let isMore = true; isMore; ) {
      if (this.packed.length > 0) this.readPacked()
      else {
        const size = this.readWhole()
        if (size > 0) await this.readSpecial(size)
        isMore = size > 0
      }
      if (this.batch.hasBegun && this.batch.size >= BATCH_EVENTS) return true
    }
    if (isLast) this.finish()
    return false
  }

  private finish(): void {
    const { cursor, events, end } = this
    if (!this.isDamaged && (cursor.available > 0 || (Number.isFinite(end) && cursor.offset < end))) {
      const length = Number.isFinite(end) ? `${end} bytes of records` : 'a whole record'
      const found = Number.isFinite(end) ? cursor.offset : cursor.available
      events.issue('torn-record', `expected ${length}, found ${found} bytes`, this.byte)
    }
    events.finish()
  }

  private get byte(): number {
    return this.shift + this.cursor.offset
  }

  /** Reads whole records up to a special one, whose size it returns; 0 at the window's end, or where the batch is full. */
  private readWhole(): number {
    const { cursor, events, batch } = this
    const { bytes } = cursor
    const skipped = Math.min(this.skipped, cursor.available)
    cursor.skip(skipped)
    this.skipped -= skipped
    if (this.view.buffer !== bytes.buffer || this.view.byteOffset !== bytes.byteOffset) {
      this.view = viewOf(bytes)
    }
    const { view } = this
    while (!this.isDamaged && cursor.available >= HEAD_BYTES) {
      const at = cursor.start
      const size = this.sizeAt(view, at, this.byte)
      if (size === 0 || size > cursor.available) return 0
      const type = view.getUint32(at, true)
      if (SPECIAL.has(type)) return type !== Record.tracingData || this.hasFormats(view, at, size) ? size : 0
      events.record(view, at, at + size, this.byte)
      cursor.skip(size)
      if (batch.size >= BATCH_EVENTS && batch.hasBegun) return 0
    }
    return 0
  }

  private sizeAt(view: DataView, at: number, byte: number): number {
    const size = view.getUint16(at + 6, true)
    if (size >= HEAD_BYTES) return size
    this.damage('damaged-record', `expected a record's size of at least ${HEAD_BYTES} bytes, found ${size}`, byte)
    return 0
  }

  private damage(code: IssueCode, detail: string, byte: number): void {
    this.events.issue(code, `${detail}; the rest is left out`, byte)
    this.isDamaged = true
  }

  /** Reads a record with other bytes after it, or with records or facts in it. */
  private async readSpecial(size: number): Promise<void> {
    const { cursor, byte, format, facts } = this
    const head = new Uint8Array(cursor.bytes.subarray(cursor.start, cursor.start + size))
    const view = new DataView(head.buffer)
    const type = view.getUint32(0, true)
    cursor.skip(size)
    this.packedByte = byte
    if (type === Record.compressed) this.packed = head.subarray(HEAD_BYTES)
    else if (type === Record.compressed2 && size >= 16) this.packed = head.subarray(16, 16 + view.getUint32(8, true))
    else if (type === Record.auxtrace && size >= 16) {
      this.events.leave('pieces of AUX area data')
      this.skipped = Number(view.getBigUint64(8, true))
    } else if (type === Record.tracingData && size >= 12) {
      const { bytes, start } = cursor
      const length = view.getUint32(8, true)
      await readPipeFact('formats', bytes.subarray(start, start + length), format, facts)
      cursor.skip(length)
    } else if (FACTS[type]) await readPipeFact(FACTS[type], head.subarray(HEAD_BYTES), format, facts)
  }

  /** Are the event formats after a record in the window? */
  private hasFormats(view: DataView, at: number, size: number): boolean {
    const bytes = size < 12 ? 0 : view.getUint32(at + 8, true)
    if (bytes <= FORMATS_BYTES_MAX) return size + bytes <= this.cursor.available
    const detail = `expected at most ${FORMATS_BYTES_MAX} bytes of event formats, found ${bytes}`
    this.damage('damaged-record', detail, this.byte)
    return false
  }

  /** Decompresses the next piece of a record: the pieces of all records are one stream. */
  private readPacked(): void {
    const piece = this.packed.subarray(0, PACKED_BYTES)
    this.packed = this.packed.subarray(piece.length)
    try {
      this.zstd.push(piece)
    } catch (error) {
      this.damage('damaged-compression', `cannot be decompressed: ${(error as Error).message}`, this.packedByte)
    }
    if (this.isDamaged) this.packed = NO_BYTES
  }

  private readPlain(plain: Uint8Array, byte: number): void {
    const bytes = this.rest.length === 0 ? plain : joined([this.rest, plain])
    const view = viewOf(bytes)
    let at = 0
    while (at + HEAD_BYTES <= bytes.length) {
      const size = this.sizeAt(view, at, byte)
      if (size === 0 || at + size > bytes.length) break
      this.events.record(view, at, at + size, byte)
      at += size
    }
    this.rest = bytes.slice(at)
  }
}

const SPECIAL: ReadonlySet<number> = new Set([
  Record.headerAttr,
  Record.tracingData,
  Record.auxtrace,
  Record.headerFeature,
  Record.compressed,
  Record.compressed2,
])
