import { Ascii } from '../../../bytes/ascii.ts'
import { key, type Scan } from './scan.ts'

/** What stands ahead of an event's own fields on its line: who, where, when, which event. */
export abstract class Columns {
  /** Thread that it happened on. */
  tid = -1
  /** Its process; -1 = not told. */
  tgid = -1
  cpu = -1
  /** In an interrupt. */
  isIrq = false
  /** The thread's command name, as it was then or is now: `[commStart, commEnd)`. */
  commStart = 0
  commEnd = 0
  /** The event's name, without its system. */
  nameStart = 0
  nameEnd = 0

  constructor(protected readonly scan: Scan) {}

  /**
   * Reads the columns of the line that the scan is at the start of, and leaves it at the event's fields, its time being that of
   * the line. False where it is no such line.
   */
  abstract read(): boolean

  /** Reads `system:name:`, `name:` or `PERF_RECORD_NAME`, up to the fields behind it. */
  protected readName(): boolean {
    const { scan } = this
    const { bytes, end } = scan
    let at = scan.at
    this.nameStart = at
    for (; at < end && bytes[at] !== Ascii.Blank && bytes[at] !== Ascii.OpenRound; at++) {
      if (bytes[at - 1] === Ascii.Colon && at > this.nameStart) this.nameStart = at
    }
    const isRecord = bytes[at - 1] !== Ascii.Colon
    this.nameEnd = isRecord ? at : at - 1
    if (this.nameEnd <= this.nameStart) return false
    scan.at = this.nameStart
    if (isRecord && !scan.eat(RECORD)) return false
    scan.at = at
    scan.skipBlanks()
    return true
  }

  /** `[007]` */
  protected readCpu(): boolean {
    this.scan.at++
    this.cpu = this.scan.digits()
    return this.cpu >= 0 && this.scan.eatByte(Ascii.CloseSquare)
  }
}

/** Perf's own records have no colon behind them. */
const RECORD = key('PERF_RECORD_')
