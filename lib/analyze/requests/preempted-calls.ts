import type { TokenEvent } from '../../model/events.ts'
import { State } from '../threads/columns.ts'
import type { ThreadHistory } from '../threads/thread-history.ts'

/** Calls that wait for the states of their threads: a recorder writes states in blocks. */
const WAITING_MAX = 1 << 12
/** Calls with time lost that are remembered. */
const KEPT_MAX = 1 << 16

/** Time of calls in which the thread that makes them could run but had no CPU. */
export class PreemptedCalls {
  private readonly waiting: TokenEvent[] = []
  private first = 0
  private readonly lost = new Map<number, number>()
  /** Was a state of any of these threads known? */
  isKnown = false

  constructor(private readonly threads: ThreadHistory) {}

  /** Start of the first call that waits; undefined without any. */
  get earliestNs(): number | undefined {
    return this.threads.isEmpty ? undefined : this.waiting[this.first]?.startNs
  }

  add(event: TokenEvent): void {
    if (event.call < 0 || event.tid < 0) return
    const { waiting, threads } = this
    waiting.push(event)
    for (;;) {
      const next = waiting[this.first]!
      const isFull = waiting.length - this.first > WAITING_MAX
      if (!isFull && (threads.isEmpty || !threads.isKnownAt(next.endNs))) break
      this.measure(next)
      this.first++
      if (this.first === waiting.length) break
    }
    if (this.first < WAITING_MAX) return
    waiting.splice(0, this.first)
    this.first = 0
  }

  /** Measures the calls that wait, after the last one. */
  finish(): void {
    for (; this.first < this.waiting.length; this.first++) this.measure(this.waiting[this.first]!)
  }

  /** Time lost in a call. */
  of(call: number): number {
    return this.lost.get(call) ?? 0
  }

  private measure({ call, tid, startNs, endNs }: TokenEvent): void {
    const { threads } = this
    if (threads.isEmpty) return
    const thread = threads.of(tid)
    if (!thread) return
    this.isKnown = true
    let lostNs = 0
    for (let k = Math.max(thread.at(startNs), 0); k < thread.count && thread.atNs[k]! < endNs; k++) {
      if (thread.state[k] !== State.Preempted) continue
      const untilNs = k + 1 < thread.count ? thread.atNs[k + 1]! : threads.knownUntilNs
      lostNs += Math.max(Math.min(untilNs, endNs) - Math.max(thread.atNs[k]!, startNs), 0)
    }
    if (lostNs > 0 && this.lost.size < KEPT_MAX) this.lost.set(call, lostNs)
  }
}
