-- Traces of long runs contain only some calls in full; of all others they contain sums of slices (convert --budget). With these
-- views, sums over all calls are exact in every trace.

INCLUDE PERFETTO MODULE ggml.operators;

-- Sums of slices of one name in successive calls. Their places in time are not those of what they sum. Needs --detail shapes.
CREATE PERFETTO VIEW ggml_sums(
  -- The slice of the sum.
  id JOINID(slice.id),
  -- The begin of its slice.
  ts TIMESTAMP,
  -- The sum of the durations.
  dur DURATION,
  -- Row of the worker, or of the graphs.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker; null for graphs.
  worker LONG,
  -- Category of what it sums: `operator`, `barrier`, `graph`, `outside`.
  what STRING,
  -- Name of what it sums, such as `ffn_up MUL_MAT`.
  name STRING,
  -- Number of slices that it sums.
  count LONG,
  -- The first call.
  call LONG,
  -- The last call.
  to_call LONG,
  -- Phase of the first call; those of others can differ with a very small budget.
  phase STRING
) AS
WITH
  sums AS (
    SELECT
      slice.id,
      slice.ts,
      slice.dur,
      slice.track_id,
      track.run_id,
      worker.worker,
      substr(slice.category, 1, length(slice.category) - 4) AS what,
      extract_arg(slice.arg_set_id, 'debug.summed') AS name,
      extract_arg(slice.arg_set_id, 'debug.count') AS count,
      extract_arg(slice.arg_set_id, 'debug.call') AS call,
      ifnull(extract_arg(slice.arg_set_id, 'debug.to_call'), extract_arg(slice.arg_set_id, 'debug.call')) AS to_call
    FROM slice
    JOIN _ggml_rows AS track USING (track_id)
    LEFT JOIN _ggml_worker_tracks AS worker ON worker.track_id = slice.track_id
    WHERE slice.category GLOB '*_sum'
  )
SELECT
  sums.id,
  sums.ts,
  sums.dur,
  sums.track_id,
  sums.run_id,
  sums.worker,
  sums.what,
  sums.name,
  sums.count,
  sums.call,
  sums.to_call,
  calls.phase
FROM sums
LEFT JOIN _ggml_call_phases AS calls ON calls.call = sums.call AND calls.run_id = sums.run_id;

-- Operators and barrier waits of all calls, in full and summed, by name, phase and worker.
CREATE PERFETTO VIEW ggml_time_by_name(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- Phase of the calls, of sums that of the first one; `none` if no call is recorded; null with --detail names.
  phase STRING,
  -- `operator` or `barrier`.
  what STRING,
  -- Name of the slices, such as `ffn_up MUL_MAT`.
  name STRING,
  -- Number of operators, or of waits.
  count LONG,
  -- Their time.
  dur DURATION
) AS
WITH
  both AS (
    SELECT run_id, worker, phase, 'operator' AS what, name, 1 AS count, dur FROM ggml_operators
    UNION ALL
    SELECT operator.run_id, operator.worker, operator.phase, 'barrier', 'barrier', 1, barrier.dur
    FROM _ggml_operator_waits AS barrier
    JOIN ggml_operators AS operator ON operator.id = barrier.operator_id
    UNION ALL
    SELECT run_id, worker, phase, what, name, count, dur FROM ggml_sums WHERE what IN ('operator', 'barrier')
  )
SELECT run_id, worker, phase, what, name, sum(count) AS count, sum(dur) AS dur
FROM both
GROUP BY run_id, worker, phase, what, name;
