/**
 * Parts of the SQL of questions: common table expressions. The SQL is what DuckDB and ClickHouse have in common: `median`, window functions,
 * no NULL as key of a join, no function of one engine.
 */

/** Runs, with what makes them comparable. */
export const RUN = `run as (
  -- Runs of one setup can be compared: model, quantisation, CPU, workers and backends are the same.
  select trace_id, coalesce(log, trace_id) as log, coalesce(build, '(not known)') as build,
    coalesce(host, '(not known)') as host, coalesce(origin_unix_ns, 0) as started_ns,
    concat(coalesce(model, architecture, '(no model)'), ' ', coalesce(quant, ''), ', ',
      coalesce(cpu, '(no CPU)'), ', ', cast(workers as varchar), ' workers, ', coalesce(backends, '')) as setup,
    workers, dur_ns, ttft_ns, tpot_ns, prefill_tok_per_s, decode_tok_per_s, decode_tokens, prompt_tokens
  from trace
)`

/** Two figures of each run, in ns for a token: less is better. */
export const FIGURE = `figure as (
  -- Time of a token in each phase, and its logarithm: times vary by factors.
  select trace_id, log, setup, build, host, started_ns, 'decode' as phase, tpot_ns as token_ns, ln(tpot_ns) as y
  from run where tpot_ns > 0
  union all
  select trace_id, log, setup, build, host, started_ns, 'prefill' as phase, 1e9 / prefill_tok_per_s as token_ns,
    -ln(prefill_tok_per_s) as y
  from run where prefill_tok_per_s > 0
)`

/** Builds of each setup in the order of their first runs. */
export const BUILD_ORDER = `build_order as (
  select setup, phase, build, runs,
    cast(row_number() over (partition by setup, phase order by first_ns, build) as bigint) as number
  from (
    select setup, phase, build, count(*) as runs, min(started_ns) as first_ns from figure group by setup, phase, build
  ) as builds
)`

/** 1 / Φ⁻¹(3/4): the median of absolute deviations times this is the standard deviation of a normal distribution. */
export const MAD_TO_SD = 1.4826
/** √(π / 2): the standard error of a median is this much larger than that of a mean. */
export const MEDIAN_ERROR = 1.2533

/** How many degrees of freedom the usual spread of a setup counts in the spread of one comparison (as in G. K. Smyth 2004). */
const PRIOR_FREEDOM = 20
/** Times of runs vary at least by this standard deviation of their logarithms. */
export const SD_MIN = 0.002

/**
 * The change from each build to the next one, of runs on hosts that ran both, where these are enough (the median of a host is taken
 * from each of its runs, so that hosts of different speed do not count), else of all runs.
 */
export const CHANGE = `cell as (
  select setup, phase, build, host, median(y) as middle, count(*) as runs from figure group by setup, phase, build, host
), numbered as (
  select cell.setup as setup, cell.phase as phase, cell.host as host, cell.middle as middle, cell.runs as runs, number
  from cell join build_order as b on b.setup = cell.setup and b.phase = cell.phase and b.build = cell.build
), shared as (
  -- Hosts that ran a build and the one before it.
  select b.setup as setup, b.phase as phase, b.number as number, b.host as host, (a.middle + b.middle) / 2 as middle,
    a.runs + b.runs as runs, a.runs * b.runs * 1.0 / (a.runs + b.runs) as weight
  from numbered as b join numbered as a on a.setup = b.setup and a.phase = b.phase and a.host = b.host
  where a.number = b.number - 1
), pairing as (
  -- With them, as many parameters are estimated as there are hosts: their runs must be more.
  select setup, phase, number, count(*) as hosts, sum(weight) as weight from shared
  group by setup, phase, number having sum(runs) - count(*) >= 5
), run_at as (
  select trace_id, log, figure.setup as setup, figure.phase as phase, host, y, token_ns, number
  from figure join build_order as b on b.setup = figure.setup and b.phase = figure.phase and b.build = figure.build
), side as (
  -- Each run counts twice: in the comparison of its build with the one before, and with the next one.
  select trace_id, log, setup, phase, host, y, token_ns, number, 1 as is_after from run_at where number > 1
  union all
  select trace_id, log, setup, phase, host, y, token_ns, number + 1 as number, 0 as is_after from run_at
), sample as (
  select s.setup as setup, s.phase as phase, s.number as number, is_after, trace_id, log, token_ns,
    y - shared.middle as y, hosts, p.weight as weight
  from side as s
  join pairing as p on p.setup = s.setup and p.phase = s.phase and p.number = s.number
  join shared on shared.setup = s.setup and shared.phase = s.phase and shared.number = s.number and shared.host = s.host
  union all
  select setup, phase, number, is_after, trace_id, log, token_ns, y, 1 as hosts, 0 as weight
  from side
  where concat(setup, phase, cast(number as varchar)) not in
    (select concat(setup, phase, cast(number as varchar)) from pairing)
), centred as (
  select setup, phase, number, is_after, trace_id, log, token_ns, y, hosts, weight,
    median(y) over (partition by setup, phase, number, is_after) as middle
  from sample
), spread as (
  select setup, phase, number, max(hosts) as hosts, count(*) as runs,
    case when max(weight) > 0 then max(weight) else sum(is_after) * (1 - sum(is_after) * 1.0 / count(*)) end as weight,
    sum(is_after) as runs_after, count(*) - sum(is_after) as runs_before,
    max(case when is_after = 1 then middle end) - max(case when is_after = 0 then middle end) as change,
    median(case when is_after = 1 then token_ns end) as after_ns,
    median(case when is_after = 0 then token_ns end) as before_ns,
    ${MAD_TO_SD} * median(abs(y - middle)) as raw_sd
  from centred group by setup, phase, number
), enough as (
  select *, runs - hosts - 1 as own_freedom, raw_sd * sqrt(runs / (runs - hosts - 1.0)) as own_sd from spread
  where runs_after >= 3 and runs_before >= 3 and runs - hosts - 1 >= 3
), usual as (
  -- How much runs of a setup vary, by all comparisons of it: one comparison says little about that.
  select setup, phase, median(own_sd) as sd, sum(own_freedom) as freedom from enough group by setup, phase
), change as (
  select e.setup as setup, e.phase as phase, e.number as number, b.build as build, a.build as build_before,
    runs_after, runs_before, after_ns, before_ns, exp(change) - 1 as change_share,
    -- The spread of its own runs, as far as these are many, else the usual one.
    greatest(sqrt((own_freedom * own_sd * own_sd + ${PRIOR_FREEDOM} * sd * sd) / (own_freedom + ${PRIOR_FREEDOM})), ${SD_MIN})
      * ${MEDIAN_ERROR} / sqrt(weight) as error, change, freedom
  from enough as e
  join usual as u on u.setup = e.setup and u.phase = e.phase
  join build_order as b on b.setup = e.setup and b.phase = e.phase and b.number = e.number
  join build_order as a on a.setup = e.setup and a.phase = e.phase and a.number = e.number - 1
)`

/** Standard errors that a change must have: of ten thousand comparisons in which nothing changed, less than one has. */
const ERRORS = 4.5
/** The error itself is not well known from few runs: Student's quantile by its first terms. A MAD has 0.4 of their degrees of freedom. */
const CORRECTION = (ERRORS ** 2 + 1) / 4 / 0.4

/** Is `value` beyond its error with certainty? */
export const isCertain = (value: string): string =>
  `${value} > ${ERRORS} * (1 + ${CORRECTION.toFixed(1)} / freedom) * error`

/** The deviation of each run from its build, and what remains of it without the deviation of its host. */
export const DEVIATION = `of_build as (
  select *, y - median(y) over (partition by setup, phase, build) as from_build,
    count(*) over (partition by setup, phase, build) as runs_of_build
  from figure
), of_host as (
  select *, median(from_build) over (partition by setup, phase, host) as from_setup,
    count(*) over (partition by setup, phase, host) as runs_of_host
  from of_build where runs_of_build >= 4
), deviation as (
  -- A host with few runs has no speed of its own: its runs are compared with those of other hosts.
  select *, from_build - case when runs_of_host >= 4 then from_setup else 0 end as remainder from of_host
), usual_deviation as (
  select setup, phase, ${MAD_TO_SD} * median(abs(remainder)) as sd, count(*) as runs from deviation group by setup, phase
)`
