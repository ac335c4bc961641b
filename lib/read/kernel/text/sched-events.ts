import type { Position } from '../../../errors.ts'
import { ReorderWindow } from '../../../input/reorder-window.ts'
import type { Clock, SwitchEvent, ThreadEvent, TraceEvent, WakingEvent } from '../../../model/events.ts'
import type { EventMaker } from '../../common/line-log.ts'
import type { LlamaRecord } from './llama-lines.ts'

/** What the kernel's log tells. */
export type SchedEvent = SwitchEvent | WakingEvent | ThreadEvent

/** What is known of the input once its first window has been seen. */
export interface About {
  readonly clock: Clock | 'unknown'
  /** How much later than its own times it is on that clock. */
  readonly shiftNs: bigint
  readonly attributes: Readonly<Record<string, string | number>>
}

/** Issues that are held back with the first window. */
const EARLY_ISSUES_MAX = 1000

/**
 * Hands events on in order of their times: a window of them is held back, which puts late ones in order. What the input is
 * gets decided when the first of them leaves it: a marker in the log may name the clock.
 */
export class SchedEvents implements EventMaker {
  private events: TraceEvent[] = []
  private early: TraceEvent[] | undefined = []
  private originNs = 0n
  /** Of the last event that was handed on. */
  private lastNs = -Infinity
  private readonly window: ReorderWindow<SchedEvent | LlamaRecord>
  /** Of the first window: wakeups that count only where there are no wakings. */
  private readonly wakeups = new Set<SchedEvent>()
  private hasWakings = false

  /**
   * `size`: how many events are held back; `about` is asked once, and `expand` for what records become that stand for several
   * events.
   */
  constructor(
    private readonly format: string,
    private readonly size: number,
    private readonly about: () => About,
    private readonly expand: (record: LlamaRecord) => readonly TraceEvent[] = () => [],
  ) {
    this.window = new ReorderWindow(size)
  }

  /** Has the input been told, so that nothing can be said of it any more? */
  get hasBegun(): boolean {
    return this.early === undefined
  }

  start(originNs: bigint): void {
    this.originNs = originNs
  }

  /** Takes an event in; `at` is where it stands. */
  add(event: SchedEvent | LlamaRecord, byte: number, line: number): void {
    const { atNs } = event
    if (atNs < this.lastNs) {
      const late = `found one ${this.lastNs - atNs} ns late`
      const detail = `expected at most ${this.size} events out of order, ${late}; left out`
      this.issue({ byte, line }, 'event out of order', detail, atNs)
      return
    }
    const earliest = this.window.push(event)
    if (earliest === undefined) return
    if (this.early) this.begin()
    this.release(earliest)
  }

  /** A `sched_waking` is there: `sched_wakeup`s, which follow each of them, say nothing new. */
  noteWaking(): void {
    this.hasWakings = true
  }

  /** Takes a `sched_wakeup` in. */
  addWakeup(event: WakingEvent, byte: number, line: number): void {
    if (this.hasWakings) return
    if (this.early) this.wakeups.add(event)
    this.add(event, byte, line)
  }

  /** Hands on an event that needs no order. */
  tell(event: TraceEvent): void {
    ;(this.early ?? this.events).push(event)
  }

  issue(at: Position, title: string, detail: string, atNs: number): void {
    this.tell({ kind: 'issue', title, detail, at, atNs })
    if (this.early && this.early.length > EARLY_ISSUES_MAX) this.begin()
  }

  take(): TraceEvent[] {
    const { events } = this
    this.events = []
    return events
  }

  finish(): void {
    if (this.early) this.begin()
    for (let next = this.window.shift(); next; next = this.window.shift()) this.release(next)
  }

  private release(event: SchedEvent | LlamaRecord): void {
    this.lastNs = event.atNs
    if (event.kind === 'llama') this.events.push(...this.expand(event))
    else if (this.wakeups.size === 0 || !this.wakeups.delete(event) || !this.hasWakings) this.events.push(event)
  }

  private begin(): void {
    const early = this.early ?? []
    const { clock, shiftNs, attributes } = this.about()
    this.early = undefined
    const originNs = this.originNs + shiftNs
    this.events.push({ kind: 'input', format: this.format, clock, originNs, attributes }, ...early)
  }
}
