import { type Analysis, BLAS_TITLES, type BlasFigures, type BlasRow, type QueryResult } from '../../lib/cli.ts'
import { count, duration, plural, threeDigits } from '../units.ts'
import { known, number, type Section, tableOf, text } from './section.ts'

/** Calls of BLAS libraries and of oneDNN; undefined where none were logged. */
export function blasSection({ blas }: Analysis, top: number): Section | undefined {
  if (!blas) return undefined
  const facts = blas.libraries.map(({ library, calls, products, flop, time_ns }): [string, string] => {
    const facts = [plural(calls, 'call'), plural(products, 'matrix product'), `${threeDigits(flop / 1e9)} GFLOP`]
    return [BLAS_TITLES[library], [...facts, ...(time_ns === null ? [] : [duration(time_ns)])].join(', ')]
  })
  const table = tableOf(blas.calls, { max: top, further: blas.other_calls?.rows ?? 0 }, [
    text('call', ({ name }) => name),
    text('M×N×K', sizesOf),
    text('transposes', ({ transposes }) => transposes),
    text('types', ({ types }) => types),
    text('computes in', ({ compute }) => compute, 2),
    text('algorithm', ({ algorithm }) => algorithm, 1),
    number('calls', ({ calls }) => count(calls)),
    number('GFLOP', ({ flop }) => (flop > 0 ? threeDigits(flop / 1e9) : '')),
    number('time', ({ time_ns }) => known(time_ns, duration)),
    number('GFLOP/s', ({ flop_per_s }) => known(flop_per_s, (rate) => threeDigits(rate / 1e9))),
  ])
  return { title: 'math libraries', facts, tables: [table] }
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
