import { IdMap } from '../id-map.ts'
import type { TaskEvent } from '../request-events.ts'

/** Most posted tasks that wait for their launch; a server also posts tasks that are no requests, one for each of its steps. */
const POSTED_MAX = 4096
/** Most tasks that wait for a slot. */
const WAITING_MAX = 1 << 16

/** A task in a server's queue. Times in ns. */
export interface Queued {
  readonly postNs: number
  /** {@link Inferred} bits of that time. */
  readonly inferred: number
  /** Slots that processed a request then. */
  readonly busy: number
  /** No slot was free for it, from this time on; undefined: one was, or the server did not look yet. */
  deferNs: number | undefined
  /** A name. */
  error: number | undefined
}

/** The tasks that were posted and not launched. Of too many, the oldest are dropped. */
export class TaskQueue {
  /** Of which it is not known that they wait for a slot. */
  private readonly posted = new IdMap<Queued>()
  private readonly waiting = new IdMap<Queued>()

  post({ task, atNs, inferred = 0 }: TaskEvent, busy: number): void {
    if (task < 0 || this.of(task)) return
    this.posted.set(task, { postNs: atNs, inferred, busy, deferNs: undefined, error: undefined })
    if (this.posted.size > POSTED_MAX) this.posted.delete(this.posted.first!)
  }

  /** The task waits for a slot: it is a request. Returns one that is dropped: too many wait. */
  defer(event: TaskEvent, busy: number): number | undefined {
    const { task, atNs } = event
    this.post(event, busy)
    const queued = this.posted.get(task)
    if (!queued) return undefined
    queued.deferNs = atNs
    this.posted.delete(task)
    this.waiting.set(task, queued)
    return this.waiting.size > WAITING_MAX ? this.waiting.first : undefined
  }

  /** Removes a task; undefined where its post is not known. */
  take(task: number): Queued | undefined {
    const queued = this.of(task)
    if (!this.posted.delete(task)) this.waiting.delete(task)
    return queued
  }

  /** The task, where its post is known. */
  of(task: number): Queued | undefined {
    return this.posted.get(task) ?? this.waiting.get(task)
  }

  /** The tasks that wait for a slot. */
  deferred(): number[] {
    return Array.from(this.waiting, ([task]) => task)
  }
}
