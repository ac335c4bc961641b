-- Requests to a server, or uses of sequences: where the time of each went. Needs --detail shapes (the default) or full.

INCLUDE PERFETTO MODULE ggml.calls;

-- Parts of requests: they cover each from its post to its end.
CREATE PERFETTO TABLE ggml_request_parts(
  -- The slice of the part; of a request that no slot worked on, that of the request.
  id JOINID(slice.id),
  -- Its start.
  ts TIMESTAMP,
  -- Its duration.
  dur DURATION,
  -- The row of the slot, or Queue.
  track_id JOINID(track.id),
  -- Group of the run: a trace may contain several.
  run_id JOINID(track.id),
  -- Number of the request in the log.
  request LONG,
  -- The server's number of its task; null if it is not known.
  task LONG,
  -- `call-wait`, `deferred`, `queued`, `prepare`, `prefill`, `draft`, `decode`, `verify`, `sample`, `text`, `stalled`, `send` or `other`.
  part STRING,
  -- Number of its call; null without one.
  call LONG,
  -- Tokens of the request in the call, or of its draft; null if they are not known.
  tokens LONG,
  -- Drafted tokens that were accepted; null if they are not known.
  accepted LONG,
  -- Tokens of other requests in the same call, or in the calls for which it waits.
  other_tokens LONG
) AS
WITH
  slices AS (
    SELECT
      slice.id,
      slice.ts,
      slice.dur,
      slice.track_id,
      track.run_id,
      extract_arg(arg_set_id, 'debug.request') AS request,
      extract_arg(arg_set_id, 'debug.task') AS task,
      replace(substr(slice.name, 1, instr(slice.name || ' ', ' ') - 1), ':', '') AS word,
      slice.category,
      track.name AS row,
      extract_arg(arg_set_id, 'debug.call') AS call,
      extract_arg(arg_set_id, 'debug.tokens') AS tokens,
      extract_arg(arg_set_id, 'debug.accepted') AS accepted,
      ifnull(extract_arg(arg_set_id, 'debug.other_tokens'), 0) AS other_tokens
    FROM slice
    JOIN _ggml_rows AS track USING (track_id)
    WHERE category IN ('request', 'request_part')
  )
SELECT
  id,
  ts,
  dur,
  track_id,
  run_id,
  request,
  task,
  iif(category = 'request', 'queued', word) AS part,
  call,
  tokens,
  accepted,
  other_tokens
FROM slices
-- A request that no slot worked on is one slice in the queue.
WHERE category = 'request_part' OR row GLOB 'Queue*'
ORDER BY ts;

-- Requests.
CREATE PERFETTO TABLE ggml_requests(
  -- The slice of the request: what a slot did for it, without its time in the queue.
  id JOINID(slice.id),
  -- Its post into the queue, or its start.
  ts TIMESTAMP,
  -- Its latency; null if it is not known. In a log without times, from its prompt on, as the server measured it.
  dur DURATION,
  -- The row of the slot, or Queue.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- Number of the request in the log, from 1.
  request LONG,
  -- The server's number of its task; null if it is not known.
  task LONG,
  -- Its slot; null if it never got one.
  slot LONG,
  -- `completion`, `embedding` or `unknown`.
  type STRING,
  -- `complete`, `cancelled`, `error` or `unfinished`.
  outcome STRING,
  -- From its start to its first token; null without one.
  ttft DURATION,
  -- Null if it is not known.
  prompt_tokens LONG,
  -- Tokens of the prompt that were in the cache.
  reused_tokens LONG,
  -- Tokens of the answer.
  generated_tokens LONG,
  -- Position of the first token for which the cache had another one; null: none.
  lost_from LONG,
  -- Tokens of the slot from there on.
  lost_tokens LONG
) AS
SELECT
  slice.id,
  -- In a log without times, a slice is drawn where its lines are, and not as long as the request.
  iif(
    extract_arg(arg_set_id, 'debug.unplaced') IS NULL,
    slice.ts + slice.dur - extract_arg(arg_set_id, 'debug.latency_ns'),
    slice.ts
  ) AS ts,
  extract_arg(arg_set_id, 'debug.latency_ns') AS dur,
  slice.track_id,
  track.run_id,
  extract_arg(arg_set_id, 'debug.request') AS request,
  extract_arg(arg_set_id, 'debug.task') AS task,
  extract_arg(arg_set_id, 'debug.slot') AS slot,
  extract_arg(arg_set_id, 'debug.type') AS type,
  extract_arg(arg_set_id, 'debug.outcome') AS outcome,
  extract_arg(arg_set_id, 'debug.ttft_ns') AS ttft,
  extract_arg(arg_set_id, 'debug.prompt_tokens') AS prompt_tokens,
  extract_arg(arg_set_id, 'debug.reused_tokens') AS reused_tokens,
  extract_arg(arg_set_id, 'debug.generated_tokens') AS generated_tokens,
  extract_arg(arg_set_id, 'debug.lost_from') AS lost_from,
  extract_arg(arg_set_id, 'debug.lost_tokens') AS lost_tokens
FROM slice
JOIN _ggml_rows AS track USING (track_id)
WHERE category = 'request'
ORDER BY ts;

-- Sums of the parts of all requests, by slot. A part in which a call was preempted, or has prompts of others, counts as its call.
CREATE PERFETTO VIEW ggml_request_time(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Its slot; null: none.
  slot LONG,
  -- The part.
  part STRING,
  -- Slices.
  count LONG,
  -- Their time.
  dur DURATION
) AS
SELECT
  part.run_id,
  request.slot,
  part.part,
  count() AS count,
  sum(part.dur) AS dur
FROM ggml_request_parts AS part
JOIN ggml_requests AS request ON request.run_id = part.run_id AND request.request = part.request
GROUP BY part.run_id, request.slot, part.part;
