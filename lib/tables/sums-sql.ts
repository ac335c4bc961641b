/**
 * SQL whose rows are those of `operator_sum`, from the tables operator and call: for runs whose files were written before there was that
 * table. For DuckDB, and for ClickHouse with join_use_nulls and cast_keep_nullable. `more`: further columns to group by; `where`: of
 * operators (`o`).
 */
export function operatorSumsSql(more: readonly string[] = [], where = 'true'): string {
  const by = ['trace_id', 'role', 'op', 'type', 'backend', ...more].map((column) => `o.${column}`)
  const named = [...by, 'c.phase'].map((column) => `${column} as ${column.slice(2)}`)
  const sums = ['dur_ns', 'wait_ns', 'inner_wait_ns', 'flop', 'bytes_read', 'bytes_written'].map(
    (column) => `cast(sum(o.${column}) as bigint) as ${column}`,
  )
  return `select ${named.join(', ')}, count(*) as operators, ${sums.join(', ')}, max(o.dur_ns) as longest_ns,
  max(o.bytes_are_max) as bytes_are_max
from operator as o left join call as c on c.trace_id = o.trace_id and c.call = o.call
where ${where}
group by ${by.join(', ')}, c.phase`
}
