import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import { Inferred, type StateEvent, type ThreadState } from '../../model/events.ts'
import { type CpuShares, type CpuWait, threadText } from '../../model/waits.ts'
import type { TrackContext } from '../context.ts'
import type { ArgMaker } from '../labels.ts'
import type { Lanes } from '../tracks.ts'
import type { Takers } from './takers.ts'
import type { Change } from './thread-changes.ts'

/** Events that are kept for a thread until its first operator shows that it is a worker. */
const PENDING_MAX = 20_000

interface Thread {
  readonly tid: number
  /** -1 until an operator of it is seen. */
  worker: number
  /** A separate track, if the log records only states. */
  lanes: Lanes | undefined
  pending: StateEvent[]
  state: ThreadState | undefined
  sinceNs: number
  cpu: number
  /** Name id of the thread that took its CPU, or woke it. */
  by: number
  /** Name id of the letter of its wait state. */
  wait: number
  takers: Takers | undefined
}

/** Receives each wait of a worker for its CPU, and the threads that had it. Times are the trace's. */
export type WaitTaker = (wait: CpuWait) => void

/** A state of a thread, from its begin to its end, in times of the trace. Names are ids; 0: none. */
export interface StateSpan {
  /** -1: it serves no worker. */
  readonly worker: number
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
}

/** Receives each state of a thread that has a row. */
export type StateTaker = (span: StateSpan) => void

/** Names of slices, by state. */
const TITLES: Readonly<Record<ThreadState, string>> = {
  running: 'running on CPU ',
  runnable: 'runnable (preempted)',
  woken: 'runnable (woken)',
  blocked: 'blocked',
  off: '',
  ended: '',
}

const CAN_RUN: ReadonlySet<ThreadState | undefined> = new Set(['running', 'runnable', 'woken'])

/** A lane below each worker's: on which CPU its thread runs, and when it waits. */
export class States {
  private readonly threads = new DefaultMap<number, Thread>((tid) => ({
    tid,
    worker: -1,
    lanes: undefined,
    pending: [],
    state: undefined,
    sinceNs: 0,
    cpu: -1,
    by: 0,
    wait: 0,
    takers: undefined,
  }))
  /** By worker. */
  private readonly lanes = new DefaultMap<number, Lanes>((worker) =>
    this.context.tracks.lanes('workerState', { worker, isFromSwitches: this.isSuperseded }, true),
  )
  /** By worker: the thread of its last operator. */
  private readonly servedBy: number[] = []
  /** End of the log so far, and the last change of a state. */
  private lastNs = 0
  private changedNs = 0
  private isSuperseded = false

  /**
   * `trace` receives each thread that belongs to the process; `waited` waits whose takers are known; `stated` all states, in place of
   * their slices.
   */
  constructor(
    private readonly context: TrackContext,
    readonly trace: (tid: number) => void,
    private readonly waited?: WaitTaker,
    private readonly stated?: StateTaker,
  ) {}

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
    for (const event of pending) this.change(thread, this.changeOf(event))
  }

  /** The log is known until then: the last states of its threads last as long. */
  reach(endNs: number): void {
    if (endNs > this.lastNs) this.lastNs = endNs
  }

  /** Another input records the kernel's switches: leave out states of the log from now on. */
  supersede(): void {
    this.isSuperseded = true
  }

  /** Draws a state change from switches, if the thread is a worker. Changes of a thread come in order. */
  switched(change: Change): void {
    const thread = this.threads.get(change.tid)
    if (!thread || thread.worker < 0) return
    if (change.state === 'woken' && CAN_RUN.has(thread.state)) return // it could run anyway
    this.change(thread, change)
  }

  place(event: StateEvent): void {
    this.trace(event.tid)
    if (this.isSuperseded && event.thread === undefined) return
    const thread = this.threads.of(event.tid)
    if (event.thread !== undefined) thread.lanes ??= this.addOwn(event.tid, event.thread)
    if (thread.worker >= 0 || thread.lanes) return this.change(thread, this.changeOf(event))
    thread.pending.push(event)
    if (thread.pending.length > PENDING_MAX) thread.pending.splice(0, PENDING_MAX / 2)
  }

  /** Draws the last states, up to the end of the log; those from switches up to `switchedNs`, the last of them. */
  finish(switchedNs: number): void {
    const untilNs = this.isSuperseded ? Math.max(this.changedNs, switchedNs) : this.lastNs
    for (const thread of this.threads.values()) {
      if ((thread.worker < 0 && !thread.lanes) || thread.state === undefined) continue
      this.draw(thread, untilNs, Inferred.NoEnd)
      thread.state = undefined
    }
  }

  private change(thread: Thread, { tid, state, atNs, cpu, by, wait, takers }: Change): void {
    if (thread.state !== undefined) this.draw(thread, atNs, 0)
    this.reach(atNs)
    this.changedNs = Math.max(this.changedNs, atNs)
    thread.state = state === 'ended' || state === 'off' ? undefined : state
    thread.sinceNs = atNs
    thread.cpu = cpu
    thread.by = by
    thread.wait = wait
    thread.takers = takers
    if (state !== 'ended') return
    this.threads.delete(tid) // the kernel may reuse the id
    if (thread.worker >= 0) this.servedBy[thread.worker] = -1
  }

  private draw(thread: Thread, endNs: number, inferred: number): void {
    const { tid, worker, lanes, state, sinceNs, cpu, by, wait, takers } = thread
    if (endNs <= sinceNs) return
    if (this.stated) return this.pass(thread, endNs, inferred)
    const { make, detail } = this.context
    const extra = [...(cpu < 0 ? [] : [make.int('cpu', cpu)]), make.int('tid', tid), ...make.inferred(inferred)]
    if (takers) {
      const shares = takers.sharesUntil(endNs)
      if (worker >= 0) this.waited?.({ worker, fromNs: sinceNs, toNs: endNs, shares })
      extra.push(...takenBy(make, shares))
    } else if (by > 0) extra.push(make.text(state === 'woken' ? 'woken_by' : 'taken_first_by', make.names.text(by)))
    const which = state === 'running' ? cpu : wait > 0 ? ` (${make.names.text(wait)})` : ''
    const label = {
      name: make.names.id(`${TITLES[state!]}${which}`),
      category: 'state' as const,
      extra: detail === 'names' ? undefined : extra,
    }
    const lane = lanes ?? this.lanes.of(worker)
    lane.place(sinceNs, endNs, label)
  }

  /** Passes a state on in place of drawing it. */
  private pass({ tid, worker, state, sinceNs, cpu, by, wait, takers }: Thread, toNs: number, inferred: number): void {
    const shares = takers?.sharesUntil(toNs)
    if (shares && worker >= 0) this.waited?.({ worker, fromNs: sinceNs, toNs, shares })
    const known = state as StateSpan['state'] // others are not kept
    this.stated!({ worker, tid, state: known, fromNs: sinceNs, toNs, cpu, wait, by, shares, inferred })
  }

  private changeOf({ tid, cpu, state, atNs, takenBy }: StateEvent): Change {
    const { names } = this.context
    const by = takenBy ? names.id(threadText(takenBy, names)) : 0
    return { tid, cpu, state, atNs, by, wait: 0, takers: undefined }
  }

  private addOwn(tid: number, name: number): Lanes {
    const { tracks, names } = this.context
    return tracks.lanes('threadState', { thread: names.text(name), tid, nth: this.threads.size })
  }
}

/** Threads whose names are listed; the others are counted. */
const NAMED_MAX = 5

/** The thread that had the CPU longest while another one waited for it; if there were several, also all of them. */
function takenBy(make: ArgMaker, { known, unknownNs }: CpuShares): Arg[] {
  const [longest] = known
  if (!longest) return []
  const args = [make.text('taken_by', threadText(longest, make.names)), make.int('taken_by_ns', longest.ns)]
  if (known.length === 1 && unknownNs === 0) return args
  const all = known.slice(0, NAMED_MAX).map((thread) => `${threadText(thread, make.names)}: ${spelled(thread.ns)}`)
  const others = known.slice(NAMED_MAX)
  if (others.length > 0) all.push(`${others.length} more: ${spelled(others.reduce((sum, { ns }) => sum + ns, 0))}`)
  if (unknownNs > 0) all.push(`not known: ${spelled(unknownNs)}`)
  return [...args, make.text('taken_by_all', all.join(', '))]
}

const UNITS = [
  ['s', 1e9],
  ['ms', 1e6],
  ['µs', 1e3],
] as const

function spelled(ns: number): string {
  const [unit, size] = UNITS.find(([, least]) => ns >= least) ?? ['ns', 1]
  return `${Number((ns / size).toPrecision(3))} ${unit}`
}
