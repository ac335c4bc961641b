/** A slow operator takes this many times the median of its kind. */
const SLOW = 3
/** Causes are searched for these only, so that the query is fast in a large trace, too. */
const SLOW_OPERATORS_MAX = 500
/** A cause explains more than this many percent of the operator's time. */
const SHARE_MIN = 5
/** A state of the worker's thread may begin this much before the operator that it is part of: clocks are not exact. */
const CLOCK_ERROR_NS = 1e6

const arg = (name: string, argSet = 'arg_set_id') => `extract_arg(${argSet}, 'debug.${name}')`

/** What a trace contains, as far as the query depends on it. */
export interface OperatorFacts {
  /** Operators are compared from this time on, by name only; by default all of them, by name and shape. */
  readonly fromTs: string | undefined
  /** Operators have counts of page faults. */
  readonly hasFaults: boolean
  /** States name the thread that took the CPU first, instead of the one that had it longest. */
  readonly namesFirst: boolean
}

/**
 * PerfettoSQL for a track with the operators that lost most time, compared with the median of their kind. Names contain the
 * cause: `Qcur MUL_MAT ×2522 · preempted 66 % by git 14917`, as far as the trace contains it: from the states of the worker's
 * thread (the thread named is the one that had the CPU longest), waits inside the operator, and page faults. By `id`
 * and `track_id` the UI finds the operator. The query is part of a URL: it is as short as it can be.
 */
export function whySlow({ fromTs, hasFaults, namesFirst }: OperatorFacts): string {
  const kind = fromTs === undefined ? `name, ${arg('shape')}` : 'name'
  const faults = `, ' · major faults ' || ${arg('major_faults')}, ' · ' || round(${arg('bytes_read')} / 1e6, 1) || ' MB read'`
  const sql = `
with o as (select *, median(dur) over (partition by ${kind}) m from slice
  where category = 'operator'${fromTs === undefined ? '' : ` and ts >= ${fromTs}`}),
s as (select o.*, r.id r from o join track t on t.id = track_id
  left join track r on r.parent_id = t.parent_id and r.name = t.name || ': state'
  where dur > ${SLOW} * m order by dur - m desc limit ${SLOW_OPERATORS_MAX}),
c as (select s.id i, s.dur d, a.name c, ${arg(namesFirst ? 'taken_first_by' : 'taken_by', 'a.arg_set_id')} b,
  sum(min(a.ts + a.dur, s.ts + s.dur) - max(a.ts, s.ts)) n
  from s cross join slice a on a.ts > s.ts - ${CLOCK_ERROR_NS} and a.ts < s.ts + s.dur and a.ts + a.dur > s.ts
  and a.track_id = r and a.name not glob 'running*' group by 1, 3, 4
  union all select id, dur, 'waiting for other workers', null, ${arg('inner_wait_ns')} from s),
w as (select *, max(n), 1e2 * sum(n) / d p from c group by i, c)
select id, ts, dur, track_id, m median_ns, printf('%s ×%.0f%s${hasFaults ? '%s%s' : ''}', name, dur / m,
  (select group_concat(printf(' · %s %.0f %%%s', iif(c glob '*p*', 'preempted', c), p, ' by ' || b), ''
  order by c > 'w', p desc) from w where i = id and p > ${SHARE_MIN})${hasFaults ? faults : ''}) name from s`
  return shortened(sql)
}

/** SQL without the spaces that it can do without; texts in it are not changed. */
function shortened(sql: string): string {
  const shorter = (part: string) => part.replace(/\s+/g, ' ').replace(/ ?([-+*/|,()=<>]) ?/g, '$1')
  return sql
    .trim()
    .split("'")
    .map((part, i) => (i % 2 === 0 ? shorter(part) : part))
    .join("'")
}
