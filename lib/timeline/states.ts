import { Inferred, type StateEvent, type ThreadState } from '../model/events.ts'
import type { ArgMaker, Detail } from './labels.ts'
import { Lanes, type LazyGroup, rowName, type TrackTree } from './tracks.ts'

/** Events that are kept for a thread of which nobody knows yet whether it is a worker. */
const PENDING_MAX = 20_000
/** Rank of the lane among the rows of its worker: behind the operators'. */
const RANK = 12

interface Thread {
  /** -1 until an operator tells. */
  worker: number
  pending: StateEvent[]
  state: ThreadState | undefined
  sinceNs: number
  cpu: number
}

/** A lane below each worker's: where its thread ran, and when it could or would not. */
export class States {
  private readonly threads = new Map<number, Thread>()
  private readonly lanes: (Lanes | undefined)[] = []
  /** The thread that each worker's last operator was on. */
  private readonly servedBy: number[] = []
  private lastNs = 0

  constructor(
    private readonly tree: TrackTree,
    private readonly workers: LazyGroup,
    private readonly make: ArgMaker,
    private readonly detail: Detail,
  ) {}

  /** An operator of `worker` ran on the thread. */
  serve(worker: number, tid: number): void {
    if (this.servedBy[worker] === tid || tid < 0) return
    this.servedBy[worker] = tid
    const thread = this.thread(tid)
    if (thread.worker >= 0) return
    thread.worker = worker
    const { pending } = thread
    thread.pending = []
    for (const event of pending) this.change(thread, event)
  }

  place(event: StateEvent): void {
    const thread = this.thread(event.tid)
    if (thread.worker >= 0) return this.change(thread, event)
    thread.pending.push(event)
    if (thread.pending.length > PENDING_MAX) thread.pending.splice(0, PENDING_MAX / 2)
  }

  /** Draws the last states, up to the last change of any. */
  finish(): void {
    for (const thread of this.threads.values()) {
      if (thread.worker >= 0 && thread.state !== undefined) this.draw(thread, this.lastNs, Inferred.NoEnd)
    }
  }

  private thread(tid: number): Thread {
    const known = this.threads.get(tid)
    if (known) return known
    const thread: Thread = { worker: -1, pending: [], state: undefined, sinceNs: 0, cpu: -1 }
    this.threads.set(tid, thread)
    return thread
  }

  private change(thread: Thread, { tid, state, atNs, cpu }: StateEvent): void {
    if (thread.state !== undefined) this.draw(thread, atNs, 0)
    this.lastNs = Math.max(this.lastNs, atNs)
    thread.state = state === 'ended' ? undefined : state
    thread.sinceNs = atNs
    thread.cpu = cpu
    if (state !== 'ended') return
    this.threads.delete(tid) // another may get its number
    this.servedBy[thread.worker] = -1
  }

  private draw({ worker, state, sinceNs, cpu }: Thread, endNs: number, inferred: number): void {
    if (endNs <= sinceNs) return
    const { make } = this
    const text =
      state === 'running' ? `running on CPU ${cpu}` : state === 'runnable' ? 'runnable (preempted)' : 'blocked'
    const extra = [make.int('cpu', cpu), ...make.inferred(inferred)]
    const label = {
      name: make.names.id(text),
      category: 'state' as const,
      extra: this.detail === 'names' ? undefined : extra,
    }
    const lanes = this.lanes[worker] ?? this.addLane(worker)
    lanes.place(sinceNs, endNs, label)
  }

  private addLane(worker: number): Lanes {
    const description =
      `Whether the thread that served worker ${worker} ran, waited for a CPU because it was preempted, or was blocked. The ` +
      'kernel does not tell an ordinary user who had the CPU instead.'
    const add = (row: number) =>
      this.workers.add({
        name: rowName(`worker ${worker}: state`, row),
        description,
        rank: worker * 16 + RANK + Math.min(row, 3),
      })
    const lanes = new Lanes(this.tree.writer, add, true)
    this.lanes[worker] = lanes
    return lanes
  }
}
