import { getOrMake } from '../../model/default-map.ts'
import type { StateSpan } from '../../threads/states.ts'

/** Calls, and holes, that wait for each other at most. */
const REMEMBERED_MAX = 1024

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** Time between two states of a row: of one thread, or of two. */
interface Hole extends Span {
  readonly worker: number
  readonly isSameThread: boolean
}

/** What the thread of a worker did in a hole, as far as it can be inferred. */
export type Inferred = 'starting' | 'not running' | 'ended'

/** The last state of a row. */
interface Last {
  readonly tid: number
  readonly endNs: number
}

/**
 * Finds the parts of calls in which a worker has states before or after, and none at that time: its thread starts after the call, ends before it,
 * or its log does not contain why it has no CPU. Calls, and states, may come before or after one another.
 */
export class StateHoles {
  private readonly last = new Map<number, Last>()
  private readonly calls: Span[] = []
  private holes: Hole[] = []

  /** `isSummed`: states of a thread are left out in calls that are summed up. `found` gets each part that is no state of a call. */
  constructor(
    private readonly isSummed: boolean,
    private readonly found: (worker: number, what: Inferred, startNs: number, endNs: number) => void,
  ) {}

  state({ worker, tid, fromNs, toNs }: StateSpan): void {
    const last = getOrMake(this.last, worker, () => ({ tid: -1, endNs: -Infinity }))
    if (fromNs > last.endNs) this.add({ worker, startNs: last.endNs, endNs: fromNs, isSameThread: tid === last.tid })
    if (toNs > last.endNs) this.last.set(worker, { tid, endNs: toNs })
  }

  /** Calls come in order of their ends. */
  call({ startNs, endNs }: Span): void {
    this.holes = this.holes.filter((hole) => hole.endNs > startNs)
    for (const hole of this.holes) this.fill(hole, { startNs, endNs })
    this.calls.push({ startNs, endNs })
    if (this.calls.length > 2 * REMEMBERED_MAX) this.calls.splice(0, REMEMBERED_MAX)
  }

  finish(): void {
    for (const [worker, { endNs }] of this.last) {
      this.add({ worker, startNs: endNs, endNs: Infinity, isSameThread: false })
    }
  }

  private add(hole: Hole): void {
    const { calls } = this
    for (let i = calls.length - 1; i >= 0 && calls[i]!.endNs > hole.startNs; i--) this.fill(hole, calls[i]!)
    this.holes.push(hole)
    if (this.holes.length > 2 * REMEMBERED_MAX) this.holes.splice(0, REMEMBERED_MAX)
  }

  /** In a call that is in the hole as a whole, the worker takes no part. */
  private fill({ worker, startNs, endNs, isSameThread }: Hole, call: Span): void {
    const [beginsIn, endsIn] = [
      startNs > call.startNs && startNs < call.endNs,
      endNs > call.startNs && endNs < call.endNs,
    ]
    if ((!beginsIn && !endsIn) || (isSameThread && this.isSummed)) return
    const what = isSameThread ? 'not running' : endsIn ? 'starting' : 'ended'
    this.found(worker, what, beginsIn ? startNs : call.startNs, endsIn ? endNs : call.endNs)
  }
}
