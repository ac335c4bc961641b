import { DefaultMap } from '../../model/default-map.ts'
import {
  type StateEvent,
  type SwitchEvent,
  stateAfter,
  type ThreadEvent,
  type ThreadState,
  type WakingEvent,
} from '../../model/events.ts'
import type { ThreadOfCpu } from '../../model/kernel-events.ts'
import type { Names } from '../../model/names.ts'
import { CpuTurns, State, ThreadStates } from './columns.ts'
import type { SchedulingFigures } from './figures.ts'
import type { CpuTakers } from './takers.ts'

/** States of threads and turns of CPUs that are held at most. 140 MB. */
const HELD_MAX = 1 << 22
/**
 * States before the operators that are released are kept for so long: a recorder writes operators of each worker in blocks, which a worker on a busy
 * machine fills in some seconds. 20 s; 1 s where half of all that are held at most would be exceeded.
 */
const [KEPT_NS, LESS_KEPT_NS] = [20e9, 1e9]

const CODES: Readonly<Record<ThreadState, number>> = {
  running: State.Running,
  runnable: State.Preempted,
  woken: State.Woken,
  blocked: State.Blocked,
  off: State.Unknown,
  ended: State.Unknown,
}

/** What is known of the inputs before their events. */
export interface Recordings {
  /** Processes that the logs trace. */
  readonly pids: readonly number[]
  /** An input records the switches of CPUs: they complete the states that logs contain. */
  readonly hasSwitches: boolean
}

/** The states of threads, and the threads that had each CPU, for as long as operators need them. */
export class ThreadHistory {
  private readonly threads = new DefaultMap<number, ThreadStates>(() => new ThreadStates())
  private readonly cpus: (CpuTurns | undefined)[] = []
  /** Processes of threads, and names that only events of threads contain. */
  private readonly tgids = new Map<number, number>()
  private readonly comms = new Map<number, number>()
  private readonly own = new Set<number>()
  private held = 0
  private trimmedNs = -Infinity
  private releasedNs = -Infinity
  private firstNs = Infinity
  private lastNs = -Infinity
  /** The last state that a log contains. */
  private lastOwnNs = -Infinity
  /** Has a taker's name been recorded without switches? */
  private hasFirstTakers = false
  /** Is it known when threads were woken? Else they are blocked until they run. */
  hasWoken = false
  /** Changes that came after operators of their time were released. */
  late = 0
  /** There were more changes than are held. */
  isFull = false

  constructor(
    private readonly names: Names,
    private readonly recordings: Recordings,
    readonly heldMax = HELD_MAX,
  ) {}

  /** Is any state known? */
  get isEmpty(): boolean {
    return this.firstNs === Infinity
  }

  get source(): SchedulingFigures['source'] {
    if (!this.recordings.hasSwitches) return 'log'
    return this.hasOwn ? 'both' : 'scheduler'
  }

  /** Does a log contain states? A recording of the scheduler only adds to them: it may have lost switches. */
  private get hasOwn(): boolean {
    return this.lastOwnNs > -Infinity
  }

  get takers(): 'all' | 'first' | 'none' {
    if (this.recordings.hasSwitches) return 'all'
    return this.hasFirstTakers ? 'first' : 'none'
  }

  /** Last states last until then: to the end of a recording of the scheduler; without end in a log that contains states. */
  get knownUntilNs(): number {
    return this.source === 'scheduler' ? this.lastNs : Infinity
  }

  /** Are all states until then known, if inputs come in order of time? */
  isKnownAt(atNs: number): boolean {
    return this.source === 'scheduler' || this.isEmpty || this.lastOwnNs >= atNs
  }

  /** The states of a thread; undefined where none is known. */
  of(tid: number): ThreadStates | undefined {
    const thread = this.threads.get(tid)
    if (thread) this.held -= thread.settle()
    return thread
  }

  /** Starts and ends of the intervals in which a thread could run but had no CPU, in order. */
  preemptedIn(tid: number, startNs: number, endNs: number): number[] {
    const found: number[] = []
    const thread = this.of(tid)
    if (!thread) return found
    for (let k = Math.max(thread.at(startNs), 0); k < thread.count && thread.atNs[k]! < endNs; k++) {
      if (thread.state[k] !== State.Preempted) continue
      const untilNs = k + 1 < thread.count ? thread.atNs[k + 1]! : this.knownUntilNs
      const [fromNs, toNs] = [Math.max(thread.atNs[k]!, startNs), Math.min(untilNs, endNs)]
      if (toNs > fromNs) found.push(fromNs, toNs)
    }
    return found
  }

  /** Starts and ends of the intervals in which all these threads were blocked, each at least `leastNs` long. */
  blockedTogether(tids: Iterable<number>, startNs: number, endNs: number, leastNs: number): number[] {
    let together = [startNs, endNs]
    for (const tid of tids) {
      const thread = this.of(tid)
      const common: number[] = []
      for (let i = 0; thread && i < together.length; i += 2) {
        const [from, to] = [together[i]!, together[i + 1]!]
        for (let k = Math.max(thread.at(from), 0); k < thread.count && thread.atNs[k]! < to; k++) {
          if (thread.state[k] !== State.Blocked) continue
          const untilNs = k + 1 < thread.count ? thread.atNs[k + 1]! : this.knownUntilNs
          const span = [Math.max(thread.atNs[k]!, from), Math.min(untilNs, to)] as const
          if (span[1] - span[0] >= leastNs) common.push(...span)
        }
      }
      together = common
      if (common.length === 0) break
    }
    return together
  }

  /** The threads of the program of which states are known. */
  *ownThreads(): Generator<number> {
    for (const tid of this.threads.keys()) if (!this.recordings.hasSwitches || this.isOwn(tid)) yield tid
  }

  /** Time in an interval in which a thread had a CPU. */
  runningNs(tid: number, startNs: number, endNs: number): number {
    const thread = this.of(tid)
    let ns = 0
    for (let k = Math.max(thread?.at(startNs) ?? 0, 0); thread && k < thread.count && thread.atNs[k]! < endNs; k++) {
      if (thread.state[k] !== State.Running) continue
      const untilNs = k + 1 < thread.count ? thread.atNs[k + 1]! : this.knownUntilNs
      ns += Math.max(0, Math.min(untilNs, endNs) - Math.max(thread.atNs[k]!, startNs))
    }
    return ns
  }

  take(event: StateEvent | SwitchEvent | WakingEvent | ThreadEvent): void {
    switch (event.kind) {
      case 'state':
        return this.state(event)
      case 'switch':
        return this.switched(event)
      case 'waking':
        return this.waking(event)
      case 'thread':
        return this.thread(event)
    }
  }

  /** A worker runs on the thread. */
  serve(tid: number): void {
    this.own.add(tid)
  }

  state({ tid, atNs, state, cpu, takenBy }: StateEvent): void {
    if (tid < 0) return
    this.lastOwnNs = Math.max(this.lastOwnNs, atNs)
    this.hasFirstTakers ||= takenBy !== undefined
    this.hasWoken ||= state === 'woken'
    this.add(tid, atNs, CODES[state], cpu, this.recordings.hasSwitches ? undefined : takenBy)
  }

  switched({ cpu, atNs, prevTid, prevState, nextTid, nextComm }: SwitchEvent): void {
    if (prevTid > 0) this.add(prevTid, atNs, CODES[stateAfter(prevState)], cpu)
    if (nextTid > 0) this.add(nextTid, atNs, State.Running, cpu)
    this.see(atNs)
    if (cpu < 0 || this.isDropped(atNs) || !this.hasRoom()) return
    const turns = this.cpus[cpu] ?? this.addCpu(cpu)
    turns.add(atNs, nextTid, nextComm)
  }

  waking({ tid, atNs, targetCpu }: WakingEvent): void {
    this.hasWoken = true
    if (tid > 0) this.add(tid, atNs, State.Woken, targetCpu)
  }

  thread({ what, tid, tgid, comm, atNs, parentTid }: ThreadEvent): void {
    if (tgid > 0) this.tgids.set(tid, tgid)
    else if (what === 'fork' && this.isOwn(parentTid)) this.own.add(tid)
    if (comm !== 0) this.comms.set(tid, comm)
    if (what === 'exit') this.tgids.delete(tid) // the kernel may reuse the number
    if (what === 'exit' && this.recordings.hasSwitches) this.see(atNs)
  }

  /** Adds the threads that had the CPU in an interval, instead of `tid`. */
  addTakers(into: CpuTakers, states: ThreadStates, i: number, tid: number, fromNs: number, toNs: number): void {
    const [cpu, by] = [states.cpu[i]!, states.byTid[i]!]
    if (by >= 0) into.add(states.byComm[i]!, by, this.isOwn(by), toNs - fromNs)
    const turns = cpu >= 0 ? this.cpus[cpu] : undefined
    if (!turns) return
    for (let turn = Math.max(turns.at(fromNs), 0); turn < turns.count && turns.atNs[turn]! < toNs; turn++) {
      const untilNs = turn + 1 < turns.count ? turns.atNs[turn + 1]! : toNs
      const ns = Math.min(untilNs, toNs) - Math.max(turns.atNs[turn]!, fromNs)
      const taker = turns.tid[turn]!
      if (ns > 0 && taker !== tid) into.add(turns.comm[turn]! || this.commOf(taker), taker, this.isOwn(taker), ns)
    }
  }

  /** Operators until then are released: later changes before this time are too late for them. */
  released(untilNs: number): void {
    if (untilNs > this.releasedNs) this.releasedNs = untilNs
  }

  /** Operators before this time are all released: drops what only they need. */
  trim(untilNs: number): void {
    const { held, heldMax } = this
    const keptNs = held < heldMax / 2 ? KEPT_NS : LESS_KEPT_NS
    if (held < heldMax / 4 || untilNs - keptNs <= this.trimmedNs) return
    this.trimmedNs = untilNs - keptNs
    for (const [tid, thread] of this.threads) {
      this.held -= thread.trim(this.trimmedNs)
      if (!thread.isOver(this.trimmedNs)) continue
      this.threads.delete(tid)
      this.held -= thread.count
    }
    for (const turns of this.cpus) if (turns) this.held -= turns.trim(this.trimmedNs)
  }

  private add(tid: number, atNs: number, state: number, cpu: number, by?: ThreadOfCpu): void {
    if (!this.isRelevant(tid)) return
    this.see(atNs)
    if (atNs < this.releasedNs) this.late++
    if (!this.isDropped(atNs) && this.hasRoom()) this.threads.of(tid).add(atNs, state, cpu, by)
  }

  private see(atNs: number): void {
    if (atNs < this.firstNs) this.firstNs = atNs
    if (atNs > this.lastNs) this.lastNs = atNs
  }

  private isDropped(atNs: number): boolean {
    return atNs < this.trimmedNs
  }

  private hasRoom(): boolean {
    if (this.held >= this.heldMax) this.isFull = true
    else this.held++
    return !this.isFull
  }

  /** May a worker run on the thread? Not if it is known to belong to another process. */
  private isRelevant(tid: number): boolean {
    const { pids } = this.recordings
    if (pids.length === 0 || this.own.has(tid)) return true
    const tgid = this.tgids.get(tid)
    return tgid === undefined || pids.includes(tgid)
  }

  private isOwn(tid: number): boolean {
    const tgid = this.tgids.get(tid)
    return this.own.has(tid) || (tgid !== undefined && this.recordings.pids.includes(tgid))
  }

  private commOf(tid: number): number {
    return this.comms.get(tid) ?? this.names.id('?')
  }

  private addCpu(cpu: number): CpuTurns {
    const made = new CpuTurns()
    while (this.cpus.length <= cpu) this.cpus.push(undefined)
    this.cpus[cpu] = made
    return made
  }
}
