-- What kept workers from computing: other threads had their CPUs, or their threads waited for something.
--
-- Needs a trace made with --detail shapes (the default) or full, of a log that contains the states of threads, or of a log and a
-- recording of the scheduler (docs/scheduler.md of ggml2perfetto).

INCLUDE PERFETTO MODULE ggml.workers;

-- States of the threads that served workers. A thread has states also while it serves no worker.
CREATE PERFETTO TABLE ggml_thread_states(
  -- The slice of the state.
  id JOINID(slice.id),
  -- Start of the state.
  ts TIMESTAMP,
  -- Its duration; of a last state, until the end of the log or of the recording.
  dur DURATION,
  -- Row of the states.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- The thread.
  tid LONG,
  -- `running`, `preempted` (it could run and another thread had its CPU), `woken` (it could run again) or `blocked`.
  state STRING,
  -- CPU where it ran, or last ran; null if it is not known.
  cpu LONG,
  -- Command and thread id of the thread that had the CPU longest while it was preempted or woken; null if it is not known.
  taken_by STRING,
  -- Time for which that thread had it.
  taken_dur DURATION,
  -- Command and thread id of the thread that woke it; null if it is not known.
  woken_by STRING,
  -- It ran on another CPU before.
  is_migration BOOL
) AS
WITH
  states AS (
    SELECT
      slice.id,
      slice.ts,
      slice.dur,
      slice.track_id,
      track.run_id,
      extract_arg(slice.arg_set_id, 'debug.tid') AS tid,
      CASE
        WHEN slice.name GLOB 'running*' THEN 'running'
        WHEN slice.name GLOB '*preempted*' THEN 'preempted'
        WHEN slice.name GLOB '*woken*' THEN 'woken'
        ELSE 'blocked'
      END AS state,
      extract_arg(slice.arg_set_id, 'debug.cpu') AS cpu,
      ifnull(
        extract_arg(slice.arg_set_id, 'debug.taken_by'), extract_arg(slice.arg_set_id, 'debug.taken_first_by')
      ) AS taken_by,
      extract_arg(slice.arg_set_id, 'debug.taken_by_ns') AS taken_dur,
      extract_arg(slice.arg_set_id, 'debug.woken_by') AS woken_by
    FROM slice
    JOIN _ggml_rows AS track USING (track_id)
    WHERE
      slice.category = 'state' AND track.name GLOB 'worker [0-9]*: state*'
      AND slice.name NOT IN ('starting', 'not running', 'ended') -- inferred
  ),
  runs AS (
    SELECT id, cpu != lag(cpu) OVER (PARTITION BY run_id, tid ORDER BY ts) AS is_migration
    FROM states
    WHERE state = 'running' AND cpu IS NOT NULL
  )
SELECT
  states.id,
  ts,
  dur,
  track_id,
  run_id,
  tid,
  state,
  cpu,
  taken_by,
  taken_dur,
  woken_by,
  ifnull(is_migration, 0) AS is_migration
FROM states
LEFT JOIN runs USING (id)
ORDER BY ts;

-- The threads that served each worker in each call: the first one from the start of the call, the last one to its end.
CREATE PERFETTO TABLE ggml_worker_threads(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- The call.
  call_id JOINID(slice.id),
  -- Its phase.
  phase STRING,
  -- The thread; null if it is not recorded.
  tid LONG,
  -- From when it served the worker.
  ts TIMESTAMP,
  -- For how long.
  dur DURATION
) AS
WITH
  -- An operator has the thread as an argument if it is another one than the worker's before.
  changes AS (
    SELECT
      worker.run_id,
      worker.worker,
      slice.ts,
      extract_arg(slice.arg_set_id, 'debug.tid') AS tid
    FROM slice
    JOIN _ggml_worker_tracks AS worker USING (track_id)
    WHERE slice.category = 'operator' AND extract_arg(slice.arg_set_id, 'debug.tid') IS NOT NULL
  ),
  threads AS (
    SELECT *, lag(tid) OVER (PARTITION BY run_id, worker ORDER BY ts) AS before_tid FROM changes
  ),
  served AS (
    SELECT
      run_id,
      worker,
      tid,
      ts,
      ifnull(lead(ts) OVER (PARTITION BY run_id, worker ORDER BY ts), 9223372036854775807) AS end_ts
    FROM threads
    WHERE tid IS NOT before_tid
  ),
  firsts AS (
    SELECT operator.run_id, operator.worker, operator.call, min(operator.ts) AS ts
    FROM ggml_operators AS operator
    GROUP BY operator.run_id, operator.worker, operator.call
  ),
  parts AS (
    SELECT
      of.run_id,
      of.worker,
      of.call_id,
      of.phase,
      served.tid,
      iif(served.ts <= firsts.ts, of.ts, max(served.ts, of.ts)) AS ts,
      min(served.end_ts, of.ts + of.dur) AS end_ts
    FROM ggml_worker_calls AS of
    JOIN firsts ON firsts.run_id = of.run_id AND firsts.worker = of.worker AND firsts.call = of.call
    JOIN served
      ON served.run_id = of.run_id AND served.worker = of.worker
      AND served.ts < of.ts + of.dur AND served.end_ts > firsts.ts
    WHERE of.call_id IS NOT NULL
  )
SELECT run_id, worker, call_id, phase, tid, ts, end_ts - ts AS dur FROM parts WHERE end_ts > ts ORDER BY ts;

-- States of the threads of workers, cut to the calls in which they served them.
CREATE PERFETTO TABLE ggml_worker_states(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- The call.
  call_id JOINID(slice.id),
  -- Its phase.
  phase STRING,
  -- The slice of the state, of which this is a part.
  state_id JOINID(slice.id),
  -- Start of the part.
  ts TIMESTAMP,
  -- Its duration.
  dur DURATION,
  -- The thread.
  tid LONG,
  -- `running`, `preempted`, `woken` or `blocked`.
  state STRING,
  -- CPU where it ran, or last ran; null if it is not known.
  cpu LONG,
  -- The state began in the call, and while the thread served the worker.
  is_begin BOOL,
  -- It began on another CPU than the thread ran on before.
  is_migration BOOL
) AS
SELECT
  served.run_id,
  served.worker,
  served.call_id,
  served.phase,
  state.id AS state_id,
  max(state.ts, served.ts) AS ts,
  min(state.ts + state.dur, served.ts + served.dur) - max(state.ts, served.ts) AS dur,
  state.tid,
  state.state,
  state.cpu,
  state.ts >= served.ts AS is_begin,
  state.is_migration AND state.ts > served.ts AS is_migration
FROM ggml_worker_threads AS served
JOIN ggml_thread_states AS state
  ON state.run_id = served.run_id AND state.tid = served.tid
  AND state.ts < served.ts + served.dur AND state.ts + state.dur > served.ts
ORDER BY ts;

-- States of each worker's threads in its calls, by phase. They sum to `call_dur`. Empty if no states are recorded.
CREATE PERFETTO VIEW ggml_interference(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the worker.
  worker LONG,
  -- Phase of the calls.
  phase STRING,
  -- Time of the calls in which it computed operators.
  call_dur DURATION,
  -- Time on a CPU.
  running_dur DURATION,
  -- Time without a CPU in which the thread could run: another thread took its CPU.
  preempted_dur DURATION,
  -- Times that this began.
  preemptions LONG,
  -- Time between being woken and running. 0 if it is not recorded when threads are woken: then `blocked_dur` contains it.
  woken_dur DURATION,
  -- Time of waiting for something.
  blocked_dur DURATION,
  -- Time without a recorded state.
  unknown_dur DURATION,
  -- Times that it ran on another CPU than before.
  migrations LONG
) AS
WITH
  served AS (
    SELECT run_id, worker, phase, sum(dur) AS call_dur FROM ggml_worker_threads GROUP BY run_id, worker, phase
  ),
  states AS (
    SELECT
      run_id,
      worker,
      phase,
      sum(dur) AS known_dur,
      sum(iif(state = 'running', dur, 0)) AS running_dur,
      sum(iif(state = 'preempted', dur, 0)) AS preempted_dur,
      sum(state = 'preempted' AND is_begin) AS preemptions,
      sum(iif(state = 'woken', dur, 0)) AS woken_dur,
      sum(iif(state = 'blocked', dur, 0)) AS blocked_dur,
      sum(is_migration) AS migrations
    FROM ggml_worker_states
    GROUP BY run_id, worker, phase
  )
SELECT
  served.run_id,
  served.worker,
  served.phase,
  served.call_dur,
  ifnull(running_dur, 0) AS running_dur,
  ifnull(preempted_dur, 0) AS preempted_dur,
  ifnull(preemptions, 0) AS preemptions,
  ifnull(woken_dur, 0) AS woken_dur,
  ifnull(blocked_dur, 0) AS blocked_dur,
  served.call_dur - ifnull(known_dur, 0) AS unknown_dur,
  ifnull(migrations, 0) AS migrations
FROM served
LEFT JOIN states
  ON states.run_id = served.run_id AND states.worker = served.worker AND states.phase = served.phase
WHERE served.run_id IN (SELECT run_id FROM ggml_worker_states);
