import type { Analysis, HostOperators, QueryResult } from '../../lib/cli.ts'
import { count, duration, percent, plural } from '../units.ts'
import { type Column, firstRows, type Section } from './section.ts'

/** Operators of the CPU that a framework's profiler recorded; undefined where there are none, or GPU work. */
export function hostOperatorsSection({ host_operators: operators }: Analysis, top: number): Section | undefined {
  if (!operators) return undefined
  const { shown, rest } = firstRows(operators.rows, top)
  const rows = shown.map(({ name, self_ns, time_ns, count: times, duration: one }) => [
    ...[
      name,
      duration(self_ns),
      operators.self_ns > 0 ? percent(self_ns / operators.self_ns) : '',
      duration(time_ns),
      count(times),
    ],
    ...(one ? [duration(one.mean_ns), duration(one.p99_ns)] : ['', '']),
  ])
  const further = rest.length + (operators.other_rows?.names ?? 0)
  if (further > 0) rows.push([`${count(further)} more`, ...Array<string>(6).fill('')])
  const columns: Column[] = [
    { title: 'operator', isText: true },
    ...['self', 'share', 'time', 'count'].map((title) => ({ title })),
    ...['mean', 'p99'].map((title) => ({ title, rank: 1 })),
  ]
  return {
    title: 'operators of the CPU',
    facts: [['all', `${plural(operators.count, 'operator')}, ${duration(operators.self_ns)} in all threads`]],
    tables: [{ columns, rows }],
    lines: ['self: outside of the operators that it called; time: with them'],
  }
}

/** Operators by name with all their figures. */
export function hostOperatorsCsv({ rows }: HostOperators, top: number): QueryResult {
  const quantiles = ['mean_ns', 'p50_ns', 'p90_ns', 'p99_ns', 'max_ns'] as const
  const columns = ['name', 'count', 'self_ns', 'time_ns', ...quantiles]
  return {
    columns,
    rows: rows
      .slice(0, top)
      .map(({ name, count, self_ns, time_ns, duration }) => [
        ...[name, count, self_ns, time_ns],
        ...quantiles.map((key) => duration?.[key] ?? null),
      ]),
  }
}
