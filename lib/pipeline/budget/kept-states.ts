import { firstIndex } from '../../bytes/search.ts'
import type { StateEvent, TraceEvent } from '../../model/events.ts'

/** Times of calls in full: sorted, without overlaps; the first begins at -Infinity, the last ends at Infinity. */
export interface Windows {
  readonly fromNs: readonly number[]
  readonly toNs: readonly number[]
}

/** Index of the last window that begins at or before a time. */
export function windowAt({ fromNs }: Windows, atNs: number): number {
  return firstIndex(1, fromNs.length, (i) => fromNs[i]! > atNs) - 1
}

interface Thread {
  latest: StateEvent
  /** The latest state is in the trace. */
  isDrawn: boolean
}

/** Leaves out states of threads outside of windows: a state that lasts into a window begins again there, and ends with it. */
export class KeptStates {
  leftOut = 0
  private readonly threads = new Map<number, Thread>()

  constructor(private readonly windows: Windows) {}

  /** Adds what is drawn up to the next state of its thread. */
  state(event: StateEvent, into: TraceEvent[]): void {
    const { windows } = this
    const thread = this.threads.get(event.tid)
    if (thread) this.until(thread, event.atNs, into)
    const isDrawn = event.atNs < windows.toNs[windowAt(windows, event.atNs)]!
    if (isDrawn) into.push(event)
    else this.leftOut++
    this.threads.set(event.tid, { latest: event, isDrawn })
  }

  /** Draws the latest states up to the end. */
  finish(into: TraceEvent[]): void {
    for (const thread of this.threads.values()) this.until(thread, Infinity, into)
  }

  private until(thread: Thread, untilNs: number, into: TraceEvent[]): void {
    const { fromNs, toNs } = this.windows
    const { latest } = thread
    if (latest.state === 'ended' || latest.state === 'off') return
    for (let at = windowAt(this.windows, latest.atNs); at < fromNs.length && fromNs[at]! < untilNs; at++) {
      if (fromNs[at]! > latest.atNs) into.push({ ...latest, atNs: fromNs[at]! })
      else if (!thread.isDrawn) continue
      if (toNs[at]! < untilNs) into.push({ ...latest, state: 'off', atNs: toNs[at]! })
    }
  }
}
