-- Waits at barriers: a worker has finished its part of a node and waits for the others.

INCLUDE PERFETTO MODULE ggml.operators;

-- Waits at barriers after operators, in two parts. Waits at barriers within an operator are in ggml_operators.inner_wait_dur.
CREATE PERFETTO VIEW ggml_waits(
  -- The slice of the part; null for one that is too short to be drawn.
  id JOINID(slice.id),
  -- When the part began.
  ts TIMESTAMP,
  -- Its time.
  dur DURATION,
  -- `wait`: until the last worker arrived; `open`: after that, while the worker had no CPU or had not noticed; null if the last arrival is not known: of waits that are too short to be drawn, and where operators of a worker are missing.
  part STRING,
  -- Row of the worker.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- The worker that waits.
  worker LONG,
  -- The worker that finished the node last; null for other parts than `wait`, and where it is not drawn.
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
  barrier.part,
  barrier.track_id,
  operator.run_id,
  operator.worker,
  iif(barrier.part = 'wait', CAST(substr(slice.name, 17) AS INTEGER), NULL) AS waited_for,
  barrier.operator_id,
  operator.op,
  operator.role,
  operator.layer,
  operator.call,
  operator.phase
FROM _ggml_barriers AS barrier
LEFT JOIN slice ON slice.id = barrier.id
JOIN ggml_operators AS operator ON operator.id = barrier.operator_id;
