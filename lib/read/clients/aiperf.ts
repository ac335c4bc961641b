// The records of AIPerf, `profile_export.jsonl`: a line for each request, with what the client measured of it.
//
//   {"metadata":{"request_start_ns":1759813207532900363,"request_end_ns":1759813207838764604,"benchmark_phase":"profiling",…},
//    "metrics":{"time_to_first_token":{"value":255.9,"unit":"ms"},"output_sequence_length":{"value":9,"unit":"tokens"},…},"error":null}
//
// Versions before 0.2 have "timestamp_ns" (the start), "ttft" and "credit_phase". The summary, `profile_export_aiperf.json`, contains no requests.

import { isObject, type JsonObject, textOf } from '../../input/json.ts'
import type { Format } from '../format.ts'
import {
  type ClientFormat,
  type ClientRequest,
  type ClientRequests,
  later,
  readClient,
  timeOf,
} from './client-requests.ts'

const START = /"metadata"\s*:\s*\{/
const TIMES = /"(?:request_start_ns|timestamp_ns)"\s*:\s*\d/
const PHASE = /"(?:benchmark_phase|credit_phase)"\s*:/

const FORMAT: ClientFormat = {
  name: 'aiperf',
  title: 'AIPerf',
  times: "the client's, in ns since 1970",
  paths: [''],
  item({ value, byte }, into) {
    const request = isObject(value) ? requestOf(value, into) : undefined
    if (typeof request === 'object') into.add(request, { byte })
    else if (request === undefined) {
      into.issue('unreadable-row', 'expected a record with metadata and a start, found another object', { byte })
    }
  },
}

export const aiperf: Format = {
  name: 'aiperf',
  title: 'records of AIPerf (profile_export.jsonl): requests',
  sniff: (head) => {
    const text = new TextDecoder().decode(head).trimStart()
    return text.startsWith('{') && START.test(text) && TIMES.test(text) && PHASE.test(text)
  },
  read: (source, { names }) => readClient(source, FORMAT, names),
}

/** The request of a record; `skipped` for one that belongs to no measurement. */
function requestOf(record: JsonObject, into: ClientRequests): ClientRequest | 'skipped' | undefined {
  const { metadata, metrics, error } = record
  if (!isObject(metadata)) return undefined
  const start = timeOf(metadata['request_start_ns'] ?? metadata['timestamp_ns'])
  if (start === undefined) return undefined
  const phase = metadata['benchmark_phase'] ?? metadata['credit_phase']
  if (phase === 'warmup') {
    into.skip('requests of the warm-up')
    return 'skipped'
  }
  const measured = isObject(metrics) ? metrics : {}
  const latency = later(start, inMs(measured['request_latency']), 1e6)
  const firstToken = later(start, inMs(measured['time_to_first_token'] ?? measured['ttft']), 1e6)
  const generated = numberOf(measured['output_sequence_length']) ?? numberOf(measured['output_token_count'])
  const isCancelled = metadata['was_cancelled'] === true || (isObject(error) && error['code'] === 499)
  return {
    start,
    end: timeOf(metadata['request_end_ns']) ?? latency ?? start,
    firstToken,
    lastToken: latency,
    promptTokens: numberOf(measured['input_sequence_length']),
    generatedTokens: generated,
    type: generated !== undefined || firstToken !== undefined ? 'completion' : 'unknown',
    outcome: isCancelled ? 'cancelled' : isObject(error) ? 'error' : 'complete',
    error: isObject(error) ? errorOf(error) : undefined,
  }
}

/** A text of an error: its message, its type or its code. */
function errorOf(error: JsonObject): string {
  const { code } = error
  const isCode = typeof code === 'number' && Number.isFinite(code)
  return textOf(error, 'message') || textOf(error, 'type') || textOf(error, 'code') || (isCode ? `${code}` : 'error')
}

/** The number of a metric. */
function numberOf(metric: unknown): number | undefined {
  const value = isObject(metric) ? metric['value'] : undefined
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** A metric in ms, from its unit. */
function inMs(metric: unknown): number | undefined {
  const [value, unit] = [numberOf(metric), isObject(metric) ? metric['unit'] : undefined]
  const factor = { ms: 1, s: 1000, sec: 1000, us: 1e-3, ns: 1e-6 }[String(unit ?? 'ms')]
  return value === undefined || factor === undefined ? undefined : value * factor
}
