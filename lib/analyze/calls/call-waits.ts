import type { TokenEvent } from '../../model/events.ts'
import type { FunctionEvent } from '../../model/request-events.ts'

/** Shorter waits do not change the time of a call: `llama_synchronize` takes up to some microseconds where nothing is to be waited for. */
const WAIT_NS_MIN = 10_000
/** So many calls of other contexts later, no wait for a call is expected. */
const CALLS_BEHIND_MAX = 16

interface Span {
  readonly startNs: number
  readonly endNs: number
}

/** A call whose work may not be complete. */
interface OpenCall {
  readonly event: TokenEvent
  wait: Span | undefined
  /** Its result is in use: later waits are for other work. */
  isOver: boolean
}

/**
 * Finds the end of the work of calls. A backend that computes asynchronously (a GPU) returns before its work is done; the program waits for it
 * when it reads results. The first wait after a call, before its output is sampled and before the context's next call, ends its work:
 * `llama_synchronize`, `ggml_backend_synchronize` and the like, of its context or on its thread. Calls are passed on when the next call
 * of their context was read.
 */
export class CallWaits {
  /** By context. */
  private readonly open = new Map<number, OpenCall>()

  /** `onCall`: gets each call, and the end of its work, in ns: at least the end of the call. */
  constructor(private readonly onCall: (event: TokenEvent, endNs: number) => void) {}

  call(event: TokenEvent): void {
    const context = event.batch?.context ?? 0
    for (const [of, { event: before }] of this.open) {
      if (of === context || event.call - before.call > CALLS_BEHIND_MAX) this.settle(of, event.startNs)
    }
    this.open.set(context, { event, wait: undefined, isOver: false })
  }

  function({ what, startNs, endNs, tid, context }: FunctionEvent): void {
    if (what !== 'synchronize' && what !== 'sample') return
    for (const [of, call] of this.open) {
      const { event, wait, isOver } = call
      const isOwn = context !== 0 && what !== 'sample' ? of === context : event.tid === tid
      if (!isOwn || isOver || startNs < event.endNs) continue
      if (what === 'sample') call.isOver = true
      else if (!wait || (startNs <= wait.startNs && endNs >= wait.endNs)) call.wait = { startNs, endNs }
    }
  }

  /** Passes on the calls that are left. */
  finish(): void {
    const calls = [...this.open].sort(([, a], [, b]) => a.event.call - b.event.call)
    for (const [context] of calls) this.settle(context, Infinity)
  }

  /** `nextNs`: start of the next call. */
  private settle(context: number, nextNs: number): void {
    const { event, wait } = this.open.get(context)!
    this.open.delete(context)
    const isWaitedFor = wait !== undefined && wait.startNs < nextNs && wait.endNs - wait.startNs >= WAIT_NS_MIN
    this.onCall(event, isWaitedFor ? Math.min(wait.endNs, Math.max(nextNs, event.endNs)) : event.endNs)
  }
}
