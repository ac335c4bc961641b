import { ReorderWindow, type Timed } from '../../input/reorder-window.ts'
import type { Clock, IssueEvent, TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { ReadContext } from '../format.ts'
import { EventBatch } from './batches.ts'
import { givenOpNames, inferOpNames, type OpNames, type OpUse } from './op-table.ts'

/** Issues that wait with the first window; a log that is bad from the start is judged by what there is. */
const EARLY_ISSUES_MAX = 1000

/** What a look at the first records shows. */
export interface Preview {
  /** Uses of op numbers, to choose the op table by; undefined where a log has none. */
  readonly uses?: readonly OpUse[]
  /** What was decided, for the trace's attributes. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** MONOTONIC where nothing else is said. */
  readonly clock?: Clock | 'unknown'
  /** How much later than its own times the log is on that clock. */
  readonly shiftNs?: bigint
}

/**
 * Turns records of a log that leaves much unsaid into events. A window of records is held back: it puts late ones in
 * order, and what must be inferred is decided from the first window before the first event is made. So the result
 * depends on the log alone and not on how it is cut into chunks.
 *
 *     add ─▶ window of `size` records ─▶ preview, once ─▶ release, in order of time ─▶ batch
 */
export abstract class LookAhead<T extends Timed> {
  readonly batch = new EventBatch()
  protected ops!: OpNames
  protected readonly names
  protected readonly definitions
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

  /** Fixes the input's origin, in nanoseconds of the log's clock. */
  start(originNs: bigint): void {
    this.originNs = originNs
  }

  /** Takes the next record in. */
  add(record: T): void {
    const earliest = this.window.push(record)
    if (!earliest) return
    if (!this.batch.hasBegun) this.begin([earliest, ...this.window.waiting])
    this.release(earliest)
  }

  /** Something in the input was wrong. */
  report(issue: IssueEvent): void {
    const { batch } = this
    batch.add(issue)
    if (!batch.hasBegun && batch.size > EARLY_ISSUES_MAX) this.begin(this.window.waiting)
  }

  /** Adds an event that needs no order. */
  emit(event: TraceEvent): void {
    this.batch.add(event)
  }

  /** The input has ended: nothing is held back any more. */
  finish(): void {
    if (!this.batch.hasBegun) this.begin(this.window.waiting)
    for (let next = this.window.shift(); next; next = this.window.shift()) this.release(next)
    this.close()
  }

  /** Decides, once, what needs a look at many records, in order of time. */
  protected abstract preview(records: readonly T[]): Preview

  /** Takes a record in order of time (later than `size` records: out of order). */
  protected abstract release(record: T): void

  /** Ends what is still open. */
  protected close(): void {}

  private begin(records: readonly T[]): void {
    const { context, format, batch } = this
    const { names, opTable } = context
    const { uses, attributes, clock = 'MONOTONIC', shiftNs = 0n } = this.preview(records)
    if (uses) this.ops = opTable ? givenOpNames(opTable, uses, names) : inferOpNames(uses, names)
    const about = uses ? { op_numbers: this.ops.about, ...attributes } : attributes
    const problem = uses && this.ops.problem
    batch.begin(
      { kind: 'input', format, clock, originNs: this.originNs + shiftNs, attributes: about },
      ...(problem ? [issueOf('op-table-unclear', problem, { byte: 0 }, 0)] : []),
    )
  }
}
