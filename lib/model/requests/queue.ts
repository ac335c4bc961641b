import type { TaskEvent } from '../request-events.ts'

/** Most posted tasks that wait for their launch; a server also posts tasks that are no requests, one for each of its steps. */
const POSTED_MAX = 4096

/** A task in a server's queue. Times in ns. */
export interface Queued {
  readonly postNs: number
  isDeferred: boolean
  /** A name. */
  error: number | undefined
}

/** The tasks that were posted and not launched. */
export class TaskQueue {
  private readonly tasks = new Map<number, Queued>()

  get size(): number {
    return this.tasks.size
  }

  post({ task, atNs }: TaskEvent): void {
    if (task < 0 || this.tasks.has(task)) return
    this.tasks.set(task, { postNs: atNs, isDeferred: false, error: undefined })
    if (this.tasks.size <= POSTED_MAX) return
    for (const [old, { isDeferred }] of this.tasks) {
      if (isDeferred) continue
      this.tasks.delete(old)
      return
    }
  }

  /** The task waits for a slot: it is a request. */
  defer(event: TaskEvent): void {
    this.post(event)
    const queued = this.tasks.get(event.task)
    if (queued) queued.isDeferred = true
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
    return [...this.tasks].filter(([, { isDeferred }]) => isDeferred)
  }
}
