import type { Clock, SwitchEvent, ThreadEvent, TraceEvent, WakingEvent } from '../../../model/events.ts'
import { issueOf } from '../../../model/issues.ts'
import { LookAhead, type Preview } from '../../common/look-ahead.ts'
import type { ReadContext } from '../../format.ts'
import type { LlamaRecord } from './llama-lines.ts'

/** What the kernel's log records. */
export type SchedEvent = SwitchEvent | WakingEvent | ThreadEvent

/** What is known of the input once its first window has been seen. */
export interface About extends Preview {
  readonly clock: Clock | 'unknown'
}

/** Puts events in the order of their times. What the input is gets decided with the first window: a marker in it may name the clock. */
export class SchedEvents extends LookAhead<SchedEvent | LlamaRecord> {
  /** Of the last event that was handed on. */
  private lastNs = -Infinity
  /** Of the first window: wakeups that count only where there are no wakings. */
  private readonly wakeups = new Set<SchedEvent>()
  private hasWakings = false

  /** `about` is asked once, and `expand` for what records become that stand for several events. */
  constructor(
    format: string,
    context: ReadContext,
    size: number,
    private readonly about: () => About,
    private readonly expand: (record: LlamaRecord) => readonly TraceEvent[],
  ) {
    super(format, context, size)
  }

  /** Takes an event in; `byte` and `line` are where it stands. */
  addAt(event: SchedEvent | LlamaRecord, byte: number, line: number): void {
    const { atNs } = event
    if (atNs >= this.lastNs) return this.add(event)
    const late = `found one ${this.lastNs - atNs} ns late`
    const detail = `expected at most ${this.size} events out of order, ${late}; left out`
    this.report(issueOf('record-out-of-order', detail, { byte, line }, atNs))
  }

  /** A `sched_waking` is there: `sched_wakeup`s, which follow each of them, say nothing new. */
  noteWaking(): void {
    this.hasWakings = true
  }

  /** Takes a `sched_wakeup` in. */
  addWakeup(event: WakingEvent, byte: number, line: number): void {
    if (this.hasWakings) return
    if (!this.batch.hasBegun) this.wakeups.add(event)
    this.addAt(event, byte, line)
  }

  protected override preview(): About {
    return this.about()
  }

  protected override release(event: SchedEvent | LlamaRecord): void {
    this.lastNs = event.atNs
    if (event.kind === 'llama') for (const made of this.expand(event)) this.emit(made)
    else if (this.wakeups.size === 0 || !this.wakeups.delete(event) || !this.hasWakings) this.emit(event)
  }
}
