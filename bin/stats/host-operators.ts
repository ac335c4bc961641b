import type { Analysis, HostOperators, QueryResult } from '../../lib/cli.ts'
import { count, duration, plural } from '../units.ts'
import { known, number, type Section, shareOf, tableOf, text } from './section.ts'

/** Operators of the CPU that a framework's profiler recorded; undefined where there are none, or GPU work. */
export function hostOperatorsSection({ host_operators: operators }: Analysis, top: number): Section | undefined {
  if (!operators) return undefined
  const table = tableOf(operators.rows, { max: top, further: operators.other_rows?.names ?? 0 }, [
    text('operator', ({ name }) => name),
    number('self', ({ self_ns }) => duration(self_ns)),
    number('share', ({ self_ns }) => shareOf(self_ns, operators.self_ns)),
    number('time', ({ time_ns }) => duration(time_ns)),
    number('count', (operator) => count(operator.count)),
    number('mean', ({ duration: one }) => known(one?.mean_ns, duration), 1),
    number('p99', ({ duration: one }) => known(one?.p99_ns, duration), 1),
  ])
  return {
    title: 'operators of the CPU',
    facts: [['all', `${plural(operators.count, 'operator')}, ${duration(operators.self_ns)} in all threads`]],
    tables: [table],
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
