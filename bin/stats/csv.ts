import {
  type Analysis,
  type Cell,
  GROUP_KEYS,
  type GroupKey,
  type OperatorGroup,
  type QueryResult,
} from '../../lib/cli.ts'
import { type Grouping, phasesOf, sortedGroups } from './operators.ts'

type Column = readonly [name: string, of: (group: OperatorGroup) => Cell]

/** Numbers of a group, in the order of columns. Names end in the unit. */
const NUMBERS = [
  ...(['steps', 'executions', 'wall_ns', 'operator_time_ns', 'computing_ns', 'wait_ns', 'inner_wait_ns'] as const),
  ...(['preempted_ns', 'blocked_ns', 'last', 'mean_ns'] as const),
] as const
const QUANTILES = ['min_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns'] as const
const WORK = [
  ...(['flop', 'bytes_read', 'bytes_written', 'weight_bytes', 'gb_per_s', 'gflop_per_s', 'flop_per_byte'] as const),
] as const

/** Groups of operators with all their figures; by default the rows of the Analysis. What is not known is NULL. */
export function csvOf(
  analysis: Analysis,
  { by, top, sort }: Omit<Grouping, 'by'> & { by: readonly GroupKey[] | undefined },
): QueryResult {
  const keys = by ?? GROUP_KEYS.filter((key) => key !== 'worker')
  const groups = sortedGroups(analysis, { by: keys, sort }).slice(0, top)
  const counters = [...new Set(groups.flatMap((group) => Object.keys(group.counters)))]
  const columns: Column[] = [
    ...keys.map((key): Column => [key, (group) => group[key]]),
    ...NUMBERS.map((key): Column => [key, (group) => group[key]]),
    ...phasesOf(analysis).flatMap((phase): Column[] => [
      [`wall_share_of_${phase}`, ({ shares }) => shares[phase]?.wall_share ?? null],
      [`operator_time_share_of_${phase}`, ({ shares }) => shares[phase]?.operator_time_share ?? null],
    ]),
    ...QUANTILES.map((key): Column => [key, ({ duration }) => duration?.[key] ?? null]),
    ...WORK.map((key): Column => [key, (group) => group[key]]),
    ['bytes_are_max', ({ bytes_are_max }) => Number(bytes_are_max)],
    ...counters.flatMap((key): Column[] => [
      [key, (group) => group.counters[key]?.total ?? null],
      [`${key}_per_operator`, (group) => group.counters[key]?.per_operator ?? null],
      [`${key}_per_byte`, (group) => group.counters[key]?.per_byte ?? null],
    ]),
  ]
  return {
    columns: columns.map(([name]) => name),
    rows: groups.map((group) => columns.map(([, cellOf]) => cellOf(group))),
  }
}
