import type { TokenEvent } from '../../model/events.ts'
import type { Statistic } from '../common/statistic.ts'
import type { ThreadHistory } from './thread-history.ts'

/** Calls that wait for the states of their threads: a recorder writes states in blocks. */
const WAITING_MAX = 1 << 12
/** Calls with time lost that are remembered. */
const KEPT_MAX = 1 << 16
/** Intervals that are kept for calls without operators, at most. */
const SPANS_MAX = 1 << 17

const NO_TIMES: readonly number[] = []

/** When the threads that make calls could run but had no CPU. */
export class PreemptedCalls implements Statistic<object, 'token'> {
  readonly kinds = ['token'] as const
  private readonly waiting: TokenEvent[] = []
  private first = 0
  private readonly lost = new Map<number, number>()
  /** Starts and ends in a call, for those that {@link takeTimes} may ask for; the oldest first. */
  private readonly times = new Map<number, readonly number[]>()
  private spans = 0
  /** Was a state of any of these threads known? */
  isKnown = false

  constructor(private readonly threads: ThreadHistory) {}

  /** Start of the first call that waits; undefined without any. */
  get earliestNs(): number | undefined {
    return this.threads.isEmpty ? undefined : this.waiting[this.first]?.startNs
  }

  event(event: TokenEvent): void {
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

  /** Measures the calls that wait. */
  lastEvent(): void {
    for (; this.first < this.waiting.length; this.first++) this.measure(this.waiting[this.first]!)
  }

  /** Time lost in a call. */
  of(call: number): number {
    return this.lost.get(call) ?? 0
  }

  /** Starts and ends of the intervals of a call, once. `tid`: its thread, where its operators were read: all states until then are known. */
  takeTimes({ call, startNs, endNs }: TokenEvent, tid: number | undefined): readonly number[] {
    const times = this.times.get(call) ?? NO_TIMES
    this.times.delete(call)
    this.spans -= times.length / 2
    return tid === undefined ? times : this.threads.preemptedIn(tid, startNs, endNs)
  }

  private measure({ call, tid, startNs, endNs }: TokenEvent): void {
    const { threads, times } = this
    if (threads.isEmpty || !threads.of(tid)) return
    this.isKnown = true
    const found = threads.preemptedIn(tid, startNs, endNs)
    if (found.length === 0) return
    let lostNs = 0
    for (let i = 0; i < found.length; i += 2) lostNs += found[i + 1]! - found[i]!
    if (this.lost.size < KEPT_MAX) this.lost.set(call, lostNs)
    times.set(call, found)
    this.spans += found.length / 2
    while (this.spans > SPANS_MAX) {
      const [oldest, { length }] = times.entries().next().value!
      times.delete(oldest)
      this.spans -= length / 2
    }
  }
}
