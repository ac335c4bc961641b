import type { GpuRest } from './figures.ts'

/** Rows of a table. */
export const ROWS_MAX = 100

/** A row before it is shown. */
export interface Sum {
  readonly count: number
  readonly timeNs: number
}

/** The rows with most time, in order; and the others. */
export function boundedBy<T extends Sum>(rows: readonly T[], max = ROWS_MAX): { shown: T[]; rest: T[] } {
  const sorted = rows.toSorted((a, b) => b.timeNs - a.timeNs || b.count - a.count)
  return { shown: sorted.slice(0, max), rest: sorted.slice(max) }
}

/** Rows that are not shown, summed up. */
export function restOf(rows: readonly Sum[]): GpuRest | null {
  if (rows.length === 0) return null
  return {
    names: rows.length,
    count: rows.reduce((sum, { count }) => sum + count, 0),
    time_ns: rows.reduce((sum, { timeNs }) => sum + timeNs, 0),
  }
}
