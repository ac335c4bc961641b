-- Calls of llama.cpp (llama_decode, llama_encode) or steps of vLLM and SGLang, and the speed of decoding.
--
-- docs/reference/tracks.md of ggml2perfetto defines the phases, TTFT and TPOT. A trace made with --detail names has no arguments: there,
-- phases and tokens are those in the names, and the numbers of calls are not known.

-- Rows of runs: in the group of their run, in a group of that, or at the top beside it, where the viewer has further groups.
CREATE PERFETTO TABLE _ggml_rows AS
WITH
  runs AS (
    SELECT id FROM track
    WHERE
      parent_id IS NULL AND type = 'global_track_event' AND extract_arg(source_arg_set_id, 'child_ordering') = 'explicit'
    ORDER BY extract_arg(dimension_arg_set_id, 'track_uuid')
    LIMIT 1
  )
SELECT
  track.id AS track_id,
  track.name,
  coalesce(parent.parent_id, parent.id, (SELECT id FROM runs), -1) AS run_id,
  iif(parent.parent_id IS NULL, NULL, parent.name) AS group_name
FROM track
LEFT JOIN track AS parent ON parent.id = track.parent_id;

-- Slices of calls, with their arguments.
CREATE PERFETTO TABLE _ggml_call_slices AS
WITH
  slices AS (
    SELECT
      slice.id,
      slice.ts,
      slice.dur,
      slice.track_id,
      slice.name,
      track.name AS track_name,
      track.run_id,
      extract_arg(arg_set_id, 'debug.call') AS call,
      ifnull(extract_arg(arg_set_id, 'debug.context'), 0) AS context,
      extract_arg(arg_set_id, 'debug.phase') AS phase,
      extract_arg(arg_set_id, 'debug.n_tokens') AS tokens,
      extract_arg(arg_set_id, 'debug.position') AS position,
      extract_arg(arg_set_id, 'debug.sequence') AS sequence,
      extract_arg(arg_set_id, 'debug.sequences') AS spans,
      extract_arg(arg_set_id, 'debug.decoding') AS decoding,
      extract_arg(arg_set_id, 'debug.begins') IS NOT NULL AS begins_text,
      extract_arg(arg_set_id, 'debug.outputs') IS NOT NULL AS has_all_outputs,
      ifnull(extract_arg(arg_set_id, 'debug.result'), slice.name GLOB '* failed (*') AS result,
      ifnull(extract_arg(arg_set_id, 'debug.function'), 'llama_decode') AS function,
      ifnull(extract_arg(arg_set_id, 'debug.inferred'), '') AS inferred,
      extract_arg(arg_set_id, 'debug.gpu_work') IS NOT NULL AS is_step,
      extract_arg(arg_set_id, 'debug.work_ns') AS work_dur
    FROM slice
    JOIN _ggml_rows AS track USING (track_id)
    WHERE category = 'token'
  )
SELECT
  id,
  ts,
  dur,
  track_id,
  name,
  run_id,
  call,
  context,
  ifnull(phase, substr(name, 1, instr(name || ' ', ' ') - 1)) AS phase,
  CASE
    WHEN phase IS NOT NULL THEN tokens
    WHEN name GLOB '* tokens)' THEN CAST(substr(name, instr(name, '(') + 1) AS INTEGER)
    WHEN name GLOB 'decode [0-9]*' THEN 1
  END AS tokens,
  position,
  sequence,
  spans,
  decoding,
  begins_text,
  has_all_outputs,
  result != 0 AS is_failed,
  function,
  inferred GLOB '*no end recorded*' AND NOT inferred GLOB '*call borders*' AS is_cut,
  is_step,
  -- A step of an engine is launched while the GPU computes the steps before it: its own work is that of the GPU.
  iif(is_step, work_dur, dur) AS work_dur,
  CASE WHEN track_name GLOB 'Tokens: draft*' THEN 'draft' WHEN track_name GLOB 'Tokens: target*' THEN 'target' END AS role,
  row_number() OVER (PARTITION BY run_id ORDER BY call IS NULL, call, ts, id) AS nth
FROM slices;

-- Positions of the sequences in the batch of each call. Needs --detail shapes; a log may not record sequences.
-- Of calls with more than 16 sequences the first 16, if they do not verify drafts.
CREATE PERFETTO VIEW ggml_call_sequences(
  -- The call.
  id JOINID(slice.id),
  -- Number of the sequence in its llama_context.
  sequence LONG,
  -- Position of its first token in the batch; null if it is not recorded.
  position LONG,
  -- Its tokens in the batch.
  tokens LONG
) AS
WITH
  parts AS (
    SELECT
      call.id,
      part.value AS text,
      instr(part.value, '@') AS at,
      instr(part.value, '-') AS dash
    FROM _ggml_call_slices AS call
    JOIN json_each('["' || replace(replace(call.spans, ' (', '('), ' tokens', '') || '"]') AS whole
    JOIN json_each('["' || replace(whole.value, ' ', '","') || '"]') AS part
    WHERE call.spans IS NOT NULL AND part.value GLOB '[0-9]*'
  )
SELECT
  id,
  CAST(text AS INTEGER) AS sequence,
  iif(at > 0, CAST(substr(text, at + 1) AS INTEGER), NULL) AS position,
  CASE
    WHEN at = 0 THEN CAST(substr(text, instr(text, '(') + 1) AS INTEGER)
    WHEN dash > 0 THEN CAST(substr(text, dash + 1) AS INTEGER) - CAST(substr(text, at + 1) AS INTEGER) + 1
    ELSE 1
  END AS tokens
FROM parts
UNION ALL
SELECT id, sequence, position, tokens FROM _ggml_call_slices WHERE spans IS NULL AND sequence IS NOT NULL;

-- For each call that TPOT and TTFT may count: the end of the call of its llama_context before it, as far as it is known.
CREATE PERFETTO TABLE _ggml_call_times AS
WITH
  -- Calls are missing where their numbers have a gap: the time since the call before is not known.
  numbered AS (
    SELECT
      *,
      ifnull(call > 1 + lag(call) OVER (PARTITION BY run_id ORDER BY nth), 0) AS is_after_gap
    FROM _ggml_call_slices
  ),
  known AS (
    SELECT *, ts + dur AS end_ts, sum(is_after_gap) OVER (PARTITION BY run_id ORDER BY nth) AS gaps FROM numbered
  ),
  counted AS (
    SELECT * FROM known WHERE phase != 'warm-up' AND NOT (is_failed AND phase IN ('decode', 'mixed'))
  ),
  -- An end that is not known makes the time of the next call unknown.
  parted AS (
    SELECT
      *,
      ifnull(
        sum(is_cut) OVER (PARTITION BY run_id, context ORDER BY nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0
      ) AS part
    FROM counted
  ),
  timed AS (
    SELECT
      *,
      max(end_ts) OVER (
        PARTITION BY run_id, context, gaps, part ORDER BY nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS before_ts
    FROM parted
  ),
  -- The time in which a draft model takes in a prompt is in no token's time.
  draft_prompts AS (
    SELECT DISTINCT run_id, nth, ts + dur AS end_ts
    FROM _ggml_call_slices AS call
    JOIN ggml_call_sequences AS span USING (id)
    WHERE call.role = 'draft' AND call.phase != 'decode' AND NOT is_failed AND span.position = 0
  )
SELECT
  id,
  run_id,
  nth,
  context,
  role,
  phase,
  ts,
  end_ts,
  is_cut,
  is_step,
  gaps,
  phase IN ('decode', 'mixed') AS is_decoding,
  min(
    max(
      iif(begins_text, ts, before_ts), -- texts that begin waited for no call
      ifnull(
        (
          SELECT max(end_ts)
          FROM draft_prompts AS prompt
          WHERE prompt.run_id = timed.run_id AND prompt.nth < timed.nth AND prompt.end_ts <= timed.ts
        ),
        0
      )
    ),
    end_ts
  ) AS from_ts
FROM timed
WHERE NOT is_failed;

-- Tokens that each call accepted which verifies drafts: as many as its sequences have advanced at the next call of its context. Of the last
-- call, the part of its request contains the number.
CREATE PERFETTO TABLE _ggml_accepted AS
WITH
  verifying AS (
    SELECT id, nth, run_id, context
    FROM _ggml_call_slices
    WHERE
      phase = 'decode' AND has_all_outputs AND NOT is_failed
      AND id IN (SELECT id FROM ggml_call_sequences WHERE tokens > 1)
  ),
  followed AS (
    SELECT
      verifying.id,
      (
        SELECT next.id
        FROM _ggml_call_times AS next
        WHERE next.run_id = verifying.run_id AND next.context = verifying.context AND next.nth > verifying.nth
        ORDER BY next.nth
        LIMIT 1
      ) AS next_id
    FROM verifying
  ),
  verified AS (
    SELECT followed.id, max(CAST(substr(part.name, length('verify (') + 1) AS INTEGER)) AS tokens
    FROM followed
    JOIN _ggml_call_slices AS call USING (id)
    JOIN slice AS part ON part.ts < call.ts + call.dur AND part.ts + part.dur > call.ts
    WHERE followed.next_id IS NULL AND part.category = 'request_part' AND part.name GLOB 'verify ([0-9]*'
    GROUP BY followed.id
    HAVING count() = 1
  )
SELECT
  followed.id,
  sum(
    iif(then_at.position > span.position AND then_at.position <= span.position + span.tokens,
      then_at.position - span.position, ifnull(verified.tokens + 1, span.tokens))
  ) AS tokens
FROM followed
JOIN ggml_call_sequences AS span ON span.id = followed.id
LEFT JOIN verified ON verified.id = followed.id
LEFT JOIN (
  SELECT id, sequence, min(position) AS position FROM ggml_call_sequences GROUP BY id, sequence
) AS then_at ON then_at.id = followed.next_id AND then_at.sequence = span.sequence
GROUP BY followed.id;

-- Calls of llama.cpp, or steps of vLLM and SGLang.
CREATE PERFETTO TABLE ggml_calls(
  -- The slice of the call.
  id JOINID(slice.id),
  -- Start of the call.
  ts TIMESTAMP,
  -- Its duration.
  dur DURATION,
  -- The row Tokens.
  track_id JOINID(track.id),
  -- Group of its run: a trace may contain several.
  run_id JOINID(track.id),
  -- Name of the slice, such as `decode 3 · 12.1 ms`.
  name STRING,
  -- Number of the call, from 0; null for warm-ups, and with --detail names.
  call LONG,
  -- `prefill`, `decode`, `mixed`, `encode`, `compute` or `warm-up`.
  phase STRING,
  -- Tokens in its batch; null if they are not known.
  tokens LONG,
  -- It returned another result than 0: it is in no rate and no time.
  is_failed BOOL,
  -- Its end is not known: `dur` is a lower bound.
  is_cut BOOL,
  -- Address of its llama_context; 0 if it is not recorded, and with --detail names.
  context LONG,
  -- `draft` or `target` in speculative decoding.
  role STRING,
  -- Sequences that it decodes; null for other phases.
  sequences LONG,
  -- Of a timed call, from the end of the call of its context before it to its own end; null for calls that are not timed.
  decode_dur DURATION,
  -- Tokens that a timed call makes. Of one that verifies drafts, the accepted ones.
  decode_tokens LONG,
  -- Time of each of these tokens, in ns: decode_dur * sequences / decode_tokens.
  tpot DOUBLE
) AS
WITH
  known AS (
    SELECT
      call.*,
      times.from_ts,
      iif(call.phase IN ('decode', 'mixed'), ifnull(call.decoding, ifnull(call.tokens, 1)), NULL) AS sequences,
      accepted.tokens AS accepted
    FROM _ggml_call_slices AS call
    LEFT JOIN _ggml_call_times AS times USING (id)
    LEFT JOIN _ggml_accepted AS accepted USING (id)
  ),
  made AS (
    SELECT
      *,
      iif(
        sequences IS NOT NULL AND from_ts IS NOT NULL AND NOT is_cut AND NOT is_failed,
        ifnull(accepted, iif(phase = 'mixed', sequences, ifnull(tokens, sequences))), NULL
      ) AS decode_tokens
    FROM known
  )
SELECT
  id,
  ts,
  dur,
  track_id,
  run_id,
  name,
  call,
  phase,
  tokens,
  is_failed,
  is_cut,
  context,
  role,
  sequences,
  iif(decode_tokens > 0, ts + dur - from_ts, NULL) AS decode_dur,
  iif(decode_tokens > 0, decode_tokens, NULL) AS decode_tokens,
  iif(decode_tokens > 0, 1.0 * (ts + dur - from_ts) * sequences / decode_tokens, NULL) AS tpot
FROM made
ORDER BY ts;

-- Calls by phase.
CREATE PERFETTO VIEW ggml_calls_by_phase(
  -- Group of the run.
  run_id JOINID(track.id),
  -- The phase.
  phase STRING,
  -- Calls that succeeded.
  calls LONG,
  -- Their tokens, as far as they are known.
  tokens LONG,
  -- Their time.
  dur DURATION,
  -- Calls that failed.
  failed LONG
) AS
SELECT
  run_id,
  phase,
  sum(NOT is_failed) AS calls,
  ifnull(sum(iif(is_failed, 0, tokens)), 0) AS tokens,
  sum(iif(is_failed, 0, dur)) AS dur,
  sum(is_failed) AS failed
FROM ggml_calls
GROUP BY run_id, phase;

-- Length of the union of intervals.
CREATE PERFETTO MACRO _ggml_union(
  -- Intervals: run_id, from_ts, to_ts.
  intervals TableOrSubquery
)
RETURNS TableOrSubquery AS
(
  SELECT run_id, sum(max(0, to_ts - max(from_ts, ifnull(reached_ts, from_ts)))) AS dur
  FROM (
    SELECT
      run_id,
      from_ts,
      to_ts,
      max(to_ts) OVER (
        PARTITION BY run_id ORDER BY from_ts, to_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
      ) AS reached_ts
    FROM $intervals
  )
  GROUP BY run_id
);

-- The speed of each run: TTFT, TPOT and tokens per second.
CREATE PERFETTO VIEW ggml_decoding(
  -- Group of the run.
  run_id JOINID(track.id),
  -- From the start of the first call to the end of the last one before the first decode call; null without such calls,
  -- and for steps of an engine, which do not show when their requests came.
  ttft DURATION,
  -- Tokens of prefill calls, without those of draft models.
  prefill_tokens LONG,
  -- Time in which at least one of these calls was running; of steps of an engine, their own GPU work.
  prefill_dur DURATION,
  -- The tokens divided by this time.
  prefill_tokens_per_s DOUBLE,
  -- Timed calls, without those of draft models.
  calls LONG,
  -- Tokens that they make.
  tokens LONG,
  -- Time in which at least one of them was running.
  dur DURATION,
  -- Time of a token of a sequence, in ns, mean over the tokens.
  tpot DOUBLE,
  -- The least one.
  tpot_min DOUBLE,
  -- Quantiles over the tokens, by nearest rank.
  tpot_p50 DOUBLE,
  -- 90 %.
  tpot_p90 DOUBLE,
  -- 99 %.
  tpot_p99 DOUBLE,
  -- The greatest one.
  tpot_max DOUBLE,
  -- Tokens of all sequences per second.
  tokens_per_s DOUBLE,
  -- Sequences decoded at once, on average over time.
  sequences DOUBLE
) AS
WITH
  runs AS (
    SELECT DISTINCT run_id FROM ggml_calls
  ),
  counted AS (
    SELECT * FROM _ggml_call_times WHERE role IS NOT 'draft' OR NOT is_decoding
  ),
  -- The first decode call, or the first one after missing calls: TTFT ends before it.
  after_prompts AS (
    SELECT run_id, min(nth) AS nth FROM counted WHERE is_decoding OR gaps > 0 GROUP BY run_id
  ),
  first_tokens AS (
    SELECT run_id, end_ts, max(counted.nth) AS nth
    FROM counted
    LEFT JOIN after_prompts AS decode USING (run_id)
    WHERE NOT is_cut AND NOT is_step AND (decode.nth IS NULL OR counted.nth < decode.nth)
    GROUP BY run_id
  ),
  -- A step of an engine does not show when its requests came.
  first_calls AS (
    SELECT run_id, ts, min(nth) AS nth FROM counted WHERE NOT is_cut AND NOT is_step GROUP BY run_id
  ),
  prefills AS (
    SELECT run_id, ts + dur - work_dur AS from_ts, ts + dur AS to_ts, tokens
    FROM _ggml_call_slices
    WHERE
      phase = 'prefill' AND role IS NOT 'draft' AND tokens > 0 AND work_dur > 0 AND NOT is_failed AND NOT is_cut
  ),
  timed AS (
    SELECT run_id, ts + dur - decode_dur AS from_ts, ts + dur AS to_ts, decode_tokens, sequences, tpot
    FROM ggml_calls
    WHERE decode_dur IS NOT NULL AND role IS NOT 'draft'
  ),
  sums AS (
    SELECT
      run_id,
      count() AS calls,
      sum(decode_tokens) AS tokens,
      sum((to_ts - from_ts) * sequences) AS spent,
      min(tpot) AS tpot_min,
      max(tpot) AS tpot_max
    FROM timed
    GROUP BY run_id
  ),
  ranked AS (
    SELECT
      run_id,
      tpot,
      sum(decode_tokens) OVER (PARTITION BY run_id ORDER BY tpot ROWS UNBOUNDED PRECEDING) AS rank
    FROM timed
  ),
  -- The value at rank ceil(q * n).
  quantiles AS (
    SELECT
      run_id,
      min(iif(100 * rank >= 50 * sums.tokens, ranked.tpot, NULL)) AS p50,
      min(iif(100 * rank >= 90 * sums.tokens, ranked.tpot, NULL)) AS p90,
      min(iif(100 * rank >= 99 * sums.tokens, ranked.tpot, NULL)) AS p99
    FROM ranked
    JOIN sums USING (run_id)
    GROUP BY run_id
  ),
  prefill_sums AS (
    SELECT run_id, sum(tokens) AS tokens FROM prefills GROUP BY run_id
  )
SELECT
  run_id,
  nullif(first_tokens.end_ts - first_calls.ts, 0) AS ttft,
  prefill_sums.tokens AS prefill_tokens,
  prefill_busy.dur AS prefill_dur,
  prefill_sums.tokens * 1e9 / prefill_busy.dur AS prefill_tokens_per_s,
  ifnull(sums.calls, 0) AS calls,
  ifnull(sums.tokens, 0) AS tokens,
  ifnull(busy.dur, 0) AS dur,
  1.0 * sums.spent / sums.tokens AS tpot,
  sums.tpot_min,
  quantiles.p50 AS tpot_p50,
  quantiles.p90 AS tpot_p90,
  quantiles.p99 AS tpot_p99,
  sums.tpot_max,
  sums.tokens * 1e9 / busy.dur AS tokens_per_s,
  1.0 * sums.spent / busy.dur AS sequences
FROM runs
LEFT JOIN first_tokens USING (run_id)
LEFT JOIN first_calls USING (run_id)
LEFT JOIN prefill_sums USING (run_id)
LEFT JOIN _ggml_union!(prefills) AS prefill_busy USING (run_id)
LEFT JOIN sums USING (run_id)
LEFT JOIN quantiles USING (run_id)
LEFT JOIN _ggml_union!(timed) AS busy USING (run_id);
