// Spans of OpenTelemetry in JSON, as the collector's file exporter writes them: one export request a line, or one document.
//
//   {"resourceSpans":[{"resource":{…},"scopeSpans":[{"scope":{…},"spans":[{"traceId":"…","spanId":"…","name":"llm_request","kind":2,
//     "startTimeUnixNano":"1780…","endTimeUnixNano":"1780…","attributes":[{"key":"gen_ai.usage.prompt_tokens","value":{"intValue":"8"}},…]}]}]}]}
//
// vLLM writes one span for a request, `llm_request` (vllm/tracing): its parts are attributes, in seconds. SGLang writes a tree of spans
// (sglang/srt/tracing): the root is `Req <id>`, and stages are named prefill_waiting, prefill_forward, decode_loop and the like. Spans
// of a trace may come in any order. All other spans are counted.

import { firstIndex } from '../../bytes/search.ts'
import { isObject, type JsonObject, textOf } from '../../input/json.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Format } from '../format.ts'
import {
  type ClientFormat,
  type ClientRequest,
  type ClientRequests,
  later,
  readClient,
  timeOf,
} from './client-requests.ts'

const SPAN = 'resourceSpans/*/scopeSpans/*/spans/*'
/** Requests that wait for their stages. */
const OPEN_MAX = 4096
/** Stages that are held; of more, those of the earliest trace are dropped. */
const STAGES_MAX = 1 << 16
/** Characters of the names of spans that are counted. */
const NAME_MAX = 80

type Stage = 'queued' | 'prefill' | 'decode'
/** Stages of SGLang (sglang/srt/tracing, RequestStage). */
const STAGES: ReadonlyMap<string, Stage> = new Map([
  ['prefill_waiting', 'queued'],
  ['decode_waiting', 'queued'],
  ['prefill_forward', 'prefill'],
  ['chunked_prefill', 'prefill'],
  ['decode_loop', 'decode'],
  ['decode_forward', 'decode'],
])

/** When the stages of a request begin and end. */
type Stages = Partial<Record<Stage, { start: bigint; end: bigint }>>

/** Stages at the time of one request that are looked at: of more, the first and the last half. */
const STAGES_OF_REQUEST_MAX = 256

interface HeldStage {
  readonly stage: Stage
  readonly start: bigint
  readonly end: bigint
  hasRequest: boolean
}

interface Span {
  readonly trace: string
  readonly name: string
  readonly start: bigint
  readonly end: bigint
  readonly attributes: ReadonlyMap<string, unknown>
  readonly error: string | undefined
  readonly byte: number
}

export const otlp: Format = {
  name: 'otlp',
  title: 'spans of OpenTelemetry as JSON (OTLP) from vLLM or SGLang: requests',
  sniff: (head) => /^\s*\{\s*"resourceSpans"\s*:\s*\[/.test(new TextDecoder().decode(head)),
  read(source, { names }) {
    const traces = new Traces()
    return readClient(source, formatOf(traces), names)
  },
}

const formatOf = (traces: Traces): ClientFormat => ({
  name: otlp.name,
  title: 'Spans of requests',
  times: "the server's, in ns since 1970",
  paths: [SPAN, 'resourceSpans/*/resource'],
  item({ path, value, byte }, into) {
    if (path !== SPAN) {
      const attributes = attributesOf(isObject(value) ? value['attributes'] : undefined)
      into.fact('service', attributes.get('service.name'))
      return
    }
    const span = isObject(value) ? spanOf(value, byte) : undefined
    if (span) traces.add(span, into)
    else into.issue('unreadable-row', 'expected a span with a name, a start and an end', { byte })
  },
  finish: (into) => traces.finish(into),
})

/** Stages of one trace. */
class TraceStages {
  /** In the order of their starts. */
  readonly list: HeldStage[] = []
  private longest = 0n

  add(stage: HeldStage): void {
    const { list } = this
    const { start, end } = stage
    if (end - start > this.longest) this.longest = end - start
    const isLast = list.length === 0 || list.at(-1)!.start <= start
    const at = isLast ? list.length : firstIndex(0, list.length, (i) => list[i]!.start > start)
    list.splice(at, 0, stage)
  }

  /** Those that have a time in common with this one. */
  *at(start: bigint, end: bigint): Generator<HeldStage> {
    const { list, longest } = this
    const after = firstIndex(0, list.length, (i) => list[i]!.start > end)
    const first = firstIndex(0, after, (i) => list[i]!.start >= start - longest)
    const half = STAGES_OF_REQUEST_MAX / 2
    for (let i = first; i < after; i++) {
      if (i === first + half) i = Math.max(i, after - half)
      if (list[i]!.end >= start) yield list[i]!
    }
  }
}

/** Joins requests with the stages of their traces. */
class Traces {
  /** Those before `released` are done. */
  private requests: Span[] = []
  private released = 0
  private readonly stages = new DefaultMap<string, TraceStages>(() => new TraceStages())
  private held = 0

  add(span: Span, into: ClientRequests): void {
    const stage = STAGES.get(span.name)
    if (stage && span.trace !== '') this.addStage(span, stage, into)
    else if (isRequest(span)) this.addRequest(span, into)
    else into.skip(`spans named ${span.name.slice(0, NAME_MAX)}`)
  }

  finish(into: ClientRequests): void {
    while (this.released < this.requests.length) this.release(into)
    for (const [trace] of [...this.stages]) this.drop(trace, into)
  }

  private addStage({ trace, start, end }: Span, stage: Stage, into: ClientRequests): void {
    this.stages.of(trace).add({ stage, start, end, hasRequest: false })
    this.held++
    if (this.held > STAGES_MAX) this.drop(this.stages.keys().next().value!, into)
  }

  private drop(trace: string, into: ClientRequests): void {
    const stages = this.stages.of(trace).list
    this.stages.delete(trace)
    this.held -= stages.length
    for (const { hasRequest } of stages) if (!hasRequest) into.skip('stages without a request')
  }

  /** The stages of a request: those of its trace at its time. Requests of one conversation share a trace, one after the other. */
  private stagesOf({ trace, start, end }: Span): Stages {
    const all: Stages = {}
    for (const stage of this.stages.get(trace)?.at(start, end) ?? []) {
      stage.hasRequest = true
      const known = all[stage.stage]
      all[stage.stage] = {
        start: known && known.start < stage.start ? known.start : stage.start,
        end: known && known.end > stage.end ? known.end : stage.end,
      }
    }
    return all
  }

  private addRequest(span: Span, into: ClientRequests): void {
    this.requests.push(span)
    if (this.requests.length - this.released > OPEN_MAX) this.release(into)
    if (this.released < OPEN_MAX) return
    this.requests = this.requests.slice(this.released)
    this.released = 0
  }

  /** Adds the earliest request that waits. */
  private release(into: ClientRequests): void {
    const span = this.requests[this.released++]!
    into.fact('model', span.attributes.get('gen_ai.response.model') ?? span.attributes.get('gen_ai.request.model'))
    into.add(requestOf(span, this.stagesOf(span)), { byte: span.byte })
  }
}

/** Is it the one span of a request that its server made of it? */
function isRequest({ name, attributes }: Span): boolean {
  return (
    name === 'llm_request' || attributes.has('gen_ai.latency.e2e') || (name.startsWith('Req ') && attributes.has('rid'))
  )
}

/**
 * Stages are when the scheduler worked. Attributes of a request are as its front end saw it: its time to the first token contains the
 * way of the request to the scheduler, which is in no queue; of an answer that is not streamed, SGLang's is its whole time.
 */
function requestOf(span: Span, stages: Stages): ClientRequest {
  const { start, end, attributes, error } = span
  const number = (key: string, other?: string): number | undefined => {
    const value = attributes.get(key)
    if (typeof value === 'number') return value
    return other === undefined ? undefined : number(other)
  }
  const generated = number('gen_ai.usage.completion_tokens', 'gen_ai.usage.output_tokens')
  const { queued, begin, firstToken, lastToken } = timesOf(span, stages, number)
  return {
    start,
    end,
    queued,
    begin,
    firstToken,
    lastToken,
    statedNs: nsOf(number('gen_ai.latency.e2e')),
    promptTokens: number('gen_ai.usage.prompt_tokens', 'gen_ai.usage.input_tokens'),
    reusedTokens: number('gen_ai.usage.cached_tokens', 'gen_ai.usage.cache_read_input_tokens'),
    generatedTokens: generated,
    type: generated === 0 ? 'unknown' : 'completion',
    outcome: error === undefined ? 'complete' : 'error',
    error,
  }
}

/** `seconds`: of an attribute, undefined where there is none. */
function timesOf(
  { start }: Span,
  { queued, prefill, decode }: Stages,
  seconds: (key: string) => number | undefined,
): Pick<ClientRequest, 'queued' | 'begin' | 'firstToken' | 'lastToken'> {
  const after = (time: bigint | undefined, key: string) =>
    time === undefined ? undefined : later(time, seconds(key), SECOND_NS)
  const before = (time: bigint | undefined, key: string) => {
    const ns = seconds(key) === undefined ? undefined : later(0n, seconds(key), SECOND_NS)
    return time === undefined || ns === undefined || time - ns < start ? undefined : time - ns
  }
  const fromQueue = after(start, 'gen_ai.latency.time_in_queue')
  const firstToken =
    prefill?.end ??
    after(start, 'gen_ai.latency.time_to_first_token') ??
    after(fromQueue, 'gen_ai.latency.time_in_model_prefill') ??
    decode?.start
  const begin = prefill?.start ?? queued?.end ?? before(firstToken, 'gen_ai.latency.time_in_model_prefill') ?? fromQueue
  return {
    firstToken,
    begin,
    queued: queued?.start ?? before(begin, 'gen_ai.latency.time_in_queue'),
    lastToken: decode?.end ?? after(firstToken, 'gen_ai.latency.time_in_model_decode'),
  }
}

const SECOND_NS = 1e9

const nsOf = (seconds: number | undefined) => (seconds !== undefined && seconds > 0 ? seconds * SECOND_NS : undefined)

function spanOf(value: JsonObject, byte: number): Span | undefined {
  const [start, end] = [timeOf(value['startTimeUnixNano']), timeOf(value['endTimeUnixNano'])]
  const { name, traceId, status } = value
  if (start === undefined || end === undefined || typeof name !== 'string') return undefined
  const isError = isObject(status) && (status['code'] === 2 || status['code'] === 'STATUS_CODE_ERROR')
  const trace = typeof traceId === 'string' ? traceId : ''
  const error = isError ? textOf(status, 'message') || 'error' : undefined
  return { trace, name, start, end, attributes: attributesOf(value['attributes']), error, byte }
}

function attributesOf(list: unknown): Map<string, unknown> {
  const attributes = new Map<string, unknown>()
  if (!Array.isArray(list)) return attributes
  for (const entry of list) {
    if (!isObject(entry) || typeof entry['key'] !== 'string' || !isObject(entry['value'])) continue
    const { stringValue, intValue, doubleValue, boolValue } = entry['value']
    const value = stringValue ?? doubleValue ?? boolValue ?? (intValue === undefined ? undefined : Number(intValue))
    if (value !== undefined) attributes.set(entry['key'], value)
  }
  return attributes
}
