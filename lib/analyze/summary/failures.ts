import { meaningOf } from '../../model/calls.ts'
import type { CallBatch } from '../../model/events.ts'
import type { Summary } from './figures.ts'

/** Results that are counted separately. Programs return few; a damaged log may contain any. */
const RESULTS_MAX = 64

/** Counts the results of calls that failed. */
export class Failures {
  /** By result and meaning. */
  private readonly counts = new Map<string, { result: number; meaning: string; calls: number }>()

  add(batch: CallBatch): void {
    const { result } = batch
    const meaning = meaningOf(batch).short
    const key = `${result} ${meaning}`
    const known = this.counts.get(key)
    if (known) known.calls++
    else if (this.counts.size < RESULTS_MAX) this.counts.set(key, { result, meaning, calls: 1 })
  }

  /** The most frequent first. */
  list(): Summary['failures'] {
    return [...this.counts.values()].sort((a, b) => b.calls - a.calls || a.result - b.result)
  }
}
