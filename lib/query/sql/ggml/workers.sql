-- The time of workers: in operators, waiting at barriers, and the rest of the calls in which they take part.
--
-- Times by call and by phase, and shares, need a trace made with --detail shapes (the default) or full.

INCLUDE PERFETTO MODULE ggml.operators;

-- Operators of each worker in each call; those in no recorded call have no phase.
CREATE PERFETTO TABLE ggml_worker_calls(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- The call; null: operators in no recorded call.
  call_id JOINID(slice.id),
  -- Its number.
  call LONG,
  -- Its phase; `none`: operators in no recorded call; null with --detail names.
  phase STRING,
  -- Start of the call.
  ts TIMESTAMP,
  -- Duration of the call.
  dur DURATION,
  -- Operators that the worker computed in it.
  operators LONG,
  -- Time of these operators.
  operator_dur DURATION,
  -- Time of waiting at the barriers after them.
  wait_dur DURATION,
  -- Part of it after the last worker had arrived (`ggml_operators.wait_open_dur`).
  wait_open_dur DURATION
) AS
SELECT
  operator.run_id,
  operator.worker,
  calls.id AS call_id,
  calls.call,
  operator.phase,
  calls.ts,
  calls.dur,
  count() AS operators,
  sum(operator.dur) AS operator_dur,
  sum(operator.wait_dur) AS wait_dur,
  sum(operator.wait_open_dur) AS wait_open_dur
FROM ggml_operators AS operator
LEFT JOIN _ggml_call_phases AS calls ON calls.call = operator.call AND calls.run_id = operator.run_id
GROUP BY operator.run_id, operator.worker, calls.id, operator.phase;

-- A value of several calls of a worker; null where its operators overlap or lie outside of them.
CREATE PERFETTO MACRO _ggml_of_idle(value Expr)
RETURNS Expr AS
iif(sum(dur - operator_dur - wait_dur) >= 0, $value, NULL);

-- The time of each worker, by the phase of the calls.
CREATE PERFETTO VIEW ggml_workers_by_phase(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- Phase of the calls; `none`: operators in no recorded call; null with --detail names.
  phase STRING,
  -- Calls in which it computed operators.
  calls LONG,
  -- Time of these calls.
  call_dur DURATION,
  -- Operators, also those in no recorded call.
  operators LONG,
  -- Time of these operators.
  operator_dur DURATION,
  -- Time of waiting at the barriers after them.
  wait_dur DURATION,
  -- Part of it after the last worker had arrived (`ggml_operators.wait_open_dur`).
  wait_open_dur DURATION,
  -- Time of its calls in which it was neither in an operator nor waited at a barrier; null without calls, and where its operators overlap or lie outside of them.
  idle_dur DURATION,
  -- Part of `call_dur` in operators, with or without a CPU, from 0 to 1; null without calls.
  operator_share DOUBLE,
  -- Part that is waiting at barriers.
  wait_share DOUBLE,
  -- Part that is neither.
  idle_share DOUBLE
) AS
SELECT
  run_id,
  worker,
  phase,
  count(call_id) AS calls,
  ifnull(sum(dur), 0) AS call_dur,
  sum(operators) AS operators,
  sum(operator_dur) AS operator_dur,
  sum(wait_dur) AS wait_dur,
  sum(wait_open_dur) AS wait_open_dur,
  _ggml_of_idle!(sum(dur - operator_dur - wait_dur)) AS idle_dur,
  _ggml_of_idle!(1.0 * sum(iif(dur IS NULL, NULL, operator_dur)) / nullif(sum(dur), 0)) AS operator_share,
  _ggml_of_idle!(1.0 * sum(iif(dur IS NULL, NULL, wait_dur)) / nullif(sum(dur), 0)) AS wait_share,
  _ggml_of_idle!(1.0 * sum(dur - operator_dur - wait_dur) / nullif(sum(dur), 0)) AS idle_share
FROM ggml_worker_calls
GROUP BY run_id, worker, phase;

-- The time of each worker.
CREATE PERFETTO VIEW ggml_workers(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- Calls in which it computed operators.
  calls LONG,
  -- Time of these calls.
  call_dur DURATION,
  -- Operators, also those in no recorded call.
  operators LONG,
  -- Time of these operators.
  operator_dur DURATION,
  -- Time of waiting at the barriers after them.
  wait_dur DURATION,
  -- Part of it after the last worker had arrived (`ggml_operators.wait_open_dur`).
  wait_open_dur DURATION,
  -- Time of its calls in which it was neither in an operator nor waited at a barrier; null without calls, and where its operators overlap or lie outside of them.
  idle_dur DURATION,
  -- Part of `call_dur` in operators, with or without a CPU, from 0 to 1; null without calls.
  operator_share DOUBLE,
  -- Part that is waiting at barriers.
  wait_share DOUBLE,
  -- Part that is neither.
  idle_share DOUBLE
) AS
SELECT
  run_id,
  worker,
  count(call_id) AS calls,
  ifnull(sum(dur), 0) AS call_dur,
  sum(operators) AS operators,
  sum(operator_dur) AS operator_dur,
  sum(wait_dur) AS wait_dur,
  sum(wait_open_dur) AS wait_open_dur,
  _ggml_of_idle!(sum(dur - operator_dur - wait_dur)) AS idle_dur,
  _ggml_of_idle!(1.0 * sum(iif(dur IS NULL, NULL, operator_dur)) / nullif(sum(dur), 0)) AS operator_share,
  _ggml_of_idle!(1.0 * sum(iif(dur IS NULL, NULL, wait_dur)) / nullif(sum(dur), 0)) AS wait_share,
  _ggml_of_idle!(1.0 * sum(dur - operator_dur - wait_dur) / nullif(sum(dur), 0)) AS idle_share
FROM ggml_worker_calls
GROUP BY run_id, worker;
