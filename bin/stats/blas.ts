import { type Analysis, BLAS_TITLES, type BlasFigures, type BlasRow, type QueryResult } from '../../lib/cli.ts'
import { count, duration, plural, threeDigits } from '../units.ts'
import { type Column, firstRows, type Section } from './section.ts'

const text = (title: string): Column => ({ title, isText: true })

/** Calls of BLAS libraries and of oneDNN; undefined where none were logged. */
export function blasSection({ blas }: Analysis, top: number): Section | undefined {
  if (!blas) return undefined
  const facts = blas.libraries.map(({ library, calls, products, flop, time_ns }): [string, string] => {
    const facts = [plural(calls, 'call'), plural(products, 'matrix product'), `${threeDigits(flop / 1e9)} GFLOP`]
    return [BLAS_TITLES[library], [...facts, ...(time_ns === null ? [] : [duration(time_ns)])].join(', ')]
  })
  const { shown, rest } = firstRows(blas.calls, top)
  const rows = shown.map((row) => [
    ...[row.name, sizesOf(row), row.transposes, row.types, row.compute, row.algorithm],
    count(row.calls),
    row.flop > 0 ? threeDigits(row.flop / 1e9) : '',
    row.time_ns === null ? '' : duration(row.time_ns),
    row.flop_per_s === null ? '' : threeDigits(row.flop_per_s / 1e9),
  ])
  const further = rest.length + (blas.other_calls?.rows ?? 0)
  if (further > 0) rows.push([`${count(further)} more`, ...Array<string>(9).fill('')])
  const columns: Column[] = [
    text('call'),
    text('M×N×K'),
    text('transposes'),
    text('types'),
    { ...text('computes in'), rank: 2 },
    { ...text('algorithm'), rank: 1 },
    ...['calls', 'GFLOP', 'time', 'GFLOP/s'].map((title) => ({ title })),
  ]
  return { title: 'math libraries', facts, tables: [{ columns, rows }] }
}

function sizesOf({ m, n, k, batch, problem }: BlasRow): string {
  if (m === null) return problem
  return `${batch === 1 ? '' : `${batch}× `}${m}×${n}×${k}`
}

/** Equal calls with all their figures. */
export function blasCsv({ calls }: BlasFigures, top: number): QueryResult {
  const sizes = ['m', 'n', 'k', 'batch'] as const
  const texts = ['transposes', 'problem', 'types', 'compute', 'algorithm'] as const
  const sums = ['calls', 'flop', 'time_ns', 'flop_per_s'] as const
  const columns = ['library', 'name', ...sizes, ...texts, ...sums] as const
  return { columns: [...columns], rows: calls.slice(0, top).map((row) => columns.map((key) => row[key])) }
}
