import { isOnHost } from '../model/backends.ts'
import { othersIn } from '../model/batch.ts'
import { isFailed } from '../model/calls.ts'
import type { GraphEvent, TokenEvent, TraceEvent } from '../model/events.ts'
import type { GpuEvent } from '../model/gpu-events.ts'
import type { Names } from '../model/names.ts'

/** Shorter waits are for nothing: `llama_synchronize` takes up to some microseconds where the work is complete. */
const WAIT_NS_MIN = 10_000
/** So many calls of other contexts later, no wait for a call is expected. */
const CALLS_BEHIND_MAX = 16
/** Waits that are held for calls that come after them: a reader holds calls that may be warm-ups. */
const WAITS_MAX = 256
/** Calls whose graphs or GPU work are remembered until they come. */
const CALLS_MAX = 4096

/** A function that waits, copies to the program (it waits, unless it is asynchronous itself), or uses results. */
interface Wait {
  readonly what: 'wait' | 'copy' | 'use'
  readonly startNs: number
  readonly endNs: number
  readonly tid: number
  /** 0: not known. */
  readonly context: number
}

/** A call whose work may not be complete when it returns. */
interface OpenCall {
  readonly event: TokenEvent
  wait: Wait | undefined
}

/**
 * Sets the ends of calls to the end of their work. A device computes asynchronously: `llama_decode` returns before, and the program waits
 * when it reads results. The first wait after a call, before its output is sampled and before the context's next call, ends its work:
 * `llama_synchronize`, `ggml_backend_synchronize` and the like, or a copy to the program, of its context or on its thread. Where the program
 * does not wait, the GPU's own times do, if they are recorded; else the work of a prompt lasts until the context's next call, which is
 * behind it in the same queue. Calls of devices are held until that is known; all others pass unchanged.
 */
export class CallEndStage {
  private readonly open = new Map<number, OpenCall>()
  private waits: Wait[] = []
  /** End of the latest graph run of a device, by call. */
  private readonly graphEnds = new Map<number, number>()
  /** End of the GPU's work, by call. */
  private readonly workEnds = new Map<number, number>()
  private hasGraphs = false
  private hasFunctions = false

  constructor(private readonly names: Names) {}

  /** Returns the batch, with the calls that are known by now. */
  take(batch: TraceEvent[]): TraceEvent[] {
    const ready: TraceEvent[] = []
    let out: TraceEvent[] | undefined
    /** Events before this place are in `out`. */
    let done = 0
    for (const i of othersIn(batch)) {
      const isHeld = this.see(batch[i]!, ready)
      if (ready.length === 0 && !isHeld) continue
      out ??= []
      for (; done < i; done++) out.push(batch[done]!)
      if (ready.length > 0) out.push(...ready.splice(0))
      if (isHeld) done++
    }
    if (!out) return batch
    for (; done < batch.length; done++) out.push(batch[done]!)
    return out
  }

  /** The calls that are left at the end of the input. */
  finish(): TraceEvent[] {
    const ready: TokenEvent[] = []
    const calls = [...this.open].sort(([, a], [, b]) => a.event.call - b.event.call)
    for (const [context] of calls) this.settle(context, Infinity, ready)
    return ready
  }

  /** Adds the calls that are known by this event to `ready`. Is it a call that is held? */
  private see(event: TraceEvent, ready: TraceEvent[]): boolean {
    switch (event.kind) {
      case 'token':
        return this.call(event, ready)
      case 'graph':
        this.graph(event)
        this.begins(event.startNs, ready)
        break
      case 'function': {
        this.hasFunctions = true
        const { what, startNs, endNs, tid, context } = event
        if (what === 'sample') this.wait({ what: 'use', startNs, endNs, tid, context: 0 }, ready)
        else if (what === 'synchronize') this.wait({ what: 'wait', startNs, endNs, tid, context }, ready)
        else this.begins(startNs, ready)
        break
      }
      case 'copy': {
        const { what, startNs, endNs, tid } = event
        if (what === 'get') this.wait({ what: 'copy', startNs, endNs, tid, context: 0 }, ready)
        break
      }
      case 'gpu':
        this.work(event)
    }
    return false
  }

  private graph({ call, backend, endNs }: GraphEvent): void {
    this.hasGraphs = true
    if (call >= 0 && !isOnHost(this.names.text(backend))) latestOf(this.graphEnds, call, endNs)
  }

  private work({ call = -1, endNs }: GpuEvent): void {
    if (call >= 0) latestOf(this.workEnds, call, endNs)
  }

  private wait(wait: Wait, ready: TraceEvent[]): void {
    if (wait.what !== 'use' && wait.endNs - wait.startNs < WAIT_NS_MIN) return
    if (this.waits.length === WAITS_MAX) this.waits.shift()
    this.waits.push(wait)
    for (const context of [...this.open.keys()]) this.apply(context, wait, ready)
  }

  /** A wait, or another use of results, after a call: the first one, of nested ones the outermost, is for its work. */
  private apply(context: number, wait: Wait, ready: TraceEvent[]): void {
    const call = this.open.get(context)
    if (!call || !isOf(wait, call.event) || wait.startNs < call.event.endNs) return
    const known = call.wait?.what === wait.what || wait.what === 'copy' ? call.wait : undefined
    if (wait.what === 'use' || (known?.what === 'wait' && wait.startNs >= known.endNs))
      this.settle(context, wait.startNs, ready)
    else if (!known || (wait.startNs <= known.startNs && wait.endNs >= known.endNs)) call.wait = wait
  }

  /** Something else begins: a wait that ended before is the outermost one. */
  private begins(startNs: number, ready: TraceEvent[]): void {
    for (const [context, { wait }] of this.open)
      if (wait?.what === 'wait' && startNs >= wait.endNs) this.settle(context, startNs, ready)
  }

  private call(event: TokenEvent, ready: TraceEvent[]): boolean {
    const context = contextOf(event)
    for (const [open, { event: before }] of this.open)
      if (open === context || event.call - before.call > CALLS_BEHIND_MAX) this.settle(open, event.startNs, ready)
    if (!this.mayBeIncomplete(event)) return false
    this.open.set(context, { event, wait: undefined })
    const { waits } = this
    this.waits = waits.filter(({ tid, startNs }) => tid !== event.tid || startNs >= event.endNs)
    for (const wait of waits) this.apply(context, wait, ready)
    return true
  }

  /** Can its work last longer than the call? */
  private mayBeIncomplete(event: TokenEvent): boolean {
    if (event.returnNs !== undefined || event.step || isFailed(event)) return false
    const graphEndNs = this.graphEnds.get(event.call)
    if (graphEndNs === undefined) return !this.hasGraphs && this.hasFunctions
    const isIn = ({ startNs, endNs }: Wait) => startNs >= graphEndNs && endNs <= event.endNs
    return !this.waits.some((wait) => wait.what === 'wait' && isOf(wait, event) && isIn(wait))
  }

  /** `nextNs`: when the program uses the results, or the context's next call begins. */
  private settle(context: number, nextNs: number, ready: TraceEvent[]): void {
    const { event, wait } = this.open.get(context)!
    this.open.delete(context)
    const endNs = Math.min(this.endOf(event, wait, nextNs), Math.max(nextNs, event.endNs))
    ready.push(endNs > event.endNs ? { ...event, endNs, returnNs: event.endNs } : event)
    this.graphEnds.delete(event.call)
    this.workEnds.delete(event.call)
  }

  private endOf({ call, phase, endNs }: TokenEvent, wait: Wait | undefined, nextNs: number): number {
    const known = wait?.endNs ?? this.workEnds.get(call)
    if (known !== undefined) return known
    const isFollowed = phase === 'prefill' && Number.isFinite(nextNs) && this.hasFunctions && this.graphEnds.has(call)
    return isFollowed ? nextNs : endNs
  }
}

const contextOf = ({ batch }: TokenEvent) => batch?.context ?? 0

const isOf = ({ context, tid }: Wait, event: TokenEvent) =>
  context !== 0 ? context === contextOf(event) : tid === event.tid

function latestOf(ends: Map<number, number>, call: number, endNs: number): void {
  ends.set(call, Math.max(ends.get(call) ?? endNs, endNs))
  if (ends.size > CALLS_MAX) ends.delete(ends.keys().next().value!)
}
