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
const MAD_TO_SD = 1.4826
/** √(π / 2): the standard error of a median is this much larger than that of a mean. */
export const MEDIAN_ERROR = 1.2533

/** How many degrees of freedom the usual spread of a setup counts in the spread of one build (as in G. K. Smyth 2004). */
const PRIOR_FREEDOM = 20
/** Times of runs vary at least by this standard deviation of their logarithms. */
export const SD_MIN = 0.002
/** Hosts and builds with fewer runs have no level of their own. */
const HOST_RUNS_MIN = 4
const BUILD_RUNS_MIN = 3

/**
 * What remains of each run without the level of its build, then without that of its host: medians, so that single slow runs do not count (one
 * round of Tukey's median polish).
 */
export const DEVIATION = `of_build as (
  select *, y - median(y) over (partition by setup, phase, build) as from_build,
    count(*) over (partition by setup, phase, build) as runs_of_build
  from figure
), of_host as (
  select *, median(from_build) over (partition by setup, phase, host) as from_setup,
    count(*) over (partition by setup, phase, host) as runs_of_host
  from of_build where runs_of_build >= ${BUILD_RUNS_MIN}
), deviation as (
  -- A host with few runs has no speed of its own: its runs are compared with those of other hosts.
  select *, y - case when runs_of_host >= ${HOST_RUNS_MIN} then from_setup else 0 end as adjusted,
    from_build - case when runs_of_host >= ${HOST_RUNS_MIN} then from_setup else 0 end as remainder
  from of_host
), usual_deviation as (
  select setup, phase, ${MAD_TO_SD} * median(abs(remainder)) as sd, count(*) as runs, count(distinct host) as hosts,
    count(distinct build) as builds
  from deviation group by setup, phase
)`

/** The change from each build to the next one, without the differences of hosts, and its standard error. */
export const CHANGE = `centred as (
  select d.setup as setup, d.phase as phase, number, d.build as build, trace_id, log, token_ns, adjusted,
    median(adjusted) over (partition by d.setup, d.phase, d.build) as middle
  from deviation as d join build_order as b on b.setup = d.setup and b.phase = d.phase and b.build = d.build
), level as (
  select setup, phase, number, build, count(*) as runs, max(middle) as middle, median(token_ns) as token_ns,
    ${MAD_TO_SD} * median(abs(adjusted - middle)) * sqrt(count(*) / (count(*) - 1.0)) as own_sd
  from centred group by setup, phase, number, build
), usual as (
  -- How much runs of a setup vary, by all of its builds: the runs of one build say little about that.
  select setup, phase, greatest(sd, ${SD_MIN}) * sqrt(runs / (runs - hosts - builds * 1.0)) as sd, runs - hosts - builds as freedom
  from usual_deviation where runs - hosts - builds >= 5
), error_of as (
  select l.setup as setup, l.phase as phase, number, build, runs, middle, token_ns, freedom,
    (own_sd * own_sd * (runs - 1) + sd * sd * ${PRIOR_FREEDOM}) / (runs - 1 + ${PRIOR_FREEDOM}) / runs as square
  from level as l join usual as u on u.setup = l.setup and u.phase = l.phase
), change as (
  select b.setup as setup, b.phase as phase, b.number as number, b.build as build, a.build as build_before,
    b.runs as runs_after, a.runs as runs_before, b.token_ns as after_ns, a.token_ns as before_ns,
    b.middle - a.middle as change, exp(b.middle - a.middle) - 1 as change_share,
    ${MEDIAN_ERROR} * sqrt(b.square + a.square) as error, b.freedom as freedom
  from error_of as b join error_of as a on a.setup = b.setup and a.phase = b.phase and a.number = b.number - 1
)`

/** Standard errors that a change must have: of ten thousand comparisons in which nothing changed, less than one has. */
const ERRORS = 4.5
/** The error itself is not well known from few runs: Student's quantile by its first terms. A MAD has 0.4 of their degrees of freedom. */
const CORRECTION = (ERRORS ** 2 + 1) / 4 / 0.4

/** Is `value` beyond its error with certainty? */
export const isCertain = (value: string): string =>
  `${value} > ${ERRORS} * (1 + ${CORRECTION.toFixed(1)} / freedom) * error`
