import { Inferred, type StateEvent, type ThreadState } from '../model/events.ts'
import type { ArgMaker, Detail } from './labels.ts'
import { Lanes, LazyGroup, rowName, type TrackTree } from './tracks.ts'

/** Events that are kept for a thread of which nobody knows yet whether it is a worker. */
const PENDING_MAX = 20_000
/** Rank of the lane among the rows of its worker: behind the operators'. */
const RANK = 12
/** Rank of the group of threads whose worker is not known: behind the workers. */
const OWN_RANK = 3 * 16 + 8

interface Thread {
  /** -1 until an operator tells. */
  worker: number
  /** Of its own, where the log tells states alone. */
  lanes: Lanes | undefined
  pending: StateEvent[]
  state: ThreadState | undefined
  sinceNs: number
  cpu: number
  takenBy: number
}

/** What a slice of each state is called. */
const TITLES: Readonly<Record<ThreadState, string>> = {
  running: 'running on CPU ',
  runnable: 'runnable (preempted)',
  woken: 'runnable (woken)',
  blocked: 'blocked',
  ended: '',
}

/** A lane below each worker's: where its thread ran, and when it could or would not. */
export class States {
  private readonly threads = new Map<number, Thread>()
  private readonly lanes: (Lanes | undefined)[] = []
  /** The thread that each worker's last operator was on. */
  private readonly servedBy: number[] = []
  private readonly own: LazyGroup
  private lastNs = 0

  constructor(
    private readonly tree: TrackTree,
    root: number,
    private readonly workers: LazyGroup,
    private readonly make: ArgMaker,
    private readonly detail: Detail,
  ) {
    const description = 'When the traced threads ran, and when they could or would not.'
    this.own = new LazyGroup(tree, root, { name: 'Thread states', description, rank: OWN_RANK })
  }

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
    if (event.thread !== undefined) thread.lanes ??= this.addOwn(event.tid, event.thread)
    if (thread.worker >= 0 || thread.lanes) return this.change(thread, event)
    thread.pending.push(event)
    if (thread.pending.length > PENDING_MAX) thread.pending.splice(0, PENDING_MAX / 2)
  }

  /** Draws the last states, up to the last change of any. */
  finish(): void {
    for (const thread of this.threads.values()) {
      if ((thread.worker >= 0 || thread.lanes) && thread.state !== undefined)
        this.draw(thread, this.lastNs, Inferred.NoEnd)
    }
  }

  private thread(tid: number): Thread {
    const known = this.threads.get(tid)
    if (known) return known
    const thread: Thread = {
      worker: -1,
      lanes: undefined,
      pending: [],
      state: undefined,
      sinceNs: 0,
      cpu: -1,
      takenBy: 0,
    }
    this.threads.set(tid, thread)
    return thread
  }

  private change(thread: Thread, { tid, state, atNs, cpu, takenBy }: StateEvent): void {
    if (thread.state !== undefined) this.draw(thread, atNs, 0)
    this.lastNs = Math.max(this.lastNs, atNs)
    thread.state = state === 'ended' ? undefined : state
    thread.sinceNs = atNs
    thread.cpu = cpu
    thread.takenBy = takenBy ?? 0
    if (state !== 'ended') return
    this.threads.delete(tid) // another may get its number
    if (thread.worker >= 0) this.servedBy[thread.worker] = -1
  }

  private draw(thread: Thread, endNs: number, inferred: number): void {
    const { worker, lanes, state, sinceNs, cpu, takenBy } = thread
    if (endNs <= sinceNs) return
    const { make } = this
    const extra = [...(cpu < 0 ? [] : [make.int('cpu', cpu)]), ...make.inferred(inferred)]
    if (takenBy > 0) extra.push(make.text('taken_by', make.names.text(takenBy)))
    const label = {
      name: make.names.id(`${TITLES[state!]}${state === 'running' ? cpu : ''}`),
      category: 'state' as const,
      extra: this.detail === 'names' ? undefined : extra,
    }
    const lane = lanes ?? this.lanes[worker] ?? this.addLane(worker)
    lane.place(sinceNs, endNs, label)
  }

  private addOwn(tid: number, name: number): Lanes {
    const description = `When thread ${tid} ran, could have run but was preempted or only just woken, and when it was blocked.`
    const title = this.make.names.text(name)
    const rank = this.threads.size
    const add = (row: number) => this.own.add({ name: rowName(title, row), description, rank })
    return new Lanes(this.tree.writer, add)
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
