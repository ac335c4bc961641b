-- Operators: executions of nodes of graphs by workers.
--
-- Layers, shapes, types and calls need a trace made with --detail shapes (the default) or full.

INCLUDE PERFETTO MODULE ggml.calls;

-- Rows of workers: of the run or, of further ones, in a group. A worker whose slices overlap has several.
CREATE PERFETTO TABLE _ggml_worker_tracks AS
SELECT track_id, run_id, CAST(substr(name, 8) AS INTEGER) AS worker
FROM _ggml_rows
WHERE
  name GLOB 'worker [0-9]*' AND name NOT GLOB '*:*'
  AND ifnull(group_name, 'Workers') IN ('Workers', 'Further workers');

-- Rows in which waits are drawn only from a duration on: shorter ones after the first one are gaps between operators.
CREATE PERFETTO TABLE _ggml_drawn_from AS
SELECT slice.track_id, slice.ts AS after_ts, args.int_value AS dur
FROM args
JOIN slice ON slice.arg_set_id = args.arg_set_id
WHERE args.key = 'debug.drawn_from_ns' AND slice.category = 'barrier';

-- The part of a wait, by the name of its slice.
CREATE PERFETTO MACRO _ggml_wait_part(name Expr)
RETURNS Expr AS
CASE WHEN $name GLOB 'wait for worker *' THEN 'wait' WHEN $name = 'barrier open, not running' THEN 'open' END;

-- Slices of workers. `gap`: the part of a wait that is not drawn after it, before the next slice; `operator_id`: the operator before a wait.
CREATE PERFETTO TABLE _ggml_worker_slices AS
WITH
  slices AS (
    SELECT
      id,
      ts,
      dur,
      category,
      track_id,
      iif(category = 'barrier', _ggml_wait_part!(name), NULL) AS part,
      lead(ts) OVER in_row - ts - dur AS gap,
      lead(category) OVER in_row AS next_category,
      lead(name) OVER in_row AS next_name,
      lead(arg_set_id) OVER in_row AS next_arg_set_id,
      iif(lag(category) OVER in_row = 'barrier', lag(id, 2) OVER in_row, lag(id) OVER in_row) AS operator_id
    FROM slice
    WHERE category IN ('operator', 'barrier', 'operator_sum', 'barrier_sum')
    WINDOW in_row AS (PARTITION BY track_id ORDER BY ts, id)
  )
SELECT
  slices.id,
  slices.ts,
  slices.dur,
  category,
  track_id,
  part,
  _ggml_wait_part!(next_name) AS next_part,
  operator_id,
  iif(
    category IN ('operator', 'barrier') AND next_category IN ('operator', 'barrier')
    AND slices.ts >= drawn.after_ts + (category = 'operator') AND gap BETWEEN 1 AND drawn.dur - 1
    AND ifnull(next_arg_set_id, -1) NOT IN (SELECT arg_set_id FROM args WHERE key = 'debug.gap_before'),
    gap,
    0
  ) AS gap
FROM slices
LEFT JOIN _ggml_drawn_from AS drawn USING (track_id);

-- Parts of waits at barriers, and the operators before them. `id` is null for parts that are not drawn: gaps. One of 1 ns is of the slice before it.
CREATE PERFETTO TABLE _ggml_barriers AS
SELECT id, ts, dur + (gap = 1) AS dur, track_id, part, operator_id
FROM _ggml_worker_slices
WHERE category = 'barrier'
UNION ALL
SELECT NULL, ts + dur, gap, track_id, iif(part = 'wait', 'open', part), operator_id
FROM _ggml_worker_slices
WHERE category = 'barrier' AND gap > 1
UNION ALL
SELECT NULL, ts + dur, gap, track_id, iif(next_part = 'open', 'wait', NULL), id
FROM _ggml_worker_slices
WHERE category = 'operator' AND gap > 0
ORDER BY operator_id;

-- The wait after each operator.
CREATE PERFETTO TABLE _ggml_operator_waits AS
SELECT operator_id, sum(dur) AS dur, ifnull(sum(iif(part = 'open', dur, 0)), 0) AS open_dur
FROM _ggml_barriers
GROUP BY operator_id
ORDER BY operator_id;

-- Phases of calls by their numbers.
CREATE PERFETTO TABLE _ggml_call_phases AS
SELECT run_id, call, phase, id, ts, dur FROM ggml_calls WHERE call IS NOT NULL ORDER BY call;

-- Numbers of the calls of operators, and their threads. Only the first one of a call, or a thread, in a row has it as an argument; call -1: those
-- that follow are of none.
CREATE PERFETTO TABLE _ggml_operator_calls AS
WITH
  numbered AS (
    SELECT
      slice.id,
      slice.ts,
      slice.track_id,
      extract_arg(slice.arg_set_id, 'debug.call') AS call,
      extract_arg(slice.arg_set_id, 'debug.tid') AS tid
    FROM slice
    JOIN _ggml_worker_tracks USING (track_id)
    WHERE slice.category = 'operator'
  ),
  grouped AS (
    SELECT *, count(call) OVER in_row AS nth_call, count(tid) OVER in_row AS nth_tid
    FROM numbered
    WINDOW in_row AS (PARTITION BY track_id ORDER BY ts, id)
  )
SELECT
  id,
  nullif(max(call) OVER (PARTITION BY track_id, nth_call), -1) AS call,
  max(tid) OVER (PARTITION BY track_id, nth_tid) AS tid
FROM grouped
ORDER BY id;

-- The last word of the name of an operator; its number is a word of its own in `op 104`.
CREATE PERFETTO MACRO _ggml_last_word(name Expr)
RETURNS Expr AS
substr(
  $name,
  1 + length(rtrim(iif($name GLOB '*op [0-9]*', replace($name, 'op ', 'op_'), $name), replace($name, ' ', '') || '_'))
);

-- The ops in the names of slices: an expression for each slice takes longer than the rest of the view.
CREATE PERFETTO TABLE _ggml_operator_names AS
SELECT
  name,
  _ggml_last_word!(name) AS op
FROM (
  SELECT DISTINCT
    name
  FROM slice
  WHERE
    category = 'operator'
)
ORDER BY
  name;

-- Executions of nodes by workers.
CREATE PERFETTO VIEW ggml_operators(
  -- The slice of the operator.
  id JOINID(slice.id),
  -- When the worker began to compute it.
  ts TIMESTAMP,
  -- Time of computing, with waits at barriers in the operator.
  dur DURATION,
  -- Row of the worker.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- The thread that was the worker; null if it is not recorded. Needs --detail shapes.
  tid LONG,
  -- Name of the slice.
  name STRING,
  -- Op, such as `MUL_MAT`; of fused nodes the first and the last one, such as `RMS_NORM+MUL`.
  op STRING,
  -- Name of the tensor without the number of its layer; empty if it has none.
  role STRING,
  -- Name of the tensor. Needs --detail shapes.
  tensor STRING,
  -- Layer; null if it is in none. Needs --detail shapes.
  layer LONG,
  -- Shape of the result. Needs --detail shapes.
  shape STRING,
  -- Type of the result. Needs --detail shapes.
  type STRING,
  -- Type of the first source: of a matrix product, that of the weights. Needs --detail shapes.
  src0_type STRING,
  -- Number of the call. Needs --detail shapes.
  call LONG,
  -- Phase of the call; `none` if no call is recorded; null with --detail names.
  phase STRING,
  -- Time of waiting at the barrier after it.
  wait_dur DURATION,
  -- Part of it after the last worker had arrived: the barrier was open, and the worker had no CPU or had not noticed. Waits that are not drawn are not in it.
  wait_open_dur DURATION,
  -- Part of `dur` at barriers in the operator. Needs --detail shapes.
  inner_wait_dur DURATION,
  -- Arguments of the slice.
  arg_set_id ARGSETID
) AS
WITH
  named AS (
    SELECT
      slice.id,
      slice.ts,
      slice.dur,
      slice.track_id,
      slice.arg_set_id,
      worker.run_id,
      worker.worker,
      call.tid,
      slice.name,
      -- The argument is there where the name does not end with the op.
      CASE
        WHEN extract_arg(arg_set_id, 'debug.op') IS NULL THEN names.op
        WHEN extract_arg(arg_set_id, 'debug.fused_to') IS NOT NULL
          THEN substr(slice.name, instr(slice.name, extract_arg(arg_set_id, 'debug.op') || '+'))
        ELSE extract_arg(arg_set_id, 'debug.op')
      END AS op,
      extract_arg(arg_set_id, 'debug.tensor') AS tensor,
      -- With its type, if that is recorded.
      extract_arg(arg_set_id, 'debug.shape') AS shape,
      call.call,
      coalesce(
        extract_arg(arg_set_id, 'debug.op'),
        extract_arg(arg_set_id, 'debug.tensor'),
        extract_arg(arg_set_id, 'debug.shape')
      ) IS NOT NULL AS has_args,
      extract_arg(arg_set_id, 'debug.fused_to') IS NOT NULL AS is_fused
    FROM slice
    JOIN _ggml_worker_tracks AS worker USING (track_id)
    LEFT JOIN _ggml_operator_names AS names ON names.name = slice.name
    LEFT JOIN _ggml_operator_calls AS call ON call.id = slice.id
    WHERE slice.category = 'operator'
  )
SELECT
  named.id,
  named.ts,
  named.dur,
  named.track_id,
  named.run_id,
  worker,
  named.tid,
  named.name,
  op,
  CASE
    -- The slice has the name of the first source.
    WHEN has_args AND tensor IS NULL AND NOT is_fused THEN ''
    WHEN substr(named.name, -length(op)) = op THEN substr(named.name, 1, max(0, length(named.name) - length(op) - 1))
    ELSE named.name
  END AS role,
  tensor,
  extract_arg(arg_set_id, 'debug.layer') AS layer,
  substr(named.shape, 1, instr(named.shape || ' ', ' ') - 1) AS shape,
  ifnull(
    nullif(substr(named.shape, instr(named.shape || ' ', ' ') + 1), ''),
    extract_arg(arg_set_id, 'debug.type')
  ) AS type,
  extract_arg(arg_set_id, 'debug.src0_type') AS src0_type,
  named.call,
  ifnull(calls.phase, iif(has_args, 'none', NULL)) AS phase,
  ifnull(barrier.dur, 0) AS wait_dur,
  ifnull(barrier.open_dur, 0) AS wait_open_dur,
  ifnull(extract_arg(arg_set_id, 'debug.inner_wait_ns'), 0) AS inner_wait_dur,
  arg_set_id
FROM named
LEFT JOIN _ggml_call_phases AS calls ON calls.call = named.call AND calls.run_id = named.run_id
LEFT JOIN _ggml_operator_waits AS barrier ON barrier.operator_id = named.id;
