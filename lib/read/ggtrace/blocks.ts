import type { ByteCursor } from '../../input/byte-cursor.ts'
import {
  BLOCK_ALIGNMENT,
  BLOCK_BYTES_MAX,
  BlockKind,
  checksum,
  HEADER_BYTES,
  Header,
  MAGIC,
} from '../../log/ggtrace-layout.ts'
import type { IssueCode } from '../../model/issues.ts'
import { BYTES_MIN, recordName } from './fields.ts'

/** State of a block in the file: `open` and `torn` ones have no valid checksum. */
export type BlockState = 'sealed' | 'open' | 'torn' | 'damaged'

/** A block of a log. Its bytes are valid until {@link BlockFinder.next} is called; {@link keepBlock} copies them. */
export interface Block {
  readonly state: BlockState
  readonly view: DataView
  /** Start of the block in `view`, and the end of its records. */
  readonly at: number
  readonly end: number
  /** Offset in the input. */
  readonly byte: number
  readonly kind: number
  readonly writer: number
  readonly sequence: number
  readonly needs: number
  readonly dropped: number
}

/** Reports an issue at a byte of the input. */
export type Report = (code: IssueCode, detail: string, byte: number) => void

/**
 * Checksums of overlapping damaged blocks are computed up to so many times the bytes of the input so far, and a few blocks
 * more. A damaged size makes few blocks overlap; an input that is made to overlap would take quadratic time.
 */
const OVERLAP_MAX = 4

/** Finds the blocks of a log, and damage between them. */
export class BlockFinder {
  private view: DataView = new DataView(new ArrayBuffer(0))
  /** Start of the damaged bytes before the next block; undefined: there are none. */
  private damageStart: number | undefined
  /** The damage here is reported already. */
  private isQuiet = false
  /** Bytes of an open block with whole records. */
  private walked = 0
  /** Number of bytes that checksums were computed of. */
  checkedBytes = 0
  /** End of the last block whose checksum was wrong. */
  private wrongUntil = 0
  /** Bytes of such blocks that begin within others of them. */
  private overlapBytes = 0

  constructor(private readonly report: Report) {}

  /** The next block; undefined where more bytes are needed, or, in the last window, where there is none. */
  next(cursor: ByteCursor, isLast: boolean): Block | undefined {
    while (this.seek(cursor, isLast)) {
      const { available, offset } = cursor
      if (available < HEADER_BYTES) {
        if (isLast) this.leave(cursor, `expected a header of ${HEADER_BYTES} bytes, found the first ${available}`)
        return undefined
      }
      const at = cursor.bytes.byteOffset + cursor.start
      const size = this.view.getUint32(at + Header.size, true)
      if (size === 0) return this.takeUnsealed(cursor, isLast, 'open')
      if (size < HEADER_BYTES || size % BLOCK_ALIGNMENT !== 0 || size > BLOCK_BYTES_MAX) {
        const wanted = `a block size of ${HEADER_BYTES} to ${BLOCK_BYTES_MAX}, a multiple of ${BLOCK_ALIGNMENT}`
        this.report('damaged-block', `expected ${wanted}, found ${size}`, offset)
        this.skipMagic(cursor)
      } else if (size > available) {
        if (!isLast) return undefined
        this.report('torn-block', `expected ${size} bytes, found the first ${available}; read unchecked`, offset)
        return this.takeUnsealed(cursor, isLast, 'torn')
      } else if (offset < this.wrongUntil && this.overlapBytes + size > OVERLAP_MAX * offset + 4 * BLOCK_BYTES_MAX) {
        this.report('damaged-block', `its ${size} bytes are left out unchecked: too many before it are damaged`, offset)
        this.skipMagic(cursor)
      } else return this.takeSealed(cursor, at, size)
    }
    return undefined
  }

  /** Skips zeros and damage; true at a magic number. */
  private seek(cursor: ByteCursor, isLast: boolean): boolean {
    const { bytes, start, available, offset } = cursor
    if (this.view.buffer !== bytes.buffer) this.view = new DataView(bytes.buffer)
    const { view } = this
    const at = bytes.byteOffset + start
    let skipped = 0
    for (; skipped + BLOCK_ALIGNMENT <= available; skipped += BLOCK_ALIGNMENT) {
      const word = view.getUint32(at + skipped, true)
      if (word === MAGIC) {
        cursor.skip(skipped)
        this.endDamage(offset + skipped)
        this.isQuiet = false
        return true
      }
      if (word !== 0 || view.getUint32(at + skipped + 4, true) !== 0) this.damageStart ??= offset + skipped
    }
    if (isLast && skipped < available) {
      if (bytes.subarray(start + skipped, start + available).some((byte) => byte !== 0)) {
        this.damageStart ??= offset + skipped
      }
      skipped = available
    }
    cursor.skip(skipped)
    if (isLast) this.endDamage(offset + skipped)
    return false
  }

  private endDamage(byte: number): void {
    const start = this.damageStart
    if (start === undefined) return
    this.damageStart = undefined
    if (this.isQuiet) return
    this.report('damaged-bytes', `expected a block or zeros, found ${byte - start} bytes of something else`, start)
  }

  private leave(cursor: ByteCursor, detail: string): void {
    this.report('torn-block', detail, cursor.offset)
    cursor.skip(cursor.available)
  }

  private skipMagic(cursor: ByteCursor): void {
    this.isQuiet = true
    cursor.skip(BLOCK_ALIGNMENT)
  }

  private takeSealed(cursor: ByteCursor, at: number, size: number): Block {
    const { view } = this
    const byte = cursor.offset
    // The contents of a ring's block change: the checksum is of its header only.
    const checked = view.getUint16(at + Header.kind, true) === BlockKind.Ring ? HEADER_BYTES : size
    const [stored, found] = [view.getUint32(at + Header.checksum, true), checksum(view, at, checked)]
    this.checkedBytes += checked
    if (stored === found) {
      cursor.skip(size)
      return blockOf('sealed', view, at, at + size, byte)
    }
    const sums = `expected checksum 0x${stored.toString(16)}, found 0x${found.toString(16)}`
    this.report('damaged-block', `${sums}; its ${size} bytes are left out`, byte)
    if (byte < this.wrongUntil) this.overlapBytes += checked
    this.wrongUntil = Math.max(this.wrongUntil, byte + size)
    // Its size may be damaged: the next block may begin within it.
    this.skipMagic(cursor)
    return blockOf('damaged', view, at, at + size, byte)
  }

  /** A block that is not sealed ends where a record is cut, or where another block starts. */
  private takeUnsealed(cursor: ByteCursor, isLast: boolean, state: BlockState): Block | undefined {
    const { view } = this
    const byte = cursor.offset
    const at = cursor.bytes.byteOffset + cursor.start
    const limit = Math.min(cursor.available, BLOCK_BYTES_MAX)
    const isWhole = isLast || limit === BLOCK_BYTES_MAX
    let end = Math.max(this.walked, HEADER_BYTES)
    for (;;) {
      const size = end + 4 <= limit ? view.getUint16(at + end + 2, true) : 4
      if (end + size > limit || end + 4 > limit) {
        if (isWhole) break
        this.walked = end
        return undefined
      }
      const head = view.getUint32(at + end, true)
      if (head === 0 || containsMagic(view, at, end, end + size)) break
      if (size < 4 || size % 4 !== 0) {
        const wanted = 'a record size of at least 4, a multiple of 4'
        this.report(
          'damaged-record',
          `expected ${wanted}, found ${size}; the rest of the block is left out`,
          byte + end,
        )
        break
      }
      end += size
    }
    this.walked = 0
    this.isQuiet = true
    cursor.skip(Math.min(cursor.available, Math.ceil(end / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT))
    return blockOf(state, view, at, at + end, byte)
  }
}

/** Does another block start between two places of the block at `at`? */
function containsMagic(view: DataView, at: number, start: number, end: number): boolean {
  const first = Math.ceil(start / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT
  for (let place = first; place + 4 <= end; place += BLOCK_ALIGNMENT) {
    if (view.getUint32(at + place, true) === MAGIC) return true
  }
  return false
}

function blockOf(state: BlockState, view: DataView, at: number, end: number, byte: number): Block {
  return {
    state,
    view,
    at,
    end,
    byte,
    kind: view.getUint16(at + Header.kind, true),
    writer: view.getUint16(at + Header.writer, true),
    sequence: view.getUint32(at + Header.sequence, true),
    needs: view.getUint32(at + Header.needs, true),
    dropped: view.getUint32(at + Header.dropped, true),
  }
}

/** The block with a copy of its bytes. */
export function keepBlock(block: Block): Block {
  const { view, at, end } = block
  return { ...block, view: new DataView(view.buffer.slice(at, end)), at: 0, end: end - at }
}

/** Calls `read` for each record of a block that is long enough for its type; returns the number of all records. */
export function forEachRecord(
  block: Block,
  report: Report,
  read: (type: number, at: number, end: number) => void,
): number {
  const { view, end } = block
  const shift = block.byte - block.at
  let count = 0
  for (let at = block.at + HEADER_BYTES; at + 4 <= end; count++) {
    const type = view.getUint16(at, true)
    const size = view.getUint16(at + 2, true)
    if (type === 0 && size === 0) break
    if (size < 4 || size % 4 !== 0 || at + size > end) {
      const wanted = `a record size of 4 to ${end - at}, a multiple of 4`
      report('damaged-record', `expected ${wanted}, found ${size}; the rest of the block is left out`, at + shift)
      break
    }
    const needed = BYTES_MIN[type] ?? 0
    if (needed > size) {
      const detail = `expected ${needed} bytes for a record ${recordName(type)}, found ${size}; left out`
      report('short-record', detail, at + shift)
    } else if (needed > 0) read(type, at, at + size)
    at += size
  }
  return count
}
