import type { TaskEvent } from '../request-events.ts'

/** Most posted tasks that wait for their launch; a server also posts tasks that are no requests, one for each of its steps. */
const POSTED_MAX = 4096

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

/** The tasks that were posted and not launched. */
export class TaskQueue {
  private readonly tasks = new Map<number, Queued>()

  get size(): number {
    return this.tasks.size
  }

  post({ task, atNs, inferred = 0 }: TaskEvent, busy: number): void {
    if (task < 0 || this.tasks.has(task)) return
    this.tasks.set(task, { postNs: atNs, inferred, busy, deferNs: undefined, error: undefined })
    if (this.tasks.size <= POSTED_MAX) return
    for (const [old, { deferNs }] of this.tasks) {
      if (deferNs !== undefined) continue
      this.tasks.delete(old)
      return
    }
  }

  /** The task waits for a slot: it is a request. */
  defer(event: TaskEvent, busy: number): void {
    this.post(event, busy)
    const queued = this.tasks.get(event.task)
    if (queued) queued.deferNs ??= event.atNs
  }

  /** Removes a task; undefined where its post is not known. */
  take(task: number): Queued | undefined {
    const queued = this.tasks.get(task)
    this.tasks.delete(task)
    return queued
  }

  /** The task, where its post is known. */
  of(task: number): Queued | undefined {
    return this.tasks.get(task)
  }

  /** The tasks that wait for a slot. */
  deferred(): [task: number, Queued][] {
    return [...this.tasks].filter(([, { deferNs }]) => deferNs !== undefined)
  }
}
