import { DefaultMap } from '../model/default-map.ts'
import { Inferred, type StateEvent, type ThreadState } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import { type CpuShares, type CpuWait, threadText } from '../model/waits.ts'
import type { Change } from './thread-changes.ts'
import type { TracedThreads } from './traced.ts'

/** States of a log that are kept until the switches of their times come. Others are left out: the switches replace them. 50 MB. */
const HELD_MAX = 1 << 19
/** Events that are kept for a thread until its first operator shows that it is a worker. */
const PENDING_MAX = 20_000

/** The row of a thread in a log that records only states: its name, and its number. */
interface OwnRow {
  readonly name: number
  readonly nth: number
}

interface Thread {
  /** -1 until an operator of it is seen. */
  worker: number
  own: OwnRow | undefined
  pending: StateEvent[]
  /** States that the log contains, until the switches of their times have come, and how many of them have been merged. */
  readonly held: StateEvent[]
  merged: number
  /** Its state; undefined: not known. */
  latest: Change | undefined
}

/** Receives each wait of a worker for its CPU, and the threads that had it. Times are the trace's. */
export type WaitTaker = (wait: CpuWait) => void

/** A state of a thread, from its begin to its end, in times of the trace. Names are ids; 0: none. */
export interface StateSpan {
  /** -1: it serves no worker. */
  readonly worker: number
  /** A separate row, if the log records only states. */
  readonly own: OwnRow | undefined
  readonly tid: number
  readonly state: Exclude<ThreadState, 'off' | 'ended'>
  readonly fromNs: number
  readonly toNs: number
  /** -1: not known. */
  readonly cpu: number
  /** The kernel's letter of its wait. */
  readonly wait: number
  /** The thread that took its CPU, or woke it. */
  readonly by: number
  /** All threads that had its CPU, where they are known. */
  readonly shares: CpuShares | undefined
  readonly inferred: number
  /** The kernel's switches show it, not a log. */
  readonly isFromSwitches: boolean
}

/** Receives each state of a thread that serves a worker or has a row. */
export type StateTaker = (span: StateSpan) => void

const CAN_RUN: ReadonlySet<ThreadState | undefined> = new Set(['running', 'runnable', 'woken'])

/** The states of the threads of one input: on which CPU each runs, and when it waits. */
export class States {
  private readonly threads = new DefaultMap<number, Thread>(() => ({
    worker: -1,
    own: undefined,
    pending: [],
    held: [],
    merged: 0,
    latest: undefined,
  }))
  private held = 0
  /** By worker: the thread of its last operator. */
  private readonly servedBy: number[] = []
  /** End of the log so far, and the last change of a state. */
  private lastNs = 0
  private changedNs = -Infinity // V8 keeps it as a double from the start: integers pass 2^31 after 2 s
  private isSuperseded = false

  constructor(
    private readonly names: Names,
    private readonly traced: TracedThreads,
    private readonly stated: StateTaker,
    private readonly waited: WaitTaker | undefined,
  ) {}

  /** The thread belongs to the traced process. */
  trace(tid: number): void {
    if (tid > 0) this.traced.add(tid)
  }

  /** An operator of `worker` ran on the thread. */
  serve(worker: number, tid: number, endNs: number): void {
    this.reach(endNs)
    if (this.servedBy[worker] === tid || tid < 0) return
    this.servedBy[worker] = tid
    this.trace(tid)
    const thread = this.threads.of(tid)
    if (thread.worker >= 0) return
    thread.worker = worker
    const { pending } = thread
    thread.pending = []
    for (const event of pending) this.own(thread, event)
  }

  /** The log is known until then: the last states of its threads last as long. */
  reach(endNs: number): void {
    if (endNs > this.lastNs) this.lastNs = endNs
  }

  /** Another input records the kernel's switches: they complete the states of the log. */
  supersede(): void {
    this.isSuperseded = true
  }

  /** A change from switches, if the thread is a worker. Changes of a thread come in order. */
  switched(change: Change): void {
    const thread = this.threads.get(change.tid)
    if (!thread || thread.worker < 0) return
    this.merge(thread, change.atNs)
    if (change.state === 'woken' && CAN_RUN.has(thread.latest?.state)) return // it could run anyway
    this.change(thread, change)
  }

  place(event: StateEvent): void {
    this.trace(event.tid)
    const thread = this.threads.of(event.tid)
    if (event.thread !== undefined) thread.own ??= { name: event.thread, nth: this.threads.size - 1 }
    if (thread.worker >= 0 || thread.own) return this.own(thread, event)
    thread.pending.push(event)
    if (thread.pending.length > PENDING_MAX) thread.pending.splice(0, PENDING_MAX / 2)
  }

  /** Ends the last states with the log; where the switches of all inputs have come, of which the last is at `switchedNs`, also those that they show. */
  finish(switchedNs?: number): void {
    const shownNs = this.isSuperseded ? Math.max(this.changedNs, switchedNs ?? -Infinity) : this.lastNs
    for (const thread of this.threads.values()) {
      const isMerged = switchedNs !== undefined && thread.held.length > 0
      if (isMerged) this.merge(thread, Infinity)
      this.end(thread, isMerged ? Math.max(this.lastNs, shownNs) : shownNs, Inferred.NoEnd)
      thread.latest = undefined
    }
  }

  /** A state that the log contains. Switches of its time come later. */
  private own(thread: Thread, event: StateEvent): void {
    if (!this.isSuperseded || event.thread !== undefined) return this.change(thread, this.changeOf(event))
    if (this.held >= HELD_MAX) return
    this.held++
    thread.held.push(event)
  }

  /** Uses the states of the log until a time where the switches do not show them: a recording of switches may lack some. */
  private merge(thread: Thread, untilNs: number): void {
    const { held } = thread
    for (; thread.merged < held.length && held[thread.merged]!.atNs < untilNs; thread.merged++) {
      const change = this.changeOf(held[thread.merged]!)
      const { latest } = thread
      const isSame = latest?.state === change.state && (change.cpu < 0 || latest.cpu < 0 || latest.cpu === change.cpu)
      if (!isSame) this.change(thread, { ...change, by: 0 })
    }
  }

  private change(thread: Thread, change: Change): void {
    const { tid, state, atNs } = change
    this.end(thread, atNs, 0)
    this.reach(atNs)
    this.changedNs = Math.max(this.changedNs, atNs)
    thread.latest = state === 'ended' || state === 'off' ? undefined : change
    if (state !== 'ended') return
    this.threads.delete(tid) // the kernel may reuse the id
    if (thread.worker >= 0) this.servedBy[thread.worker] = -1
  }

  private end({ worker, own, latest }: Thread, toNs: number, inferred: number): void {
    if (!latest || toNs <= latest.atNs) return
    const { tid, atNs: fromNs, cpu, wait, by, takers } = latest
    const shares = takers?.sharesUntil(toNs)
    if (shares && worker >= 0) this.waited?.({ worker, fromNs, toNs, shares })
    const state = latest.state as StateSpan['state'] // others are not kept
    const isFromSwitches = this.isSuperseded
    this.stated({ worker, own, tid, state, fromNs, toNs, cpu, wait, by, shares, inferred, isFromSwitches })
  }

  private changeOf({ tid, cpu, state, atNs, takenBy }: StateEvent): Change {
    const by = takenBy ? this.names.id(threadText(takenBy, this.names)) : 0
    return { tid, cpu, state, atNs, by, wait: 0, takers: undefined }
  }
}
