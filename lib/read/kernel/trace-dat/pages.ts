import { ByteCursor } from '../../../input/byte-cursor.ts'
import type { ByteRanges } from '../../../input/byte-ranges.ts'
import type { Inflate } from '../../../input/inflate.ts'
import type { IssueCode } from '../../../model/issues.ts'
import { type Field, parseFields } from '../tracepoints/event-formats.ts'
import type { CpuPages } from './head.ts'

/** Low bits of a page's `commit`: bytes of events (kernel/trace/ring_buffer.c, libtraceevent's kbuffer). */
const COMMIT_MASK = (1 << 27) - 1
/** Events before this page were overwritten, or did not fit. */
const MISSED_EVENTS = 1 << 31
/** Their number is stored after the page's last event. */
const MISSED_STORED = 1 << 30

const PADDING = 29
const TIME_EXTEND = 30
const TIME_STAMP = 31
/** Time stamps have 59 bits; the upper 5 bits are those of the page's time. */
const STAMP_LIMIT = 2 ** 59
/** Most time between events of one page; more is damage. A day, in ns. */
const DELTA_NS_MAX = 86_400e9

/** Receives the contents of a page, in order. Places are in the view of the page. */
export interface PageSink {
  /** A record: `[at, end)` contains its `common_type` and the fields after it. */
  record(at: number, end: number, atNs: number): void
  /** `count` events before the page's first one were lost; -1: the number is not recorded. */
  lost(count: number, atNs: number): void
  /** The page cannot be read from `at` on. */
  damaged(at: number, expected: string, found: string): void
}

/**
 * Pages of the kernel's ring buffer, in trace.dat and in tracefs (`per_cpu/cpu<n>/trace_pipe_raw`):
 *
 *     0  u64 time stamp   8  long commit: bytes of events, flags   data from 8 + size of commit on
 *     events: u32 head: type_len 5 bits, time delta 27 bits (ns from the event before)
 *       type_len 1 … 28  a record of type_len × 4 bytes
 *                0       a record; the next u32 is its size, with itself
 *                29      padding; a delta of 0 ends the page, else the next u32 is its size
 *                30, 31  the next u32 has the upper bits of a time delta, or of a time stamp
 *
 * Offsets are those of the `header_page` text, little-endian.
 */
export class RingPages {
  private readonly commit: Field
  private readonly data: number
  private originHigh = 0
  private originLow = 0

  /** `headerPage`: the text of tracefs' `events/header_page`; default: that of a 64-bit kernel. */
  constructor(headerPage?: string) {
    const fields = headerPage === undefined ? undefined : parseFields(headerPage)
    this.commit = fields?.get('commit') ?? { offset: 8, size: 8, isSigned: true, isText: false }
    this.data = fields?.get('data')?.offset ?? 16
  }

  /** Bytes before a page's events. */
  get headBytes(): number {
    return this.data
  }

  /** A page's time, in absolute nanoseconds of the trace's clock. */
  timeOf(view: DataView, at: number): bigint {
    return view.getBigUint64(at, true)
  }

  /** Sets the origin of times. */
  setOrigin(ns: bigint): void {
    this.originHigh = Number(ns >> 32n)
    this.originLow = Number(ns & 0xffffffffn)
  }

  /** A page's time, from the origin. */
  startOf(view: DataView, at: number): number {
    return (view.getUint32(at + 4, true) - this.originHigh) * 2 ** 32 + (view.getUint32(at, true) - this.originLow)
  }

  /** Is the page without events? Its header must be in the view. */
  isEmpty(view: DataView, at: number): boolean {
    return (view.getUint32(at + this.commit.offset, true) & COMMIT_MASK) === 0
  }

  /** Reads the page in bytes `[at, end)`. */
  read(view: DataView, at: number, end: number, sink: PageSink): void {
    const start = at + this.data
    if (start > end) return sink.damaged(at, `a page's head of ${this.data} bytes`, `${end - at} bytes`)
    const commit = view.getInt32(at + this.commit.offset, true)
    const stop = start + (commit & COMMIT_MASK)
    const pageNs = this.startOf(view, at)
    if (stop > end) {
      sink.damaged(at + this.commit.offset, `at most ${end - start} bytes of events in a page`, `${stop - start}`)
    }
    if ((commit & MISSED_EVENTS) !== 0) sink.lost(this.missed(view, commit, stop, end), pageNs)
    this.readEvents(view, start, Math.min(stop, end), pageNs, sink)
  }

  private missed(view: DataView, commit: number, stop: number, end: number): number {
    return (commit & MISSED_STORED) !== 0 && stop + this.commit.size <= end ? view.getUint32(stop, true) : -1
  }

  private readEvents(view: DataView, start: number, stop: number, pageNs: number, sink: PageSink): void {
    let atNs = pageNs
    for (let at = start; at + 4 <= stop; ) {
      const head = view.getUint32(at, true)
      const type = head & 31
      const delta = head >>> 5
      const extra = type === 0 || type >= PADDING ? 4 : 0
      if (type === PADDING && delta === 0) return
      if (at + 4 + extra > stop) return sink.damaged(at, 'an event that ends in its page', 'one that does not')
      const more = extra > 0 ? view.getUint32(at + 4, true) : 0
      if (type === TIME_STAMP) atNs = this.stampOf(pageNs, more, delta)
      else atNs += type === TIME_EXTEND ? delta + more * 2 ** 27 : delta
      if (Math.abs(atNs - pageNs) > DELTA_NS_MAX) {
        return sink.damaged(at, "an event within a day of its page's time", `one ${(atNs - pageNs) / 1e9} s after it`)
      }
      if (type >= TIME_EXTEND) {
        at += 8
        continue
      }
      const size = type === 0 || type === PADDING ? more : type * 4
      const from = at + 4 + (type === 0 ? 4 : 0)
      const to = at + 4 + size
      if (to > stop || to < from) return sink.damaged(at, `an event of at most ${stop - at - 4} bytes`, `${size}`)
      if (type !== PADDING) sink.record(from, to, atNs)
      at = to
    }
  }

  private stampOf(pageNs: number, more: number, delta: number): number {
    const origin = (BigInt(this.originHigh) << 32n) + BigInt(this.originLow)
    const page = origin + BigInt(pageNs)
    const limit = BigInt(STAMP_LIMIT)
    return Number(page - (page % limit) + (BigInt(more) << 27n) + BigInt(delta) - origin)
  }
}

/** Some whole pages of one CPU; the last one may be cut. */
export interface PageRun {
  readonly view: DataView
  /** Start of the first page in `view`, and end of the last. */
  readonly at: number
  readonly end: number
  /** Offset of the first page in the input; of compressed ones, of their chunk. */
  readonly byte: number
}

/** Called with issues of a CPU's pages. */
export type OnDamage = (code: IssueCode, detail: string, byte: number) => void

/** trace-cmd compresses some pages at a time; more than this is damage. */
const CHUNK_BYTES_MAX = 64 << 20
const COUNT_BYTES = 4

/** The uncompressed pages of a CPU. */
export async function* plainPages(
  ranges: ByteRanges,
  { offset, bytes }: CpuPages,
  pageBytes: number,
  damage: OnDamage,
): AsyncGenerator<PageRun> {
  const cursor = new ByteCursor(ranges.take(offset, offset + bytes))
  try {
    for (;;) {
      const isLast = !(await cursor.fill())
      const whole = isLast ? cursor.available : cursor.available - (cursor.available % pageBytes)
      if (whole > 0) yield runOf(cursor.bytes, cursor.start, whole, offset + cursor.offset)
      cursor.skip(whole)
      if (isLast) break
    }
    if (cursor.offset < bytes) {
      damage('torn-record', `expected ${bytes} bytes of a CPU's pages, found ${cursor.offset}`, offset + cursor.offset)
    }
  } finally {
    await cursor.close()
  }
}

/**
 * The compressed pages of a CPU: a u32 count of chunks; of each, two u32 sizes (compressed, decompressed) and the bytes.
 * The size in trace-cmd's table (3.1) is that of the chunks, without their count.
 */
export async function* packedPages(
  ranges: ByteRanges,
  { offset, bytes }: CpuPages,
  inflate: Inflate,
  pageBytes: number,
  damage: OnDamage,
): AsyncGenerator<PageRun> {
  const cursor = new ByteCursor(ranges.take(offset, offset + COUNT_BYTES + bytes))
  const has = async (count: number) => {
    while (cursor.available < count) if (!(await cursor.fill())) return false
    return true
  }
  const torn = () => {
    damage('torn-record', `expected ${bytes} bytes of a CPU's pages, found ${cursor.offset}`, offset + cursor.offset)
  }
  try {
    if (!(await has(COUNT_BYTES))) return torn()
    const chunks = viewAt(cursor).getUint32(0, true)
    cursor.skip(COUNT_BYTES)
    for (let i = 0; i < chunks; i++) {
      if (!(await has(8))) return torn()
      const [packed, plain] = [viewAt(cursor).getUint32(0, true), viewAt(cursor).getUint32(4, true)]
      const byte = offset + cursor.offset
      cursor.skip(8)
      if (packed > CHUNK_BYTES_MAX || plain > CHUNK_BYTES_MAX) {
        return damage(
          'damaged-compression',
          `expected at most ${CHUNK_BYTES_MAX} bytes in it, found ${packed}, ${plain}`,
          byte,
        )
      }
      if (!(await has(packed))) return torn()
      const { plain: pages, broken } = await inflate(cursor.bytes.subarray(cursor.start, cursor.start + packed), plain)
      const whole = broken === undefined ? pages.length : pages.length - (pages.length % pageBytes)
      if (whole > 0) yield runOf(pages, 0, whole, byte)
      if (broken !== undefined) damage('damaged-compression', `cannot be decompressed: ${broken}`, byte)
      cursor.skip(packed)
    }
  } finally {
    await cursor.close()
  }
}

function runOf(bytes: Uint8Array, start: number, length: number, byte: number): PageRun {
  return { view: new DataView(bytes.buffer, bytes.byteOffset + start, length), at: 0, end: length, byte }
}

function viewAt({ bytes, start, end }: ByteCursor): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + start, end - start)
}
