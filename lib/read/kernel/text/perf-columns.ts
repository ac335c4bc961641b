import { Ascii } from '../../../bytes/ascii.ts'
import { Columns } from './columns.ts'

/** Names are padded to so many bytes, but for records with call stacks. */
const COMM_WIDTH = 16
const MISC_MAX = 3

/**
 * The columns of `perf script` (tools/perf/builtin-script.c), most of which -F may leave out:
 *
 *              perf   415/415   [000] K 16528.503449201:          1       sched:sched_waking: …
 *     perf   415 [000] 16528.503449: sched:sched_waking: …          a record with a call stack, which follows
 */
export class PerfColumns extends Columns {
  /** How far the name goes on the last line. */
  private width = COMM_WIDTH

  override read(): boolean {
    this.scan.trimEnd()
    const start = this.scan.at
    if (this.readFrom(start, this.width) || this.readFrom(start, COMM_WIDTH)) return true
    for (let width = COMM_WIDTH - 1; width >= 0; width--) if (this.readFrom(start, width)) return true
    return false
  }

  /** Reads a line whose name takes `width` bytes. */
  private readFrom(start: number, width: number): boolean {
    const { scan } = this
    if (start + width >= scan.end || scan.bytes[start + width] !== Ascii.Blank) return false
    scan.at = start + width
    scan.skipBlanks()
    if (!this.readIds() || !this.readMiddle() || !this.readStamp()) return false
    this.width = width
    this.commStart = start
    this.commEnd = start + width
    while (this.commStart < this.commEnd && scan.bytes[this.commStart] === Ascii.Blank) this.commStart++
    return true
  }

  /** `415`, `415/418`, `-1`: a thread that is gone. */
  private readIds(): boolean {
    const { scan } = this
    this.tgid = -1
    this.tid = this.readId()
    if (scan.eatByte(Ascii.Slash)) {
      this.tgid = this.tid
      this.tid = this.readId()
    }
    return !Number.isNaN(this.tid) && !Number.isNaN(this.tgid) && scan.byte === Ascii.Blank
  }

  private readId(): number {
    return this.scan.integer()
  }

  /** `[000] K` */
  private readMiddle(): boolean {
    const { scan } = this
    scan.skipBlanks()
    this.cpu = -1
    if (scan.byte === Ascii.OpenSquare) {
      if (!this.readCpu()) return false
      scan.skipBlanks()
    }
    if (isDigit(scan.byte) || scan.byte === Ascii.Minus) return true
    const misc = scan.at
    scan.skipWord()
    if (scan.at - misc > MISC_MAX) return false
    scan.skipBlanks()
    return true
  }

  /** `16528.503449:          1       sched:sched_waking:` */
  private readStamp(): boolean {
    const { scan } = this
    const isNegative = scan.eatByte(Ascii.Minus)
    if (!scan.time() || !scan.eatByte(Ascii.Colon)) return false
    if (isNegative) {
      scan.seconds = -scan.seconds
      scan.nanos = -scan.nanos
    }
    scan.skipBlanks()
    if (isDigit(scan.byte)) {
      scan.skipWord()
      scan.skipBlanks()
    }
    return this.readName()
  }
}

const isDigit = (byte: number) => byte >= Ascii.Zero && byte <= Ascii.Nine
