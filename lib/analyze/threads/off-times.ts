import { growColumns } from '../../bytes/resized.ts'
import type { OffCpu } from '../common/statistic.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import { State, type ThreadStates } from './columns.ts'
import type { CpuTakers } from './takers.ts'
import type { ThreadHistory } from './thread-history.ts'

const COLUMNS = ['preemptedNs', 'blockedNs', 'waitPreemptedNs'] as const

/** A thread serves a worker from its first operator in the call on. */
export interface Served {
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
export class OffTimes implements OffCpu {
  preemptedNs = new Float64Array(1024)
  blockedNs = new Float64Array(1024)
  waitPreemptedNs = new Float64Array(1024)
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
    return true
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
      if (ns > 0 && state !== State.Blocked && this.takersOf) {
        const takers = this.takersOf(operators, i)
        const tid = operators.tid[i]!
        this.threads.addTakers(takers, thread, k, tid, Math.max(fromNs, startNs), Math.min(untilNs, endNs))
      }
      const waitNs = Math.min(untilNs, waitEndNs) - Math.max(fromNs, endNs)
      if (waitNs > 0 && state === State.Preempted) this.waitPreemptedNs[i]! += waitNs
    }
  }
}
