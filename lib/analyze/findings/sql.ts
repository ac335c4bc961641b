import type { Phase, RequestPartKind } from '../../model/events.ts'

// Parts of queries on the converted trace (docs/reference/tracks.md), for the checks of findings.

/** Calls of a phase: `call`, `ts`, `dur`. */
export const callsOf = (phase: Phase) =>
  `(select extract_arg(arg_set_id, 'debug.call') as call, ts, dur from slice where category = 'token' ` +
  `and extract_arg(arg_set_id, 'debug.phase') = '${phase}')`

/** Slices `s` of a category, and their tracks `t`, within calls `c` of a phase. */
export const slicesIn = (phase: Phase, category: string) =>
  `from ${callsOf(phase)} c join slice s on s.ts >= c.ts and s.ts < c.ts + c.dur join track t on t.id = s.track_id ` +
  `where s.category = '${category}'`

/** Rows of a worker, among tracks `t`: their names may end in where it runs. */
export const ofWorker = (worker: number) => `(t.name = 'worker ${worker}' or t.name glob 'worker ${worker} ·*')`

/** A text in a query. */
export const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** A request, by its number. */
export const requestOf = (id: number) => `ggml_requests where request = ${id}`

/** Parts of a request, by its number, or of all: `ts`, `dur`. */
export const requestParts = (id: number | undefined, what: readonly RequestPartKind[]) =>
  `(select ts, dur from ggml_request_parts where part in (${what.map(text).join(', ')})` +
  `${id === undefined ? '' : ` and request = ${id}`})`

/** The module with both; a query begins with it. */
export const WITH_REQUESTS = 'include perfetto module ggml.requests; '
