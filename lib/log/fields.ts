import { closest, UsageError } from '../errors.ts'
import { COUNTERS_MAX, SMALL_END } from './ggtrace-layout.ts'
import type { GgtraceOperator } from './ggtrace-records.ts'

/** The first number that has no field of 32 bits. */
export const U32_END = 2 ** 32

/** The number of a word in a log. Throws UsageError for a word that a log has no number of. */
export function numberOf<W extends string>(words: readonly W[], word: W, field: string): number {
  const number = words.indexOf(word)
  if (number >= 0) return number
  const meant = closest(String(word), words)
  const hint = meant === undefined ? 'docs/reference/ggtrace-format.md describes them' : `did you mean ${meant}?`
  throw new UsageError(`${field}: expected one of ${words.join(', ')}, found ${JSON.stringify(word)}\nhint: ${hint}`)
}

/** Has an operator a small record, if it starts at the cursor? */
export function fitsSmall({ tensor, startNs, endNs, waitEndNs = endNs, innerWaitNs = 0 }: GgtraceOperator): boolean {
  const [compute, wait] = [endNs - startNs, waitEndNs - endNs]
  const isBelow = tensor < SMALL_END.tensor && compute < SMALL_END.compute && wait < SMALL_END.wait
  return isBelow && compute >= 0 && wait >= 0 && innerWaitNs < U32_END
}

/** Throws UsageError for more counts than a log has counters. */
export function checkCounters(counts: number): void {
  if (counts > COUNTERS_MAX) throw new UsageError(`counts: a log has ${COUNTERS_MAX} counters at most, found ${counts}`)
}
