import { LINE_BYTES_MAX, LineCursor } from '../../input/line-cursor.ts'
import type { IssueEvent, TraceEvent } from '../../model/events.ts'
import { type IssueCode, issueOf } from '../../model/issues.ts'
import { type ChunkReader, type EventBatch, readBatches } from './batches.ts'
import { pickOrigin, TimeGuard } from './time-guard.ts'

/** The origin is picked from so many lines. */
const ORIGIN_LINES = 3
/** Messages of the loggers' libraries (BCC, libbpf) on losses, where they went into the log, too. */
const LOSS = /^(?:Possibly lost (\d+) samples|Lost (\d+) events on CPU \d+)\s*$/

/** The origin: its quotient and remainder by 10^9. */
export interface Origin {
  readonly high: number
  readonly low: number
}

/** Makes events of the lines. */
export interface EventMaker {
  /** Fixes the input's origin, in absolute nanoseconds. */
  start(originNs: bigint): void
  /** Something in the input was wrong. */
  report(issue: IssueEvent): void
  readonly batch: EventBatch
  /** The input has ended: releases all records. */
  finish(): void
}

/** Reads a log of lines, each with an absolute time in nanoseconds. Subclasses read the contents of a line. */
export abstract class LineLog<M extends EventMaker = EventMaker> implements ChunkReader {
  protected readonly guard = new TimeGuard()
  protected readonly lines: LineCursor
  /** Has the first row been found? */
  protected hasHead = false
  private origin: Origin | undefined

  constructor(
    source: AsyncIterable<Uint8Array>,
    protected readonly format: string,
    protected readonly maker: M,
  ) {
    this.lines = new LineCursor(source, format)
  }

  read(): AsyncGenerator<TraceEvent[]> {
    return readBatches(this.lines, this)
  }

  get batch(): EventBatch {
    return this.maker.batch
  }

  readChunk(isLast: boolean): boolean {
    this.hasHead ||= this.readHead()
    if (this.hasHead && (isLast || this.origin || canPickOrigin(this.lines.ahead()))) this.readLines()
    if (!isLast) return false
    this.finish()
    this.maker.finish()
    return false
  }

  /** Reads the lines before the first row; false: more bytes are needed. */
  protected readHead(): boolean {
    return true
  }

  /** The time of the row `[start, end)`; undefined: it is no row. */
  protected abstract stampOf(bytes: Uint8Array, start: number, end: number): bigint | undefined

  /** Reads the current line, which is not empty. */
  protected abstract readLine(origin: Origin): void

  /** The input has ended. */
  protected finish(): void {}

  protected issue(code: IssueCode, detail: string): void {
    this.maker.report(issueOf(code, detail, this.lines.position, this.guard.lastNs))
  }

  /** Reports that the current line cannot be read: it is a logger's message on losses, torn, or an issue of `code`. */
  protected reject(code: IssueCode, detail: string): void {
    const { bytes, start, end, isTorn } = this.lines
    const loss = end - start < 80 ? LOSS.exec(decoder.decode(bytes.subarray(start, end))) : null
    if (loss) this.issue('lost-records', `the logger reports that ${loss[1] ?? loss[2]} were lost`)
    else this.issue(isTorn ? 'torn-record' : code, detail)
  }

  /** Is the time plausible? Adds an issue if not. */
  protected believes(atNs: number): boolean {
    const doubt = this.guard.doubt(atNs)
    if (doubt !== undefined) this.issue('impossible-time', doubt)
    return doubt === undefined
  }

  private readLines(): void {
    const { lines } = this
    this.origin ??= this.pickOrigin()
    while (lines.next()) if (lines.end > lines.start) this.readLine(this.origin)
  }

  /** Picks the origin from the first rows, so that one damaged timestamp cannot move all events. */
  private pickOrigin(): Origin {
    const stamps: bigint[] = []
    const ahead = this.lines.ahead()
    for (let start = 0, line = 0; line < ORIGIN_LINES && start < ahead.length; line++) {
      const newline = ahead.indexOf(0x0a, start)
      const end = newline < 0 ? ahead.length : newline
      const stamp = this.stampOf(ahead, start, end)
      if (stamp !== undefined) stamps.push(stamp)
      start = end + 1
    }
    const origin = pickOrigin(stamps)
    this.maker.start(origin)
    return { high: Number(origin / 1_000_000_000n), low: Number(origin % 1_000_000_000n) }
  }
}

/** Does the window contain the lines that the origin is picked from, or a line that is too long to wait for? */
function canPickOrigin(ahead: Uint8Array): boolean {
  return ahead.length > LINE_BYTES_MAX || countLines(ahead) >= ORIGIN_LINES
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(0x0a); at >= 0 && lines < ORIGIN_LINES; at = bytes.indexOf(0x0a, at + 1)) lines++
  return lines
}

const decoder = new TextDecoder()
