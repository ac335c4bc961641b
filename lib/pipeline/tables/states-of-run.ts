import type { OperatorEvent, TraceEvent } from '../../model/events.ts'
import { inferredText } from '../../model/inferred.ts'
import type { Names } from '../../model/names.ts'
import { threadText } from '../../model/waits.ts'
import type { Writer } from '../../sink/writer.ts'
import type { NewRow } from '../../tables/table-file.ts'
import type { Tables } from '../../tables/tables.ts'
import { Drawing } from '../../timeline/drawing.ts'
import type { StateSpan, WaitTaker } from '../../timeline/kernel/states.ts'
import type { Timeline } from '../../timeline/timeline.ts'

/** Writes nothing: of the timeline, only the states of threads are wanted. */
const NOTHING: Writer = {
  origin() {},
  clocks() {},
  track() {},
  begin() {},
  end() {},
  instant() {},
  counter() {},
  scheduler: { draws: 0, linkThread() {}, nameProcess() {}, switched() {}, waking() {} },
  attributes() {},
  finish() {},
  draws: 0,
  size: 0,
  take: () => new Uint8Array(0),
}

/**
 * The rows of `state`: those of the timeline, which knows the threads of all inputs. It gets the events that threads depend on; of
 * operators, those that change the thread of a worker, and the last one.
 */
export class StatesOfRun {
  private readonly drawing: Drawing

  constructor(
    private readonly tables: Tables,
    private readonly names: Names,
    hasSwitches: boolean,
  ) {
    this.drawing = new Drawing(NOTHING, names, { detail: 'names' }, hasSwitches)
  }

  /** Does a thread belong to the traced process? */
  isOwn(tid: number): boolean {
    return this.drawing.scheduler.isTraced(tid)
  }

  /** Begins the next input. */
  begin(log: { readonly isOfScheduler: boolean; readonly waited: WaitTaker | undefined }): StatesOfInput {
    return new StatesOfInput(this.drawing.begin({ ...log, stated: (span) => this.tables.add('state', this.row(span)) }))
  }

  /** An input without switches was drawn until then. */
  lived(untilNs: number): void {
    this.drawing.scheduler.lived(untilNs)
  }

  finish(): void {
    this.drawing.finish()
  }

  private row(span: StateSpan): NewRow<'state'> {
    const { worker, tid, state, fromNs, toNs, cpu, wait, by, shares, inferred } = span
    const { names } = this
    const longest = shares?.known[0]
    const taker = longest ? threadText(longest, names) : names.text(by)
    return {
      worker: worker < 0 ? null : worker,
      tid,
      ts_ns: fromNs,
      dur_ns: toNs - fromNs,
      state,
      cpu: cpu < 0 ? null : cpu,
      wait: names.text(wait) || null,
      taken_by: shares && !longest ? null : taker || null,
      taken_by_ns: longest ? longest.ns : null,
      inferred: inferred === 0 ? null : inferredText(inferred),
    }
  }
}

/** The events of one input that its threads depend on. */
export class StatesOfInput {
  /** By worker: the thread of its last operator. */
  private readonly servedBy: number[] = []
  private latest: OperatorEvent | undefined

  constructor(private readonly timeline: Timeline) {}

  take(batch: readonly TraceEvent[]): void {
    const needed: TraceEvent[] = []
    for (const event of batch) {
      if (event.kind === 'operator') {
        if (event.waitEndNs > (this.latest?.waitEndNs ?? -Infinity)) this.latest = event
        if (this.servedBy[event.worker] === event.tid) continue
        this.servedBy[event.worker] = event.tid
        needed.push(event)
      } else if (NEEDED.has(event.kind)) {
        // The kernel may use the number of a thread that ended again.
        if (event.kind === 'state' && event.state === 'ended') this.servedBy.length = 0
        needed.push(event)
      }
    }
    if (needed.length > 0) this.timeline.take(needed)
  }

  finish(): void {
    if (this.latest) this.timeline.take([this.latest])
    this.timeline.finish()
  }
}

const NEEDED: ReadonlySet<TraceEvent['kind']> = new Set([
  'input',
  'facts',
  'buffer',
  'tensor',
  'token',
  'state',
  'switch',
  'waking',
  'thread',
])
