import type { OperatorGroup } from '../../lib/cli.ts'
import { count, duration, inUnit, percent, size, threeDigits } from '../units.ts'

type Show = (value: number) => string

/** A figure of a group, as a column. */
interface Figure {
  /** Its name for `--sort`. */
  readonly key: string
  readonly title: string
  /** See {@link Column}. */
  readonly rank: number
  readonly value: (group: OperatorGroup) => number | null
  readonly show: Show
  /** Can it be summed up over groups? */
  readonly isSum: boolean
  /** Is it an upper bound where bytes are? */
  readonly isOfBytes: boolean
}

const figure = (key: string, title: string, rank: number, value: Figure['value'], show: Show, kind = ''): Figure => {
  return { key, title, rank, value, show, isSum: kind.includes('sum'), isOfBytes: kind.includes('bytes') }
}

/** The columns of tables of operators, in their order. */
export const FIGURES: readonly Figure[] = [
  figure('wall', 'wall', 0, ({ wall_ns }) => wall_ns, duration, 'sum'),
  figure('computing', 'computing', 3, ({ computing_ns }) => computing_ns, duration, 'sum'),
  figure('wait', 'wait', 8, ({ wait_ns }) => wait_ns, duration, 'sum'),
  figure('preempted', 'preempted', 7, ({ preempted_ns }) => preempted_ns, duration, 'sum'),
  figure('blocked', 'blocked', 7, ({ blocked_ns }) => blocked_ns, duration, 'sum'),
  figure('count', 'count', 1, ({ executions }) => executions, count, 'sum'),
  figure('last', 'last to end', 1, ({ last }) => last, count, 'sum'),
  figure('mean', 'mean', 2, ({ mean_ns }) => mean_ns, duration),
  figure('p50', 'p50', 9, ({ duration: distribution }) => distribution?.p50_ns ?? null, duration),
  figure('p99', 'p99', 4, ({ duration: distribution }) => distribution?.p99_ns ?? null, duration),
  figure(
    'flop',
    'MFLOP',
    12,
    ({ flop }) => flop,
    (flop) => threeDigits(flop / 1e6),
  ),
  figure('read', 'read', 6, ({ bytes_read }) => bytes_read, size, 'bytes'),
  figure('written', 'written', 13, ({ bytes_written }) => bytes_written, size),
  figure('gb_per_s', 'GB/s', 1, ({ gb_per_s }) => gb_per_s, threeDigits, 'bytes'),
  figure('gflop_per_s', 'GFLOP/s', 1, ({ gflop_per_s }) => gflop_per_s, threeDigits),
  figure('flop_per_byte', 'FLOP/byte', 5, ({ flop_per_byte }) => flop_per_byte, threeDigits),
]

/** Zeros are not shown: they are of ops without matrix products, or of what did not occur. */
export function figureText({ value, show, isOfBytes }: Figure, group: OperatorGroup): string {
  const number = value(group)
  return number === null || number === 0 ? '' : (isOfBytes && group.bytes_are_max ? '≤ ' : '') + show(number)
}

/** The sum over groups. */
export function sumText({ value, show, isSum }: Figure, groups: readonly OperatorGroup[]): string {
  const sum = isSum ? groups.reduce((sum, group) => sum + (value(group) ?? 0), 0) : 0
  return sum === 0 ? '' : show(sum)
}

/** The share of a phase that groups have: of wall time; by worker, of the time of all workers. */
export function shareText(groups: readonly OperatorGroup[], phase: keyof OperatorGroup['shares']): string {
  const shares = groups.flatMap(({ shares }) => shares[phase] ?? [])
  if (shares.length === 0) return ''
  return percent(shares.reduce((sum, share) => sum + (share.wall_share ?? share.operator_time_share), 0))
}

/** A counter, per operator and per byte. */
export function counterTexts({ counters }: OperatorGroup, key: string): [string, string] {
  const counter = counters[key]
  if (!counter || counter.total === 0) return ['', '']
  const { per_operator, per_byte } = counter
  const shown = inUnit(key, per_operator) ?? (Number.isInteger(per_operator) ? count : threeDigits)(per_operator)
  return [shown, per_byte === null ? '' : threeDigits(per_byte)]
}
