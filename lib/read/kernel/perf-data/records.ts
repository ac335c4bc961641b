import { joined } from '../../../bytes/joined.ts'
import { ByteCursor } from '../../../input/byte-cursor.ts'
import type { ByteRanges } from '../../../input/byte-ranges.ts'
import { ZstdStream } from '../../../input/inflate.ts'
import type { TraceEvent } from '../../../model/events.ts'
import { type PerfEvents, Record } from './events.ts'
import { type PerfData, type PerfFacts, readPipeFact } from './head.ts'

/** Events that are handed on at once. */
const BATCH_EVENTS = 8192
const HEAD_BYTES = 8
/** Compressed bytes that are decompressed at once: some can become ten thousand times as many. */
const PACKED_BYTES = 1024
/** Event formats in a pipe; more is damage. */
const FORMATS_BYTES_MAX = 64 << 20
/** Records that hold facts rather than events, in a pipe. */
const FACTS: Readonly<{ [type: number]: 'attr' | 'feature' }> = {
  [Record.headerAttr]: 'attr',
  [Record.headerFeature]: 'feature',
}

/** Reads perf's records one after the other: u32 type, u16 misc, u16 size (with these 8 bytes), then the rest. */
export class PerfRecords {
  private readonly cursor: ByteCursor
  private readonly end: number
  private readonly shift: number
  private view = new DataView(new ArrayBuffer(0)) as DataView<ArrayBufferLike>
  private readonly zstd = new ZstdStream()
  /** The start of a decompressed record of which the rest is to come. */
  private rest: Uint8Array = new Uint8Array(0)
  private isDamaged = false

  /** `data` tells where they are. */
  constructor(
    ranges: ByteRanges,
    { offset, bytes }: PerfData,
    private readonly format: string,
    private readonly facts: PerfFacts,
    private readonly events: PerfEvents,
  ) {
    this.shift = offset
    this.end = bytes
    this.cursor = new ByteCursor(ranges.take(offset, offset + bytes))
  }

  /** All events. */
  async *read(): AsyncGenerator<TraceEvent[]> {
    const { cursor, events } = this
    try {
      while (!this.isDamaged && (await this.has(HEAD_BYTES))) {
        const size = this.readWhole()
        if (size > 0) yield* this.readSpecial(size)
        if (events.size >= BATCH_EVENTS) yield events.take()
        if (size === 0 && !(await cursor.fill())) break
      }
      if (!this.isDamaged && (cursor.available > 0 || (Number.isFinite(this.end) && cursor.offset < this.end))) {
        const length = Number.isFinite(this.end) ? `${this.end} bytes of records` : 'a whole record'
        const found = Number.isFinite(this.end) ? cursor.offset : cursor.available
        events.issue('torn records', `expected ${length}, found ${found} bytes`, this.byte)
      }
      events.finish()
      yield events.take()
    } finally {
      await cursor.close()
    }
  }

  private get byte(): number {
    return this.shift + this.cursor.offset
  }

  private async has(bytes: number): Promise<boolean> {
    while (this.cursor.available < bytes) if (!(await this.cursor.fill())) return false
    return true
  }

  /** Reads whole records up to one that is special, whose size it returns, or to the window's end: 0. */
  private readWhole(): number {
    const { cursor, events } = this
    const { bytes } = cursor
    if (this.view.buffer !== bytes.buffer || this.view.byteOffset !== bytes.byteOffset) {
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
    while (cursor.available >= HEAD_BYTES) {
      const at = cursor.start
      const size = this.sizeAt(this.view, at, this.byte)
      if (size === 0 || size > cursor.available) return 0
      const type = this.view.getUint32(at, true)
      if (SPECIAL.has(type)) return size
      events.record(this.view, at, at + size, this.byte)
      cursor.skip(size)
      if (events.size >= BATCH_EVENTS) break
    }
    return events.size >= BATCH_EVENTS ? -1 : 0
  }

  private sizeAt(view: DataView<ArrayBufferLike>, at: number, byte: number): number {
    const size = view.getUint16(at + 6, true)
    if (size >= HEAD_BYTES) return size
    const detail = `expected a record's size of at least ${HEAD_BYTES} bytes, found ${size}; the rest is left out`
    this.events.issue('damaged record', detail, byte)
    this.isDamaged = true
    return 0
  }

  /** Reads a record that is followed by other bytes, or holds other records. */
  private async *readSpecial(size: number): AsyncGenerator<TraceEvent[]> {
    const { cursor, byte } = this
    const head = new Uint8Array(cursor.bytes.subarray(cursor.start, cursor.start + size))
    const view = new DataView(head.buffer)
    const type = view.getUint32(0, true)
    cursor.skip(size)
    if (type === Record.compressed) yield* this.readPacked(head.subarray(HEAD_BYTES), byte)
    else if (type === Record.compressed2 && size >= 16) {
      yield* this.readPacked(head.subarray(16, 16 + view.getUint32(8, true)), byte)
    } else if (type === Record.auxtrace && size >= 16) {
      this.events.leave('pieces of AUX area data')
      await this.skip(Number(view.getBigUint64(8, true)))
    } else if (type === Record.tracingData && size >= 12) await this.readFormats(view.getUint32(8, true), byte)
    else if (FACTS[type]) await readPipeFact(FACTS[type], head.subarray(HEAD_BYTES), this.format, this.facts)
  }

  private async readFormats(bytes: number, byte: number): Promise<void> {
    if (bytes > FORMATS_BYTES_MAX || !(await this.has(bytes))) {
      this.events.issue(
        'torn records',
        `expected ${bytes} bytes of event formats, found ${this.cursor.available}`,
        byte,
      )
      this.isDamaged = true
      return
    }
    const { bytes: window, start } = this.cursor
    await readPipeFact('formats', window.subarray(start, start + bytes), this.format, this.facts)
    this.cursor.skip(bytes)
  }

  private async skip(bytes: number): Promise<void> {
    for (let left = bytes; left > 0; ) {
      const here = Math.min(left, this.cursor.available)
      this.cursor.skip(here)
      left -= here
      if (left > 0 && !(await this.cursor.fill())) return
    }
  }

  /** A piece of the compressed stream of records. */
  private async *readPacked(packed: Uint8Array, byte: number): AsyncGenerator<TraceEvent[]> {
    for (let at = 0; at < packed.length && !this.isDamaged; at += PACKED_BYTES) {
      try {
        for (const plain of this.zstd.push(packed.subarray(at, at + PACKED_BYTES))) this.readPlain(plain, byte)
      } catch (error) {
        const reason = `${(error as Error).message}; the rest is left out`
        this.events.issue('damaged compression', `cannot be decompressed: ${reason}`, byte)
        this.isDamaged = true
      }
      if (this.events.size >= BATCH_EVENTS) yield this.events.take()
    }
  }

  private readPlain(plain: Uint8Array, byte: number): void {
    const bytes = this.rest.length === 0 ? plain : joined([this.rest, plain])
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
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
