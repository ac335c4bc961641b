import type { Position } from '../../errors.ts'
import { ReorderWindow, type Timed } from '../../input/reorder.ts'
import type { Capabilities, Clock, IssueEvent, TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import type { Times } from '../../model/times.ts'
import type { ReadContext } from '../format.ts'
import { EventBatch } from './batches.ts'
import { givenOpNames, inferOpNames, type OpNames, type OpUse } from './op-table.ts'

/** Issues that wait with the first window; of a log with more of them, the preview sees fewer records. */
const EARLY_ISSUES_MAX = 1000

/** Decisions from the first records. */
export interface Preview {
  /** Uses of op numbers, to choose the op table; undefined: the log has none. */
  readonly uses?: readonly OpUse[]
  /** For the trace: the decisions, and why. */
  readonly attributes: Readonly<Record<string, string | number>>
  readonly capabilities?: Capabilities | undefined
  /** Default: MONOTONIC. */
  readonly clock?: Clock | 'unknown'
  /** What the times are, where they are not recorded ones. */
  readonly times?: Times | undefined
  /** Add to the log's times for times of that clock. */
  readonly shiftNs?: bigint
}

/**
 * Makes events of a log that does not record all facts. Records wait in a window, which sorts late ones; missing facts
 * are inferred from the first window, before the first event. So the result depends on the log alone and not on how it
 * is cut into chunks.
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

  /** `size`: number of records that wait in the window. */
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

  /** Adds the next record. */
  add(record: T): void {
    const earliest = this.window.push(record)
    if (!earliest) return
    if (!this.batch.hasBegun) this.begin([earliest, ...this.window.waiting])
    this.release(earliest)
  }

  /** Adds an issue. */
  report(issue: IssueEvent): void {
    const { batch } = this
    batch.add(issue)
    if (!batch.hasBegun && batch.size > EARLY_ISSUES_MAX) this.begin(this.window.waiting)
  }

  /** Adds the issue of a record that is more than `size` records late; `what` names the records. */
  protected reportLate(what: string, byNs: number, at: Position, atNs: number): void {
    const detail = `expected at most ${this.size} ${what} out of order, found one ${byNs} ns late; left out`
    this.report(issueOf('late-record', detail, at, atNs))
  }

  /** Adds an event that needs no order. */
  emit(event: TraceEvent): void {
    this.batch.add(event)
  }

  /** The input has ended: releases all records. */
  finish(): void {
    if (!this.batch.hasBegun) this.begin(this.window.waiting)
    for (let next = this.window.shift(); next; next = this.window.shift()) this.release(next)
    this.close()
  }

  /** Decides from the first records, once; they are in order of time. */
  protected abstract preview(records: readonly T[]): Preview

  /** Makes events of the next record in order of time; only those more than `size` records late are out of order. */
  protected abstract release(record: T): void

  /** Ends open ranges. */
  protected close(): void {}

  private begin(records: readonly T[]): void {
    const { context, format, batch } = this
    const { names, opTable } = context
    const { uses, attributes, capabilities, clock = 'MONOTONIC', shiftNs = 0n, times } = this.preview(records)
    if (uses) this.ops = opTable ? givenOpNames(opTable, uses, names) : inferOpNames(uses, names)
    const about = uses ? { op_numbers: this.ops.about, ...attributes } : attributes
    const problem = uses && this.ops.problem
    batch.begin(
      {
        kind: 'input',
        format,
        clock,
        originNs: this.originNs + shiftNs,
        attributes: about,
        ...(times && { times }),
        ...(capabilities && { capabilities }),
      },
      ...(problem ? [issueOf('op-table-unclear', problem, { byte: 0 }, 0)] : []),
    )
  }
}
