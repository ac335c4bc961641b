import { growColumns } from '../../bytes/resized.ts'
import { putAt } from '../../model/by-id.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Phase, TokenEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { RoleTable } from '../calls/roles.ts'
import type { OffCpu, Statistic } from '../common/statistic.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { OperatorRow } from '../operators/figures.ts'
import { CallWorkers } from './call-workers.ts'
import { State, type ThreadStates } from './columns.ts'
import type { RoleScheduling, SchedulingFigures, WorkerScheduling } from './figures.ts'
import { CpuTakers } from './takers.ts'
import type { ThreadHistory } from './thread-history.ts'

const COLUMNS = ['preemptedNs', 'blockedNs', 'waitPreemptedNs'] as const

/** Workers that are woken one after the other, such as those of OpenMP that sleep at barriers, are blocked at once for less. 1 ms. */
const STOPPED_MIN_NS = 1e6

const lastOf = (times: Float64Array) => times.reduce((last, ns) => (ns > last ? ns : last), -Infinity)

/** A thread serves a worker from its first operator in the call on. */
interface Served {
  readonly worker: number
  readonly tid: number
  readonly fromNs: number
}

/** The thread of a worker, and its state at the worker's latest operator. */
interface Cursor {
  tid: number
  thread: ThreadStates | undefined
  at: number
}

/**
 * Time of a call's operators in which the thread had no CPU, by operator. A thread that sleeps in a barrier waits there.
 */
class OffTimes implements OffCpu {
  preemptedNs = new Float64Array(1024)
  blockedNs = new Float64Array(1024)
  waitPreemptedNs = new Float64Array(1024)
  /** Starts and ends of the intervals in which all workers of the call were blocked. */
  private stopped: readonly number[] = []
  /** The threads of workers, each worker's in order of time. */
  readonly served: Served[] = []
  /** Is a state of any of these threads known? */
  hasKnown = false
  private readonly cursors: Cursor[] = []

  /** `takersOf`: who gets the time of others in an operator that lost some; undefined: nobody needs it. */
  constructor(
    private readonly threads: ThreadHistory,
    private readonly takersOf: ((operators: CallOperators, i: number) => CpuTakers) | undefined,
  ) {}

  /** Finds the times of these operators; replaces those of the last call. False: no state is known at all. */
  find(operators: CallOperators): boolean {
    if (this.threads.isEmpty) return false
    const { count, worker, tid, startNs, waitEndNs } = operators
    if (this.preemptedNs.length < count) growColumns(this, COLUMNS, 2 * count)
    for (const key of COLUMNS) this[key].fill(0, 0, count)
    this.served.length = 0
    this.cursors.length = 0
    for (let i = 0; i < count; i++) {
      let cursor = this.cursors[worker[i]!]
      if (cursor?.tid !== tid[i]) cursor = this.serve(worker[i]!, tid[i]!, startNs[i]!)
      const { thread } = cursor!
      if (!thread) continue
      let { at } = cursor!
      while (at + 1 < thread.count && thread.atNs[at + 1]! <= startNs[i]!) at++
      cursor!.at = at
      const isSame = at + 1 >= thread.count || thread.atNs[at + 1]! >= waitEndNs[i]!
      if (!isSame || (at >= 0 && thread.state[at] !== State.Running)) this.measure(operators, i, thread, at)
    }
    const tids = new Set(this.served.map(({ tid }) => tid))
    const ends = waitEndNs.subarray(0, count)
    this.stopped = tids.size < 2 ? [] : this.threads.blockedTogether(tids, startNs[0]!, lastOf(ends), STOPPED_MIN_NS)
    return true
  }

  stoppedNs(fromNs: number, toNs: number): number {
    let ns = 0
    for (let i = 0; i < this.stopped.length; i += 2)
      ns += Math.max(0, Math.min(this.stopped[i + 1]!, toNs) - Math.max(this.stopped[i]!, fromNs))
    return ns
  }

  private serve(worker: number, tid: number, fromNs: number): Cursor {
    const thread = tid >= 0 ? this.threads.of(tid) : undefined
    this.hasKnown ||= thread !== undefined
    const cursor = { tid, thread, at: thread ? thread.at(fromNs) : -1 }
    while (this.cursors.length <= worker) this.cursors.push({ tid: -2, thread: undefined, at: -1 })
    this.cursors[worker] = cursor
    if (tid >= 0) this.threads.serve(tid)
    this.served.push({ worker, tid, fromNs })
    return cursor
  }

  private measure(operators: CallOperators, i: number, thread: ThreadStates, at: number): void {
    const [startNs, endNs, waitEndNs] = [operators.startNs[i]!, operators.endNs[i]!, operators.waitEndNs[i]!]
    for (let k = Math.max(at, 0); k < thread.count && thread.atNs[k]! < waitEndNs; k++) {
      const state = thread.state[k]!
      if (state === State.Running || state === State.Unknown) continue
      const fromNs = thread.atNs[k]!
      const untilNs = k + 1 < thread.count ? thread.atNs[k + 1]! : this.threads.knownUntilNs
      const ns = Math.min(untilNs, endNs) - Math.max(fromNs, startNs)
      if (ns > 0) (state === State.Preempted ? this.preemptedNs : this.blockedNs)[i]! += ns
      if (ns > 0 && state === State.Preempted && this.takersOf) {
        const takers = this.takersOf(operators, i)
        const tid = operators.tid[i]!
        this.threads.addTakers(takers, thread, k, tid, Math.max(fromNs, startNs), Math.min(untilNs, endNs))
      }
      const waitNs = Math.min(untilNs, waitEndNs) - Math.max(fromNs, endNs)
      if (waitNs > 0 && state === State.Preempted) this.waitPreemptedNs[i]! += waitNs
    }
  }
}

/** Takers of a worker that are listed. */
export const TAKERS_MAX = 10
/** Of a role, and roles. */
const ROLE_TAKERS_MAX = 5
const ROLES_MAX = 20

/** Sums of the states of a worker's threads in the calls of a phase. */
class StateSums {
  callTimeNs = 0
  preemptions = 0
  migrations = 0
  /** By {@link State}. */
  readonly ns = [0, 0, 0, 0, 0]
  readonly takers = new CpuTakers()
}

/** What figures of scheduling are made of. */
export interface SchedulingContext {
  readonly names: Names
  /** Undefined where no figures of roles are needed. */
  readonly roles: RoleTable | undefined
  /** The rows of operators; once all were added. */
  rows(): readonly OperatorRow[]
  /** A factor of the sums of a phase. */
  scaleOf(phase: Phase): number
}

/** Sums the states of the threads of workers, in calls and in operators. */
export class Scheduling implements Statistic {
  readonly off: OffTimes
  private readonly workers = new DefaultMap<Phase, (StateSums | undefined)[]>(() => [])
  private readonly roles = new DefaultMap<string, CpuTakers>(() => new CpuTakers())
  private readonly byTensor = new DefaultMap<Phase | 'none', (CpuTakers | undefined)[]>(() => [])
  private readonly counted = new CallWorkers()
  private hasKnown = false

  constructor(
    private readonly threads: ThreadHistory,
    private readonly context: SchedulingContext,
  ) {
    const { roles } = context
    this.off = new OffTimes(threads, roles && ((operators, i) => this.takersOf(roles, operators, i)))
  }

  /** Adds operators of a call, which represents `weight` calls. Returns the times of operators; undefined where no state is known. */
  add(operators: CallOperators, weight: number): OffTimes | undefined {
    if (!this.off.find(operators)) return undefined
    this.hasKnown ||= this.off.hasKnown
    if (operators.event) this.addServed(operators.event, this.off.served, weight)
    return this.off
  }

  /** A worker's first thread serves it from the begin of the call, its last one to the end. */
  private addServed({ call, phase, startNs, endNs }: TokenEvent, served: readonly Served[], weight: number): void {
    const open: (Served | undefined)[] = []
    const isNew: boolean[] = []
    const close = ({ worker, tid, fromNs }: Served, untilNs: number) => {
      if (isNew[worker] && untilNs > fromNs) this.addThread(this.sumsOf(phase, worker), tid, fromNs, untilNs, weight)
    }
    for (const worker of served) {
      const before = open[worker.worker]
      isNew[worker.worker] ??= this.counted.isNew(call, worker.worker)
      if (before) close(before, Math.min(worker.fromNs, endNs))
      open[worker.worker] = { ...worker, fromNs: before ? Math.max(worker.fromNs, startNs) : startNs }
    }
    for (const served of open) if (served) close(served, endNs)
  }

  /** Are states of threads of workers known? */
  get hasStates(): boolean {
    return !this.threads.isFull && this.hasKnown
  }

  /** Time in calls of a phase in which a worker's thread could run but had no CPU. */
  preemptedNs(phase: Phase, worker: number): number {
    return this.workers.get(phase)?.[worker]?.ns[State.Preempted] ?? 0
  }

  finish(): { readonly scheduling: SchedulingFigures | undefined } {
    const { threads } = this
    if (!this.hasStates) return { scheduling: undefined }
    const { roles, rows, scaleOf } = this.context
    const workers = [...this.workers].flatMap(([phase, sums]) =>
      sums.flatMap((sum, worker) => (sum ? [this.workerOf(worker, phase, sum, scaleOf(phase))] : [])),
    )
    workers.sort((a, b) => a.worker - b.worker || b.call_time_ns - a.call_time_ns)
    const { source, takers } = threads
    return { scheduling: { source, takers, workers, roles: roles ? this.rolesOf(rows()) : [] } }
  }

  /** Adds the states of a thread in an interval. */
  private addThread(sums: StateSums, tid: number, startNs: number, endNs: number, weight: number): void {
    const { threads } = this
    sums.callTimeNs += (endNs - startNs) * weight
    sums.ns[State.Unknown]! += (endNs - startNs) * weight
    const thread = tid >= 0 ? threads.of(tid) : undefined
    if (!thread) return
    let k = thread.at(startNs)
    let cpu = -1
    for (let before = k; before >= 0 && cpu < 0; before--) {
      if (thread.state[before] === State.Running) cpu = thread.cpu[before]!
    }
    for (k = Math.max(k, 0); k < thread.count && thread.atNs[k]! < endNs; k++) {
      const state = thread.state[k]!
      const untilNs = k + 1 < thread.count ? thread.atNs[k + 1]! : threads.knownUntilNs
      const [fromNs, toNs] = [Math.max(thread.atNs[k]!, startNs), Math.min(untilNs, endNs)]
      if (toNs <= fromNs) continue
      sums.ns[state]! += (toNs - fromNs) * weight
      sums.ns[State.Unknown]! -= (toNs - fromNs) * weight
      if (state === State.Preempted && fromNs === thread.atNs[k]) sums.preemptions += weight
      if (state === State.Preempted) threads.addTakers(sums.takers, thread, k, tid, fromNs, toNs)
      if (state !== State.Running || thread.cpu[k]! < 0) continue
      if (cpu >= 0 && thread.cpu[k] !== cpu) sums.migrations += weight
      cpu = thread.cpu[k]!
    }
  }

  private workerOf(worker: number, phase: Phase, sums: StateSums, scale: number): WorkerScheduling {
    const ns = sums.ns.map((value) => value * scale)
    const callTimeNs = sums.callTimeNs * scale
    return {
      worker,
      phase,
      call_time_ns: callTimeNs,
      running_ns: ns[State.Running]!,
      preempted_ns: ns[State.Preempted]!,
      preemptions: Math.round(sums.preemptions * scale),
      woken_ns: this.threads.hasWoken ? ns[State.Woken]! : null,
      blocked_ns: ns[State.Blocked]!,
      unknown_ns: ns[State.Unknown]!,
      migrations: Math.round(sums.migrations * scale),
      ...sums.takers.list(TAKERS_MAX, callTimeNs, this.context.names),
    }
  }

  private rolesOf(rows: readonly OperatorRow[]): RoleScheduling[] {
    const sums = new Map<string, { -readonly [K in keyof RoleScheduling]: RoleScheduling[K] }>()
    for (const { role, op, phase, operator_time_ns, preempted_ns, blocked_ns } of rows) {
      const key = keyOf(phase, op, role)
      let sum = sums.get(key)
      if (!sum) {
        sum = { role, op, phase, operator_time_ns: 0, preempted_ns: 0, blocked_ns: 0, takers: [], other_takers_ns: 0 }
        sums.set(key, sum)
      }
      sum.operator_time_ns += operator_time_ns
      sum.preempted_ns += preempted_ns ?? 0
      sum.blocked_ns += blocked_ns ?? 0
    }
    const lost = ({ preempted_ns, blocked_ns }: RoleScheduling) => preempted_ns + blocked_ns
    return [...sums]
      .filter(([, role]) => lost(role) > 0)
      .sort(([, a], [, b]) => lost(b) - lost(a))
      .slice(0, ROLES_MAX)
      .map(([key, role]) => ({
        ...role,
        ...this.roles.of(key).list(ROLE_TAKERS_MAX, role.operator_time_ns, this.context.names),
      }))
  }

  private sumsOf(phase: Phase, worker: number): StateSums {
    const workers = this.workers.of(phase)
    let sums = workers[worker]
    if (!sums) {
      sums = new StateSums()
      putAt(workers, worker, sums, undefined)
    }
    return sums
  }

  private takersOf(roleTable: RoleTable, { tensor, last, event }: CallOperators, i: number): CpuTakers {
    const phase = event?.phase ?? 'none'
    const byTensor = this.byTensor.of(phase)
    const known = byTensor[tensor[i]!]
    if (known) return known
    const { op, role } = roleTable.role(roleTable.of(tensor[i]!, last[i]!))
    const takers = this.roles.of(keyOf(phase, op, role))
    putAt(byTensor, tensor[i]!, takers, undefined)
    return takers
  }
}

const keyOf = (phase: string, op: string, role: string) => `${phase} ${op} ${role}`
