import { Ascii } from '../bytes/ascii.ts'
import { FormatError, type Position } from '../errors.ts'
import { ByteCursor } from './byte-cursor.ts'

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
/** Longer than any line of a log: an input without a line break for so long is no text. */
export const LINE_BYTES_MAX = 1 << 20

/** Lines of a text in chunks cut anywhere; as bytes, so that only what is needed gets decoded. */
export class LineCursor {
  /** The line is `[start, end)` of these, without its line break. Valid until the next {@link fill}. */
  bytes: Uint8Array = new Uint8Array(0)
  start = 0
  end = 0
  /** Offset of the line's first byte in the input. */
  offset = 0
  /** 1-based number of the line. */
  line = 0
  private readonly cursor: ByteCursor
  /** Number of lines that were left out because they are too long. */
  longLines = 0
  private searched = 0
  private ended = false
  private isInLong = false

  /** `format` is the reader's name, for errors. A line that is too long is an error, or is left out with `leavesLongOut`. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly format: string,
    private readonly leavesLongOut = false,
  ) {
    this.cursor = new ByteCursor(source)
  }

  /** Reads the next chunk; false at the end of the input, after which {@link next} also finds a last line without line break. */
  async fill(): Promise<boolean> {
    this.ended = !(await this.cursor.fill())
    return !this.ended
  }

  /** Moves to the next whole line in the window; false when there is none. */
  next(): boolean {
    const { cursor } = this
    let newline = cursor.bytes.indexOf(Ascii.LineFeed, cursor.start + this.searched)
    if (newline >= cursor.end) newline = -1
    const length = (newline < 0 ? cursor.end : newline) - cursor.start
    if (this.isInLong || length > LINE_BYTES_MAX) {
      if (this.leavesLongOut) return this.skipLong(length, newline >= 0) && this.next()
      const at = { byte: cursor.offset, line: this.line + 1 }
      throw new FormatError(this.format, at, `a line of at most ${LINE_BYTES_MAX} bytes`, 'a longer one')
    }
    if (newline < 0 && (!this.ended || length === 0)) {
      this.searched = length
      return false
    }
    this.searched = 0
    this.bytes = cursor.bytes
    this.start = cursor.start
    this.offset = cursor.offset
    this.end = newline < 0 ? cursor.end : newline
    cursor.skip(this.end - this.start + (newline < 0 ? 0 : 1))
    if (this.end > this.start && this.bytes[this.end - 1] === Ascii.Return) this.end--
    this.line++
    return true
  }

  /** Skips a line that is too long, or the next part of it; false: the window contains no more than that. */
  private skipLong(length: number, isWhole: boolean): boolean {
    if (!this.isInLong) this.longLines++
    this.isInLong = !isWhole
    this.searched = 0
    this.cursor.skip(isWhole ? length + 1 : length)
    if (isWhole) this.line++
    return isWhole
  }

  /** The place of the current line. */
  get position(): Position {
    return { byte: this.offset, line: this.line }
  }

  /** The current line as text. For rare lines, or small logs: decoding whole lines is slow. */
  get text(): string {
    return decoder.decode(this.bytes.subarray(this.start, this.end))
  }

  /** The bytes after the current line, up to the window's end. */
  ahead(): Uint8Array {
    const { bytes, start, end } = this.cursor
    return bytes.subarray(start, end)
  }

  /** Has the input's last byte been seen? */
  get isEnding(): boolean {
    return this.ended
  }

  /** Is the current line the input's last, without a line break? */
  get isTorn(): boolean {
    return this.ended && this.cursor.available === 0 && this.bytes[this.cursor.start - 1] !== Ascii.LineFeed
  }

  async close(): Promise<void> {
    await this.cursor.close()
  }
}
