import { type BlasCall, type BlasEvent, flopOf } from '../../model/blas-events.ts'
import { getOrMake } from '../../model/default-map.ts'
import type { TraceEvent } from '../../model/events.ts'
import type { EventPass } from '../../model/pass.ts'
import { TimesNs } from '../common/sketches.ts'
import type { BlasFigures, BlasRest, BlasRow } from './figures.ts'

/** Rows of the table of calls. */
const ROWS_MAX = 200
/** Distinct calls whose distribution of durations is held. */
const DISTRIBUTIONS_MAX = 1 << 12

/** Does the library's log contain durations? */
const isTimed = ({ library }: Pick<BlasCall, 'library'>) => library === 'onednn'

interface Sum {
  readonly of: BlasCall
  calls: number
  flop: number
  timeNs: number
  readonly times: TimesNs | undefined
}

/** Sums up calls of math libraries. Memory grows with the number of distinct calls. */
export class BlasPass implements EventPass<BlasFigures | null> {
  /** By id of the call; a reader may leave out the only call of an id. */
  private readonly sums = new Map<number, Sum>()

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) if (event.kind === 'blas') this.add(event)
  }

  /** Null without any. */
  finish(): BlasFigures | null {
    if (this.sums.size === 0) return null
    const sums = [...this.sums.values()]
    const rows = sums.map((sum) => this.rowOf(sum)).sort(byTime)
    const libraries = [...new Set(sums.map(({ of: call }) => call.library))].map((library) => {
      const blasRows = rows.filter((row) => row.library === library)
      const products = blasRows.filter(({ m }) => m !== null).reduce((sum, { calls }) => sum + calls, 0)
      const { calls, flop, time_ns } = restOf(blasRows)!
      return { library, calls, products, flop, time_ns }
    })
    return { libraries, calls: rows.slice(0, ROWS_MAX), other_calls: restOf(rows.slice(ROWS_MAX)) }
  }

  private add({ of: call, startNs, endNs, count }: BlasEvent): void {
    const sum = getOrMake(this.sums, call.id, () => {
      const hasTimes = isTimed(call) && this.sums.size < DISTRIBUTIONS_MAX
      return { of: call, calls: 0, flop: 0, timeNs: 0, times: hasTimes ? new TimesNs() : undefined }
    })
    sum.calls += count
    sum.flop += count * flopOf(call)
    sum.timeNs += endNs - startNs
    sum.times?.add(endNs - startNs)
  }

  private rowOf({ of: call, calls, flop, timeNs, times }: Sum): BlasRow {
    const { product, library, name, problem, types, compute, algorithm } = call
    const { m = null, n = null, k = null, batch = null, transposes = '' } = product ?? {}
    return {
      ...{ library, name, m, n, k, batch, transposes, problem, types, compute, algorithm, calls, flop },
      time_ns: isTimed(call) ? timeNs : null,
      flop_per_s: timeNs > 0 && flop > 0 ? flop / (timeNs / 1e9) : null,
      duration: times?.figures() ?? null,
    }
  }
}

/** The calls of all logs; null where none has any. */
export function blasOf(logs: readonly { readonly blas?: BlasFigures | null | undefined }[]): BlasFigures | null {
  const found = logs.flatMap(({ blas }) => blas ?? [])
  const [first, second] = found
  if (!first || !second) return first ?? null
  const rows = found.flatMap(({ calls }) => calls).sort(byTime)
  const rests = [restOf(rows.slice(ROWS_MAX)), ...found.map(({ other_calls }) => other_calls)]
  return {
    libraries: found.flatMap(({ libraries }) => libraries),
    calls: rows.slice(0, ROWS_MAX),
    other_calls: rests.reduce(sumOf, null),
  }
}

const byTime = (a: BlasRow, b: BlasRow) => (b.time_ns ?? 0) - (a.time_ns ?? 0) || b.flop - a.flop || b.calls - a.calls

function sumOf(a: BlasRest | null, b: BlasRest | null): BlasRest | null {
  if (!a || !b) return a ?? b
  const time_ns = a.time_ns === null && b.time_ns === null ? null : (a.time_ns ?? 0) + (b.time_ns ?? 0)
  return { rows: a.rows + b.rows, calls: a.calls + b.calls, flop: a.flop + b.flop, time_ns }
}

function restOf(rows: readonly BlasRow[]): BlasRest | null {
  if (rows.length === 0) return null
  const total = (figureOf: (row: BlasRow) => number) => rows.reduce((sum, row) => sum + figureOf(row), 0)
  const hasTimes = rows.some(({ time_ns }) => time_ns !== null)
  return {
    rows: rows.length,
    calls: total(({ calls }) => calls),
    flop: total(({ flop }) => flop),
    time_ns: hasTimes ? total(({ time_ns }) => time_ns ?? 0) : null,
  }
}
