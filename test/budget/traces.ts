import { type ConvertOptions, convert, type Input, type Summary } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { OPERATORS } from '../operators-sql.ts'

/** What the tests of budgets compare: a trace, its size, and what SQL finds in it. */

const OF_WORKERS = `from slice join track on track_id = track.id
  where category in ('operator', 'operator_sum', 'barrier', 'barrier_sum')`
/** Sums by worker, category and role, also of slices that are sums themselves. A wait is one or two slices: they are not counted. */
const BY_ROLE = `select track.name, replace(category, '_sum', ''), iif(category = 'barrier', 'barrier', coalesce(extract_arg(arg_set_id, 'debug.summed'), slice.name)),
  sum(iif(category = 'barrier' or category = 'barrier_sum', null, coalesce(extract_arg(arg_set_id, 'debug.count'), 1))), sum(dur), sum(extract_arg(arg_set_id, 'debug.cycles'))
  ${OF_WORKERS} group by 1, 2, 3 order by 1, 2, 3`
const GRAPHS = `select sum(coalesce(extract_arg(arg_set_id, 'debug.count'), 1)), sum(dur) from slice
  where category in ('graph', 'graph_sum')`
const CALLS = `select name, ts, dur, extract_arg(arg_set_id, 'debug.call') from slice where category = 'token' order by ts, name`
const OVERLAPS = `select count(*) from (select slice.ts < lag(slice.ts + dur) over (partition by track_id order by slice.ts,
  slice.ts + dur) as late ${OF_WORKERS}) where late`
/** Operators in full, and how often each call has some. */
const IN_FULL = `select call, count(*), sum(dur) from ${OPERATORS}
  group by 1 order by 1`

/** A converted log. */
export interface Made {
  readonly bytes: number
  readonly trace: Uint8Array
  readonly summary: Summary
  readonly problems: readonly unknown[]
  readonly byRole: readonly unknown[]
  readonly graphs: readonly unknown[]
  readonly calls: readonly (readonly unknown[])[]
  readonly overlaps: unknown
  readonly inFull: readonly (readonly unknown[])[]
  readonly categories: Readonly<Record<string, number>>
  readonly more: readonly (readonly unknown[])[]
}

/** Converts inputs. */
export async function converted(
  inputs: Input | Input[],
  options: ConvertOptions,
): Promise<Pick<Made, 'trace' | 'summary'>> {
  const pieces: Uint8Array[] = []
  const conversion = convert(inputs, { barriers: 'all', ...options })
  let next = await conversion.next()
  for (; !next.done; next = await conversion.next()) pieces.push(next.value)
  return { trace: new Uint8Array(Buffer.concat(pieces)), summary: next.value[0]! }
}

/** Converts inputs and asks for all of it; `more`: a query of the test. */
export async function made(inputs: Input | Input[], options: ConvertOptions, more = 'select 1'): Promise<Made> {
  const { trace, summary } = await converted(inputs, options)
  const open = await openTrace(trace)
  try {
    const rows = (sql: string) => open.query(sql).rows
    return {
      bytes: trace.length,
      trace,
      summary,
      problems: open.problems(),
      byRole: rows(BY_ROLE),
      graphs: rows(GRAPHS),
      calls: rows(CALLS),
      overlaps: rows(OVERLAPS)[0]![0],
      inFull: rows(IN_FULL),
      categories: Object.fromEntries(rows('select category, count(*) from slice group by 1')),
      more: rows(more),
    }
  } finally {
    open.close()
  }
}
