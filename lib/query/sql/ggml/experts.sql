-- Experts that the routers of a mixture-of-experts model chose. Needs a trace made with --detail shapes (the default) or full.
--
-- Some logs contain only the experts of the first token of a batch (docs/reference/formats.md of ggml2perfetto).

INCLUDE PERFETTO MODULE ggml.calls;

-- Choices of routers: one for each layer of a call.
CREATE PERFETTO VIEW ggml_expert_choices(
  -- The slice of the choice.
  id JOINID(slice.id),
  -- Start of the first operator that used it.
  ts TIMESTAMP,
  -- Time until the end of the last one.
  dur DURATION,
  -- Row of the layer.
  track_id JOINID(track.id),
  -- Group of the run.
  run_id JOINID(track.id),
  -- Layer; null if it is not known.
  layer LONG,
  -- Number of the call.
  call LONG,
  -- Phase of the call; `none` if no call is recorded.
  phase STRING,
  -- Tokens for which experts were chosen.
  tokens LONG,
  -- Numbers of the experts, the first choice of a token first: `4,6;1,4`. Tokens are separated by semicolons.
  experts STRING
) AS
SELECT
  slice.id,
  slice.ts,
  slice.dur,
  slice.track_id,
  track.run_id,
  extract_arg(slice.arg_set_id, 'debug.layer') AS layer,
  extract_arg(slice.arg_set_id, 'debug.call') AS call,
  ifnull(calls.phase, 'none') AS phase,
  1 + length(extract_arg(slice.arg_set_id, 'debug.experts'))
    - length(replace(extract_arg(slice.arg_set_id, 'debug.experts'), ';', '')) AS tokens,
  extract_arg(slice.arg_set_id, 'debug.experts') AS experts
FROM slice
JOIN _ggml_rows AS track USING (track_id)
LEFT JOIN ggml_calls AS calls
  ON calls.call = extract_arg(slice.arg_set_id, 'debug.call') AND calls.run_id = track.run_id
WHERE slice.category = 'expert';

-- How often each expert was chosen.
CREATE PERFETTO VIEW ggml_expert_activations(
  -- Group of the run.
  run_id JOINID(track.id),
  -- Phase of the calls; `none`: choices in no recorded call.
  phase STRING,
  -- Layer; null if it is not known.
  layer LONG,
  -- Number of the expert.
  expert LONG,
  -- Tokens that chose it.
  activations LONG
) AS
SELECT
  run_id,
  phase,
  layer,
  CAST(chosen.value AS INTEGER) AS expert,
  count() AS activations
FROM ggml_expert_choices
JOIN json_each('[' || replace(experts, ';', ',') || ']') AS chosen
GROUP BY run_id, phase, layer, expert;
