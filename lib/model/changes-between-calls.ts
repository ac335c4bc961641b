import { DefaultMap } from './default-map.ts'
import type { FunctionEvent, SequenceEvent } from './request-events.ts'

/** Of one context that wait for its next call; a program that changes more has no runs. */
const CHANGES_MAX = 1024

/** A change of a context between two calls: its memory was cleared, or cut after a position, or saved. */
export interface Change {
  readonly what: 'clear' | 'remove' | 'save-state'
  readonly atNs: number
  /** -1: all sequences. */
  readonly sequence: number
  /** Of `remove`: the first position that is not in the memory any more. */
  readonly from: number
}

/** Keeps the changes of each context until its next call, as calls are taken later than they are read. */
export class ChangesBetweenCalls {
  private readonly changes = new DefaultMap<number, Change[]>(() => [])

  /** Other changes, and functions that are none, are ignored. */
  add(event: FunctionEvent | SequenceEvent): void {
    const { context, sequence, what } = event
    if (what === 'save-state') return this.keep(context, { what, atNs: event.startNs, sequence, from: -1 })
    if (event.kind === 'function' || !event.isDone || event.end >= 0) return
    const { atNs, from } = event
    if (what === 'clear' || what === 'remove') this.keep(context, { what, atNs, sequence, from })
  }

  /** Changes of a context before a time, in their order; each is returned once. */
  until(context: number, ns: number): readonly Change[] {
    const changes = this.changes.get(context)
    if (!changes?.length) return []
    const later = changes.findIndex(({ atNs }) => atNs > ns)
    return changes.splice(0, later < 0 ? changes.length : later)
  }

  private keep(context: number, change: Change): void {
    const changes = this.changes.of(context)
    changes.push(change)
    if (changes.length > CHANGES_MAX) changes.shift()
  }
}
