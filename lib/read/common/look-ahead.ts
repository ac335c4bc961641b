import type { Position } from '../../errors.ts'
import { ReorderWindow, type Timed } from '../../input/reorder-window.ts'
import type { IssueEvent, TraceEvent } from '../../model/events.ts'
import type { ReadContext } from '../format.ts'
import { givenOpNames, inferOpNames, type OpNames, type OpUse } from './op-table.ts'

/** Issues that are held back with the first window; a log that is bad from the start is judged by what there is. */
const EARLY_ISSUES_MAX = 1000

/** What a look at the first records told. */
export interface Preview {
  /** Uses of op numbers, to choose the op table by; undefined where a log has none. */
  readonly uses?: readonly OpUse[]
  /** What was decided, for the trace's attributes. */
  readonly attributes: Readonly<Record<string, string | number>>
}

/**
 * Turns records of a log that leaves much unsaid into events. A window of records is held back: it puts late ones in
 * order, and what must be inferred is decided from the first window before the first event is made. So the result
 * depends on the log alone and not on how it is cut into chunks.
 */
export abstract class LookAhead<T extends Timed> {
  protected ops!: OpNames
  protected readonly names
  protected readonly definitions
  private events: TraceEvent[] = []
  private early: TraceEvent[] | undefined = []
  private originNs = 0n
  private readonly window: ReorderWindow<T>

  /** `size`: how many records are held back. */
  constructor(
    private readonly format: string,
    private readonly context: ReadContext,
    protected readonly size: number,
  ) {
    this.names = context.names
    this.definitions = context.definitions
    this.window = new ReorderWindow(size)
  }

  /** Fixes the input's origin, in nanoseconds of CLOCK_MONOTONIC. */
  start(originNs: bigint): void {
    this.originNs = originNs
  }

  /** Takes the next record in. */
  add(record: T): void {
    const earliest = this.window.push(record)
    if (!earliest) return
    this.begin([earliest, ...(this.early ? this.window.waiting : [])])
    this.release(earliest)
  }

  /** Something in the input was wrong; `atNs` is about when. */
  issue(at: Position, title: string, detail: string, atNs: number): void {
    this.report({ kind: 'issue', title, detail, at, atNs })
  }

  /** Adds an issue. */
  report(event: IssueEvent): void {
    if (!this.early) {
      this.events.push(event)
      return
    }
    this.early.push(event)
    if (this.early.length > EARLY_ISSUES_MAX) this.begin(this.window.waiting)
  }

  /** The events made since the last call. */
  take(): TraceEvent[] {
    const events = this.events
    this.events = []
    return events
  }

  /** The input has ended: nothing is held back any more. */
  finish(): void {
    this.begin(this.window.waiting)
    for (let next = this.window.shift(); next; next = this.window.shift()) this.release(next)
    this.close()
  }

  protected emit(event: TraceEvent): void {
    this.events.push(event)
  }

  /** Decides, once, what needs a look at many records, in order of time. */
  protected abstract preview(records: readonly T[]): Preview

  /** Takes a record in order of time (later than `size` records: out of order). */
  protected abstract release(record: T): void

  /** Ends what is still open. */
  protected abstract close(): void

  private begin(records: readonly T[]): void {
    const early = this.early
    if (!early) return
    this.early = undefined
    const { names, opTable } = this.context
    const { uses, attributes } = this.preview(records)
    if (uses) this.ops = opTable ? givenOpNames(opTable, uses, names) : inferOpNames(uses, names)
    const about = uses ? { op_numbers: this.ops.about, ...attributes } : attributes
    this.emit({ kind: 'input', format: this.format, clock: 'MONOTONIC', originNs: this.originNs, attributes: about })
    if (uses && this.ops.problem) this.issue({ byte: 0 }, 'op table unclear', this.ops.problem, 0)
    for (const issue of early) this.emit(issue)
  }
}
