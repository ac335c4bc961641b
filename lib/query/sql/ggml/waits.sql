-- Waits at barriers: a worker has finished its part of a node and waits for the others.

INCLUDE PERFETTO MODULE ggml.operators;

-- Waits at barriers after operators. Waits at barriers within an operator are in ggml_operators.inner_wait_dur.
CREATE PERFETTO VIEW ggml_waits(
  -- The slice of the wait; null for one that is too short to be drawn.
  id JOINID(slice.id),
  -- When the worker had finished its operator.
  ts TIMESTAMP,
  -- Time until it left the barrier.
  dur DURATION,
  -- Row of the worker.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- The worker that waits.
  worker LONG,
  -- The worker that finished the node last; null for that worker itself, and if it is not known. Needs --detail full.
  waited_for LONG,
  -- The operator before the barrier.
  operator_id JOINID(slice.id),
  -- Its op.
  op STRING,
  -- Its role.
  role STRING,
  -- Its layer; null if it is in none. Needs --detail shapes.
  layer LONG,
  -- Number of the call. Needs --detail shapes.
  call LONG,
  -- Phase of the call; `none` if no call is recorded; null with --detail names.
  phase STRING
) AS
SELECT
  barrier.id,
  barrier.ts,
  barrier.dur,
  barrier.track_id,
  operator.run_id,
  operator.worker,
  CAST(substr(extract_arg(slice.arg_set_id, 'debug.waited_for'), 8) AS INTEGER) AS waited_for,
  barrier.operator_id,
  operator.op,
  operator.role,
  operator.layer,
  operator.call,
  operator.phase
FROM _ggml_barriers AS barrier
LEFT JOIN slice ON slice.id = barrier.id
JOIN ggml_operators AS operator ON operator.id = barrier.operator_id;
