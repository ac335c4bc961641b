import { Ascii } from '../../../bytes/ascii.ts'
import { Columns } from './columns.ts'

/** Where the kernel puts the `-` between name and thread: after 16 bytes, or 8 (latency format). Names may hold more of them. */
const DASHES = [16, 8]
/** How far to look for it in a text that somebody else wrote, or that begins with a buffer's name (`trace-cmd report -B`). */
const DASH_MAX = 64
const IRQ = new Set(Array.from('hHsZz', (letter) => letter.charCodeAt(0)))
/** Flags: interrupts off, reschedule, in an interrupt, depth of preemption, of migration. */
const FLAGS_MIN = 4
const FLAGS_MAX = 6

/**
 * The columns of ftrace's texts (kernel/trace/trace_output.c) and of `trace-cmd report`:
 *
 *              bash-16879   (  16879) [001] d..2. 24956.123456: sched_switch: …      each but [001] may be missing
 *     bash-16879     1d..2. 24956us+: sched_switch: …                                latency format: time since the buffer's start
 */
export class FtraceColumns extends Columns {
  /** The times are microseconds since the buffer's start. */
  isRelative = false
  /** The times are no times: ticks, or a counter. */
  isTicks = false
  /** Where the dash was on the last line, from its start. */
  private dash = DASHES[0]!

  override read(): boolean {
    this.scan.trimEnd()
    const start = this.scan.at
    if (this.readFrom(start, this.dash)) return true
    for (const dash of DASHES) if (dash !== this.dash && this.readFrom(start, dash)) return true
    for (let dash = 1; dash <= DASH_MAX; dash++) if (this.readFrom(start, dash)) return true
    return false
  }

  /** Reads a line whose `-` is at `start + dash`. */
  private readFrom(start: number, dash: number): boolean {
    const { scan } = this
    if (start + dash >= scan.end || scan.bytes[start + dash] !== Ascii.Minus) return false
    scan.at = start + dash + 1
    this.tid = scan.digits()
    if (this.tid < 0) return false
    scan.skipBlanks()
    this.tgid = -1
    if (scan.byte === Ascii.OpenRound && !this.readTgid()) return false
    const isBracketed = scan.byte === Ascii.OpenSquare
    if (isBracketed ? !this.readCpu() : !this.readLatencyCpu()) return false
    if (isBracketed) scan.skipBlanks()
    if (!this.readFlags(!isBracketed) || !this.readStamp() || !this.readName()) return false
    this.dash = dash
    this.commEnd = start + dash
    this.commStart = Math.max(start, this.commEnd - DASHES[0]!)
    while (this.commStart < this.commEnd && scan.bytes[this.commStart] === Ascii.Blank) this.commStart++
    return true
  }

  /** `(  16879)`, `(-------)` */
  private readTgid(): boolean {
    const { scan } = this
    scan.at++
    scan.skipBlanks()
    if (scan.byte === Ascii.Minus) while (scan.byte === Ascii.Minus) scan.at++
    else this.tgid = scan.digits()
    if (!scan.eatByte(Ascii.CloseRound)) return false
    scan.skipBlanks()
    return true
  }

  private readLatencyCpu(): boolean {
    this.cpu = this.scan.digits()
    return this.cpu >= 0
  }

  private readFlags(isRequired: boolean): boolean {
    const { scan } = this
    this.isIrq = false
    const first = scan.byte
    if (first >= Ascii.Zero && first <= Ascii.Nine) return !isRequired
    const start = scan.at
    scan.skipWord()
    const length = scan.at - start
    if (length < FLAGS_MIN || length > FLAGS_MAX) return false
    this.isIrq = IRQ.has(scan.bytes[start + 2]!)
    scan.skipBlanks()
    return true
  }

  /** `123.456789:`, `123.456789: (+12)`, `24956us+:` */
  private readStamp(): boolean {
    const { scan } = this
    const start = scan.at
    this.isRelative = false
    this.isTicks = false
    if (!scan.time()) {
      scan.at = start
      const count = scan.digits()
      if (count < 0) return false
      this.isRelative = scan.byte === 0x75 && scan.bytes[scan.at + 1] === 0x73 // "us"
      this.isTicks = !this.isRelative
      scan.seconds = Math.floor(count / 1e6)
      scan.nanos = (count % 1e6) * 1000
      if (this.isRelative) scan.at += 2
    }
    if (scan.byte !== Ascii.Colon) scan.at++ // how long it took to the next one: + ! # * @ $
    if (!scan.eatByte(Ascii.Colon)) return false
    scan.skipBlanks()
    if (scan.byte === Ascii.OpenRound) {
      scan.skipWord()
      scan.skipBlanks()
    }
    return true
  }
}
