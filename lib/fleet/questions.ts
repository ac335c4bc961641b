import { BUILD_ORDER, CHANGE, DEVIATION, FIGURE, isCertain, MEDIAN_ERROR, RUN, SD_MIN } from './parts.ts'

/** A question that every fleet has. */
export interface Question {
  /** What its rows are, in one sentence. */
  readonly about: string
  /** SQL on the tables of a dataset, for DuckDB and ClickHouse. */
  readonly sql: string
}

/** Smaller changes are not named, however certain they are. */
const CHANGE_MIN = 0.03
/** Outliers are slower by this, and by this number of standard deviations. */
const OUTLIER_MIN = 0.12
const OUTLIER_SDS = 8
/** Slow hosts are slower by this. */
const HOST_MIN = 0.1

const REGRESSIONS = `with ${RUN}, ${FIGURE}, ${BUILD_ORDER}, ${DEVIATION}, ${CHANGE}, regression as (
  select * from change where change_share >= ${CHANGE_MIN} and ${isCertain('change')}
), compared as (
  -- Runs of both builds.
  select r.setup as setup, r.phase as phase, r.number as number, case when c.number = r.number then 1 else 0 end as is_after,
    trace_id, log, abs(adjusted - middle) as distance
  from centred as c join regression as r on r.setup = c.setup and r.phase = c.phase
  where c.number = r.number or c.number = r.number - 1
), example as (
  -- Of each side the run that is nearest to the median.
  select setup, phase, number, is_after, trace_id, log from (
    select *, row_number() over (partition by setup, phase, number, is_after order by distance, trace_id) as place from compared
  ) as ranked where place = 1
), of_role as (
  select w.setup as setup, w.phase as phase, w.number as number, w.is_after as is_after, o.trace_id as trace_id,
    coalesce(o.role, o.op) as role, sum(o.dur_ns) as ns
  from operator_sum as o join compared as w on w.trace_id = o.trace_id and w.phase = o.phase
  group by w.setup, w.phase, w.number, w.is_after, o.trace_id, coalesce(o.role, o.op)
), role_change as (
  -- Time of a role for a token and worker: the median of the runs.
  select setup, phase, number, role, median(case when is_after = 1 then ns / tokens end) as after_ns,
    median(case when is_after = 0 then ns / tokens end) as before_ns
  from (
    select o.setup as setup, phase, number, is_after, role,
      ns * 1.0 / workers as ns, case when phase = 'decode' then decode_tokens else prompt_tokens end as tokens
    from of_role as o join run on run.trace_id = o.trace_id
  ) as per_run
  group by setup, phase, number, role
), worst_role as (
  select setup, phase, number, role, after_ns - before_ns as more_ns, after_ns / before_ns - 1 as change_share from (
    select *, row_number() over (partition by setup, phase, number order by after_ns - before_ns desc, role) as place
    from role_change where after_ns is not null and before_ns is not null
  ) as ranked where place = 1
)
select r.setup as setup, r.phase as phase, r.build as build, r.build_before as build_before,
  round(100 * r.change_share, 1) as slower_percent, round(100 * (exp(2 * error) - 1), 1) as error_percent,
  round(before_ns / 1e6, 4) as before_ms_per_token, round(after_ns / 1e6, 4) as after_ms_per_token,
  runs_before, runs_after, w.role as most_by, round(100 * w.change_share, 1) as its_change_percent,
  round(100 * more_ns / (after_ns - before_ns), 0) as its_share_percent,
  x.trace_id as run_before, y.trace_id as run_after, y.log as log_after
from regression as r
left join worst_role as w on w.setup = r.setup and w.phase = r.phase and w.number = r.number
join example as x on x.setup = r.setup and x.phase = r.phase and x.number = r.number and x.is_after = 0
join example as y on y.setup = r.setup and y.phase = r.phase and y.number = r.number and y.is_after = 1
order by slower_percent desc, r.setup, r.phase`

const OUTLIERS = `with ${RUN}, ${FIGURE}, ${DEVIATION}, slow as (
  select d.trace_id as trace_id, log, host, build, d.setup as setup, d.phase as phase, token_ns, remainder,
    remainder / greatest(sd, ${SD_MIN}) as deviations
  from deviation as d join usual_deviation as u on u.setup = d.setup and u.phase = d.phase
  where u.runs >= 8 and exp(remainder) - 1 >= ${OUTLIER_MIN} and remainder > ${OUTLIER_SDS} * greatest(sd, ${SD_MIN})
), taken as (
  select trace_id, sum(case when state = 'runnable' then dur_ns else 0 end) * 1.0 / sum(dur_ns) as share
  from state where worker is not null and state in ('running', 'runnable') group by trace_id
), first_finding as (
  select trace_id, rule, sentence from finding where rank = 0
)
select s.trace_id as trace_id, log, host, build, setup, phase, round(100 * (exp(remainder) - 1), 1) as slower_percent,
  round(deviations, 1) as deviations, round(token_ns / 1e6, 4) as ms_per_token,
  round(100 * t.share, 1) as preempted_percent, f.rule as finding, f.sentence as sentence
from slow as s
left join taken as t on t.trace_id = s.trace_id
left join first_finding as f on f.trace_id = s.trace_id
order by slower_percent desc, s.trace_id, s.phase`

const BY_HOST = `with ${RUN}, ${FIGURE}, ${DEVIATION}
select d.setup as setup, d.host as host, d.phase as phase, count(*) as runs,
  round(median(token_ns) / 1e6, 4) as ms_per_token, round(1e9 / median(token_ns), 2) as tok_per_s,
  round(100 * (exp(max(from_setup)) - 1), 1) as slower_percent,
  case when exp(max(from_setup)) - 1 >= ${HOST_MIN} and count(*) >= 4
    and max(from_setup) > 5 * ${MEDIAN_ERROR} * max(greatest(sd, ${SD_MIN})) / sqrt(count(*)) then 'slow' else '' end as verdict,
  max(case when newest = 1 then trace_id end) as last_run
from (
  select *, row_number() over (partition by setup, phase, host order by started_ns desc, trace_id) as newest from deviation
) as d
join usual_deviation as u on u.setup = d.setup and u.phase = d.phase
group by d.setup, d.host, d.phase
order by d.setup, d.phase, slower_percent desc, d.host`

const BY_BUILD = `with ${RUN}, ${FIGURE}, ${BUILD_ORDER}, ${DEVIATION}, ${CHANGE}, of_run as (
  select f.setup as setup, f.phase as phase, f.build as build, f.host as host, token_ns, ttft_ns,
    rank() over (partition by f.setup, f.phase, f.build order by token_ns) as place,
    count(*) over (partition by f.setup, f.phase, f.build) as of_runs
  from figure as f join run on run.trace_id = f.trace_id
), per_build as (
  select setup, phase, build, count(*) as runs, count(distinct host) as hosts, median(token_ns) as token_ns,
    min(case when place >= 0.9 * of_runs then token_ns end) as p90_ns, median(ttft_ns) as ttft_ns
  from of_run group by setup, phase, build
)
select o.setup as setup, o.phase as phase, n.number as number, o.build as build, o.runs as runs, hosts,
  round(1e9 / token_ns, 2) as tok_per_s, round(token_ns / 1e6, 4) as ms_per_token, round(p90_ns / 1e6, 4) as p90_ms_per_token,
  round(ttft_ns / 1e6, 3) as ttft_ms, round(100 * change_share, 1) as change_percent,
  case when ${isCertain('abs(change)')} and change_share >= ${CHANGE_MIN} then 'slower'
    when ${isCertain('abs(change)')} and change_share <= -${CHANGE_MIN} then 'faster'
    else '' end as verdict
from per_build as o
join build_order as n on n.setup = o.setup and n.phase = o.phase and n.build = o.build
left join change as c on c.setup = o.setup and c.phase = o.phase and c.number = n.number
order by o.setup, o.phase, n.number`

const SLOWEST_OPERATORS = `with total as (
  select role, op, type, backend, cast(sum(operators) as bigint) as n, sum(dur_ns) as ns, sum(wait_ns) as wait_ns,
    sum(bytes_read) as bytes, sum(flop) as flop, max(longest_ns) as longest_ns
  from operator_sum group by role, op, type, backend
)
select coalesce(role, '') as role, op, coalesce(type, '') as type, coalesce(backend, '') as backend,
  round(100.0 * ns / sum(ns) over (), 2) as time_percent, round(ns / 1e9, 3) as seconds, n, round(ns / 1e3 / n, 2) as mean_us, round(longest_ns / 1e3, 1) as longest_us,
  -- Each worker's row has the work of all workers, and about the time of the node.
  round(bytes * 1.0 / ns, 2) as gb_per_s, round(flop * 1.0 / ns, 2) as gflop_per_s,
  round(100.0 * wait_ns / (ns + wait_ns), 1) as wait_percent
from total order by ns desc, role, op limit 30`

const PREEMPTION = `with ${RUN}, part as (
  select trace_id, state, coalesce(taken_by, '') as taken_by, sum(dur_ns) as ns, sum(taken_by_ns) as taken_ns, count(*) as times,
    max(dur_ns) as longest_ns
  from state where worker is not null and state in ('running', 'runnable') group by trace_id, state, coalesce(taken_by, '')
), taken as (
  select trace_id, sum(ns) as all_ns, sum(case when state = 'runnable' then ns else 0 end) as runnable_ns,
    sum(case when state = 'runnable' then times else 0 end) as times,
    max(case when state = 'runnable' then longest_ns else 0 end) as longest_ns
  from part group by trace_id
), taker as (
  select trace_id, taken_by from (
    select trace_id, taken_by, row_number() over (partition by trace_id order by taken_ns desc, taken_by) as place
    from part where state = 'runnable' and taken_by <> ''
  ) as ranked where place = 1
)
select t.trace_id as trace_id, log, host, build, setup, round(100.0 * runnable_ns / all_ns, 2) as preempted_percent,
  round(runnable_ns / 1e6, 3) as preempted_ms, times, round(longest_ns / 1e6, 3) as longest_ms, k.taken_by as most_by
from taken as t join run on run.trace_id = t.trace_id
left join taker as k on k.trace_id = t.trace_id
where runnable_ns > 0
order by preempted_percent desc, t.trace_id limit 50`

/** The questions, by their names. */
export const QUESTIONS = {
  regressions: {
    about:
      'Builds in which a token takes at least 3 % longer than in the build before, with certainty; the role that explains most of it; typical runs.',
    sql: REGRESSIONS,
  },
  'slowest-operators': {
    about: 'Roles and ops by their time in all runs, with bandwidth and FLOP rate.',
    sql: SLOWEST_OPERATORS,
  },
  'by-build': {
    about:
      'Time of a token and TTFT by build, in the order of first runs, with the change from the build before on the same hosts.',
    sql: BY_BUILD,
  },
  'by-host': {
    about:
      'Time of a token by host, and how much slower a host is than others of its setup, without differences of builds.',
    sql: BY_HOST,
  },
  outliers: {
    about: 'Runs that are at least 12 % slower than others of their setup, build and host, and their first finding.',
    sql: OUTLIERS,
  },
  preemption: {
    about:
      'Runs by the share of time in which workers were ready to run but others had their CPUs, and who took most of it.',
    sql: PREEMPTION,
  },
} as const satisfies Readonly<Record<string, Question>>

/** Name of a question. */
export type QuestionName = keyof typeof QUESTIONS
