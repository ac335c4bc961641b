import type { Arg } from '../../model/args.ts'
import { Inferred, type StateEvent, type ThreadState } from '../../model/events.ts'
import type { TrackContext } from '../context.ts'
import type { ArgMaker } from '../labels.ts'
import type { Lanes } from '../tracks.ts'
import type { Takers } from './takers.ts'
import type { Change } from './thread-changes.ts'

/** Events that are kept for a thread of which nobody knows yet whether it is a worker. */
const PENDING_MAX = 20_000

interface Thread {
  /** -1 until an operator of it is seen. */
  worker: number
  /** Of its own, where the log records states only. */
  lanes: Lanes | undefined
  pending: StateEvent[]
  state: ThreadState | undefined
  sinceNs: number
  cpu: number
  /** Of who took its CPU, or woke it. */
  by: number
  /** Of the letter of the state that it waits in. */
  wait: number
  takers: Takers | undefined
}

/** What a slice of each state is called. */
const TITLES: Readonly<Record<ThreadState, string>> = {
  running: 'running on CPU ',
  runnable: 'runnable (preempted)',
  woken: 'runnable (woken)',
  blocked: 'blocked',
  off: '',
  ended: '',
}

const CAN_RUN: ReadonlySet<ThreadState | undefined> = new Set(['running', 'runnable', 'woken'])

/** A lane below each worker's: where its thread ran, and when it could or would not. */
export class States {
  private readonly threads = new Map<number, Thread>()
  private readonly lanes: (Lanes | undefined)[] = []
  /** The thread that each worker's last operator was on. */
  private readonly servedBy: number[] = []
  private lastNs = 0
  private isSuperseded = false

  /** `trace` is told of each thread that is seen to be of the process. */
  constructor(
    private readonly context: TrackContext,
    private readonly trace: (tid: number) => void = () => {},
  ) {}

  /** An operator of `worker` ran on the thread. */
  serve(worker: number, tid: number): void {
    if (this.servedBy[worker] === tid || tid < 0) return
    this.servedBy[worker] = tid
    this.trace(tid)
    const thread = this.thread(tid)
    if (thread.worker >= 0) return
    thread.worker = worker
    const { pending } = thread
    thread.pending = []
    for (const event of pending) this.change(thread, changeOf(event))
  }

  /** Another input records the kernel's switches: states of the log's own are left out from now on. */
  supersede(): void {
    this.isSuperseded = true
  }

  /** A change of a thread's state, from switches; drawn for workers' threads. In order for each thread. */
  switched(change: Change): void {
    const thread = this.threads.get(change.tid)
    if (!thread || thread.worker < 0) return
    if (change.state === 'woken' && CAN_RUN.has(thread.state)) return // it could run anyway
    this.change(thread, change)
  }

  place(event: StateEvent): void {
    this.trace(event.tid)
    if (this.isSuperseded && event.thread === undefined) return
    const thread = this.thread(event.tid)
    if (event.thread !== undefined) thread.lanes ??= this.addOwn(event.tid, event.thread)
    if (thread.worker >= 0 || thread.lanes) return this.change(thread, changeOf(event))
    thread.pending.push(event)
    if (thread.pending.length > PENDING_MAX) thread.pending.splice(0, PENDING_MAX / 2)
  }

  /** Draws the last states, up to the last change of any. */
  finish(): void {
    for (const thread of this.threads.values()) {
      if ((thread.worker < 0 && !thread.lanes) || thread.state === undefined) continue
      this.draw(thread, this.lastNs, Inferred.NoEnd)
      thread.state = undefined
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
      by: 0,
      wait: 0,
      takers: undefined,
    }
    this.threads.set(tid, thread)
    return thread
  }

  private change(thread: Thread, { tid, state, atNs, cpu, by, wait, takers }: Change): void {
    if (thread.state !== undefined) this.draw(thread, atNs, 0)
    this.lastNs = Math.max(this.lastNs, atNs)
    thread.state = state === 'ended' || state === 'off' ? undefined : state
    thread.sinceNs = atNs
    thread.cpu = cpu
    thread.by = by
    thread.wait = wait
    thread.takers = takers
    if (state !== 'ended') return
    this.threads.delete(tid) // another may get its number
    if (thread.worker >= 0) this.servedBy[thread.worker] = -1
  }

  private draw(thread: Thread, endNs: number, inferred: number): void {
    const { worker, lanes, state, sinceNs, cpu, by, wait, takers } = thread
    if (endNs <= sinceNs) return
    const { make, detail } = this.context
    const extra = [...(cpu < 0 ? [] : [make.int('cpu', cpu)]), ...make.inferred(inferred)]
    if (takers) extra.push(...takenBy(make, takers, endNs))
    else if (by > 0) extra.push(make.text(state === 'woken' ? 'woken_by' : 'taken_first_by', make.names.text(by)))
    const which = state === 'running' ? cpu : wait > 0 ? ` (${make.names.text(wait)})` : ''
    const label = {
      name: make.names.id(`${TITLES[state!]}${which}`),
      category: 'state' as const,
      extra: detail === 'names' ? undefined : extra,
    }
    const lane = lanes ?? this.lanes[worker] ?? this.addLane(worker)
    lane.place(sinceNs, endNs, label)
  }

  private addOwn(tid: number, name: number): Lanes {
    const { tracks, names } = this.context
    return tracks.lanes('threadState', { thread: names.text(name), tid, nth: this.threads.size })
  }

  private addLane(worker: number): Lanes {
    const lanes = this.context.tracks.lanes('workerState', { worker, isFromSwitches: this.isSuperseded }, true)
    this.lanes[worker] = lanes
    return lanes
  }
}

/** Threads that are named; the others are counted. */
const NAMED_MAX = 5

/** Who had the CPU that a thread waited for: the one that had it longest, and, where there were several, all of them. */
function takenBy(make: ArgMaker, takers: Takers, endNs: number): Arg[] {
  const { known, unknownNs } = takers.sharesUntil(endNs)
  const [longest] = known
  if (!longest) return []
  const args = [make.text('taken_by', make.names.text(longest.label)), make.int('taken_by_ns', longest.ns)]
  if (known.length === 1 && unknownNs === 0) return args
  const all = known.slice(0, NAMED_MAX).map(({ label, ns }) => `${make.names.text(label)}: ${spelled(ns)}`)
  const others = known.slice(NAMED_MAX)
  if (others.length > 0) all.push(`${others.length} more: ${spelled(others.reduce((sum, { ns }) => sum + ns, 0))}`)
  if (unknownNs > 0) all.push(`not known: ${spelled(unknownNs)}`)
  return [...args, make.text('taken_by_all', all.join(', '))]
}

const spelled = (ns: number) => {
  const [unit, size] = UNITS.find(([, least]) => ns >= least) ?? ['ns', 1]
  return `${Number((ns / size).toPrecision(3))} ${unit}`
}
const UNITS = [
  ['s', 1e9],
  ['ms', 1e6],
  ['µs', 1e3],
] as const

function changeOf({ tid, cpu, state, atNs, takenBy = 0 }: StateEvent): Change {
  return { tid, cpu, state, atNs, by: takenBy, wait: 0, takers: undefined }
}
