import { describe, expect, it, test } from '@jest/globals'
import { Inferred, type RequestEvent } from '../../lib/core.ts'
import { analyze } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, cut, eventsIn, plainBytes } from '../line/support.ts'

/** Requests as clients measured them, and as spans of servers describe them. Damaged ones: traces-of-others.test.ts. */

const textOf = (name: string) => new TextDecoder().decode(plainBytes(name))
const bytesOf = (text: string) => new TextEncoder().encode(text)

async function read(source: Uint8Array | AsyncIterable<Uint8Array>) {
  const { names, events } = await eventsIn(source)
  const [input] = events
  if (input?.kind !== 'input') throw new Error('expected an input event')
  const requests = events.filter((event): event is RequestEvent => event.kind === 'request')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  const leftOut = events.flatMap((event) => (event.kind === 'left-out' ? [[event.what, event.count]] : []))
  const errors = requests.map(({ error }) => (error === undefined ? '' : names.text(error)))
  return { input, requests, issues, leftOut, errors }
}

/** Parts without gaps from the start to the end. */
function expectWhole(requests: readonly RequestEvent[]): void {
  for (const { parts, startNs, endNs } of requests) {
    let atNs = startNs
    for (const part of parts) {
      expect(part.startNs).toBe(atNs)
      atNs = part.endNs
    }
    expect(atNs).toBe(parts.length > 0 ? endNs : startNs)
  }
}

interface Metric {
  readonly value: number
}
interface AiPerfRecord {
  readonly metrics: Readonly<Record<string, Metric | undefined>>
  readonly error: object | null
}

describe('AIPerf', () => {
  const RECORDS = textOf('aiperf/cut.jsonl').trim().split('\n')

  it('has the start, the latency, the first token and the tokens of each record', async () => {
    const { input, requests, issues, leftOut, errors } = await read(plainBytes('aiperf/cut.jsonl'))
    expect([input.format, input.clock, issues, leftOut]).toEqual(['aiperf', 'REALTIME', [], []])
    expect(requests).toHaveLength(RECORDS.length)
    expectWhole(requests)
    for (const [i, request] of requests.entries()) {
      const { metrics, error } = JSON.parse(RECORDS[i]!) as AiPerfRecord
      const start = BigInt(/"timestamp_ns":(\d+)/.exec(RECORDS[i]!)![1]!)
      expect(input.originNs + BigInt(request.startNs)).toBe(start)
      if (error) {
        expect([request.outcome, errors[i]]).toEqual(['cancelled', 'Request was cancelled after 0.000 seconds'])
        continue
      }
      expect(request.endNs - request.startNs).toBe(Math.round(metrics['request_latency']!.value * 1e6))
      expect(request.firstTokenNs - request.startNs).toBe(Math.round(metrics['ttft']!.value * 1e6))
      const tokens = [metrics['input_sequence_length']!.value, metrics['output_sequence_length']!.value]
      expect([request.promptTokens, request.generatedTokens, request.inferred]).toEqual([...tokens, Inferred.Parts])
    }
  })

  it('has other names in later versions', async () => {
    const { input, requests, issues } = await read(plainBytes('aiperf/documented.jsonl'))
    expect([requests.length, issues]).toEqual([2, []])
    expect(input.originNs).toBe(1759813207532900363n)
    expect(requests[0]).toMatchObject({ startNs: 0, endNs: 305864241, promptTokens: 550, generatedTokens: 9 })
    expect(requests[1]).toMatchObject({ outcome: 'cancelled', promptTokens: -1, firstTokenNs: -1 })
    expectWhole(requests)
  })

  it('leaves out the warm-up, and reports what is no record', async () => {
    const warmUp = RECORDS[3]!.replace('"credit_phase":"profiling"', '"credit_phase":"warmup"')
    const text = [RECORDS[4], warmUp, '{"metadata":{}}', '[1]', '{"metadata', RECORDS[5]].join('\n')
    const { requests, issues, leftOut } = await read(bytesOf(text))
    expect([requests.length, leftOut]).toEqual([2, [['requests of the warm-up', 1]]])
    expect(issues).toEqual(['unreadable-row', 'unreadable-row', 'json-damaged'])
  })

  it('its figures are those of AIPerf itself: TPOT is its inter_token_latency', async () => {
    const { requests } = await analyze(
      { name: 'log', source: plainBytes('aiperf/cut.jsonl') },
      { series: ['requests'] },
    )
    expect(requests!.outcomes).toEqual({ complete: 5, cancelled: 3 })
    const wanted = RECORDS.map((line) => (JSON.parse(line) as AiPerfRecord).metrics['inter_token_latency']?.value)
    const means = wanted.filter((value) => value !== undefined)
    const mean = means.reduce((sum, value) => sum + value, 0) / means.length
    expect(requests!.by_type.completion!.tpot!.mean_ns / 1e6).toBeCloseTo(mean, 3)
  })
})

describe('GenAI-Perf', () => {
  interface Profile {
    readonly experiments: readonly [
      { readonly requests: readonly { readonly response_outputs: readonly { response: string }[] }[] },
    ]
  }
  const TEXT = textOf('genai-perf/profile.json')
  const REQUESTS = (JSON.parse(TEXT) as Profile).experiments[0].requests

  it('has when each request was sent, when its first and last text came, and its tokens', async () => {
    const { input, requests, issues, errors } = await read(plainBytes('genai-perf/profile.json'))
    expect([input.format, input.clock, issues]).toEqual(['genai-perf', 'REALTIME', []])
    expect(requests).toHaveLength(REQUESTS.length)
    expectWhole(requests)
    // The numbers are too long for JSON.parse.
    const times = [...TEXT.matchAll(/"timestamp":(\d+).*?"response_timestamps":\[([\d,]+)\]/g)].map(([, at, list]) =>
      [at!, ...list!.split(',')].map(BigInt),
    )
    for (const [i, request] of requests.entries()) {
      const outputs = REQUESTS[i]!.response_outputs.map(({ response }) => response)
      const texts = outputs.flatMap((text, i) => (text.includes('"content":"x"') ? [i] : []))
      const [start, ...responses] = times[i]!
      const since = (time: bigint) => Number(time - input.originNs)
      expect([request.startNs, request.endNs]).toEqual([since(start!), since(responses.at(-1)!)])
      const error = /"message":"([^"]+)"/.exec(outputs[0]!)?.[1]
      expect([request.outcome, errors[i]]).toEqual(error ? ['error', error] : ['complete', ''])
      if (error) continue
      expect(request.firstTokenNs).toBe(since(responses[texts[0]!]!))
      expect(request.parts.find(({ what }) => what === 'decode')!.endNs).toBe(since(responses[texts.at(-1)!]!))
      const stated = /"completion_tokens":(\d+),"prompt_tokens":(\d+)/.exec(outputs.join(''))
      expect(request.generatedTokens).toBe(stated ? Number(stated[1]) : texts.length)
      expect(request.promptTokens).toBe(stated ? Number(stated[2]) : -1)
      expect((request.inferred & Inferred.TokenCount) === 0).toBe(stated !== null)
    }
    expect(requests.filter(({ outcome }) => outcome === 'error')).toHaveLength(1)
  })

  it('answers at once, embeddings and Triton’s outputs have no first token', async () => {
    const request = (responses: readonly unknown[]) => ({
      ...{ timestamp: 1000, response_timestamps: responses.map((_, i) => 2000 + i), response_outputs: responses },
    })
    const whole = { choices: [{ message: { content: 'hi' } }], usage: { prompt_tokens: 3, completion_tokens: 2 } }
    const embedding = { object: 'list', data: [{ embedding: [1] }], usage: { prompt_tokens: 7 } }
    const documents = [whole, embedding].map((of) => request([{ response: JSON.stringify(of) }]))
    const triton = request([{ text_output: 'I' }, { text_output: ' like' }])
    const experiments = [{ experiment: { mode: 'request_rate', value: 2 }, requests: [...documents, triton, {}] }]
    const { requests, issues } = await read(bytesOf(JSON.stringify({ service_kind: 'openai', experiments })))
    expect(requests.map(({ type, firstTokenNs, generatedTokens }) => [type, firstTokenNs, generatedTokens])).toEqual([
      ['completion', -1, 2],
      ['embedding', -1, 0],
      ['completion', 1000, 2],
    ])
    expect(issues).toEqual(['unreadable-row'])
  })
})

describe('spans of OpenTelemetry', () => {
  const MS = 1e6

  it('of vLLM have their parts in their attributes', async () => {
    const { input, requests, issues, leftOut, errors } = await read(plainBytes('otlp/vllm.jsonl'))
    expect([input.format, input.originNs, issues, leftOut]).toEqual([
      'otlp',
      1780000000000000000n,
      [],
      [['spans named POST /v1/chat/completions', 1]],
    ])
    expectWhole(requests)
    const parts = requests.map((of) => of.parts.map(({ what, startNs, endNs }) => [what, (endNs - startNs) / MS]))
    expect(parts[1]).toEqual([
      ['other', 1],
      ['queued', 22.1],
      ['prefill', 44],
      ['decode', 390],
      ['other', 1.15],
    ])
    expect(
      requests.map(({ startNs, promptTokens, generatedTokens }) => [startNs / MS, promptTokens, generatedTokens]),
    ).toEqual([
      [0, 128, 32],
      [10, 256, 32],
      [505, 64, 16],
      [600, 64, 1],
    ])
    expect(errors).toEqual(['', '', '', 'aborted'])
  })

  it('of SGLang are joined with the stages of their trace', async () => {
    const { requests, issues, leftOut } = await read(plainBytes('otlp/sglang.json'))
    const others = ['Scheduler [TP 0]', 'Tokenizer', 'dispatch', 'tokenize'].map((name) => [`spans named ${name}`, 2])
    expect([issues, leftOut]).toEqual([[], others])
    expectWhole(requests)
    for (const [i, { startNs, parts }] of requests.entries()) {
      expect(startNs / MS).toBe(40 * i)
      expect(parts.map(({ what, startNs, endNs }) => [what, (endNs - startNs) / MS])).toEqual([
        ['other', 2],
        ['queued', 10],
        ['prefill', 40],
        ['decode', 130],
        ['other', 8],
      ])
    }
  })

  /** A span with times in ms since the first one, and attributes. */
  const span = (name: string, start: number, end: number, attributes: Readonly<Record<string, number>> = {}) => ({
    ...{ name, traceId: '0a', startTimeUnixNano: `${BigInt(Math.round(start * MS)) + 1780000000000000000n}` },
    endTimeUnixNano: `${BigInt(Math.round(end * MS)) + 1780000000000000000n}`,
    attributes: Object.entries(attributes).map(([key, value]) => ({
      key: `gen_ai.${key}`,
      value: Number.isInteger(value) ? { intValue: `${value}` } : { doubleValue: value },
    })),
  })
  const partsOf = async (...spans: readonly object[]) => {
    const { requests } = await read(bytesOf(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })))
    expectWhole(requests)
    return requests[0]!.parts.map(({ what, startNs, endNs }) => [what, Math.round((endNs - startNs) / 1e4) / 100])
  }

  // Durations of a request to vLLM 0.29 that ruqi1125/inferscope (at b6ce5f6) documents: half of the time to the first token is in neither.
  it('of vLLM: the way to the scheduler is neither in the queue nor in the prefill', async () => {
    const latency = {
      ...{ 'latency.time_to_first_token': 0.115546, 'latency.e2e': 0.253597, 'latency.time_in_queue': 0.000055 },
      ...{ 'latency.time_in_model_prefill': 0.057815, 'latency.time_in_model_decode': 0.138305 },
      ...{ 'usage.prompt_tokens': 14, 'usage.completion_tokens': 8 },
    }
    expect(await partsOf(span('llm_request', 0, 254.9224, latency))).toEqual([
      ['other', 57.68],
      ['queued', 0.06],
      ['prefill', 57.82],
      ['decode', 138.31],
      ['other', 1.07],
    ])
  })

  // Durations of a request to SGLang 0.5.20 that was not streamed, ruqi1125/inferscope at 733ab79: its time to the first token is its whole time.
  it('of SGLang: the stages of the scheduler, rather than the time at which the answer was sent', async () => {
    const latency = {
      ...{ 'latency.time_to_first_token': 0.191704, 'latency.e2e': 0.191748, 'latency.time_in_model_decode': 0.000044 },
      ...{ 'latency.time_in_model_prefill': 0.1865, 'usage.completion_tokens': 8, 'usage.prompt_tokens': 14 },
    }
    const parts = await partsOf(
      span('Tokenizer', 0, 5.2042),
      span('Req 01', 0, 191.7481, latency),
      span('prefill_waiting', 5.9571, 27.9621),
      span('prefill_forward', 27.9621, 53.3934),
      span('decode_loop', 54.6867, 72.8584),
      span('decode_forward', 53.3934, 190.0424),
    )
    expect(parts).toEqual([
      ['other', 5.96],
      ['queued', 22.01],
      ['prefill', 25.43],
      ['decode', 136.65],
      ['other', 1.71],
    ])
  })

  it('of SGLang: two requests of one trace have their own stages; stages without a request are counted', async () => {
    const turn = (at: number) => [
      span('prefill_waiting', at + 2, at + 10),
      span('prefill_forward', at + 10, at + 40),
      span('decode_loop', at + 40, at + 90),
      span('Req 01', at, at + 100, { 'latency.e2e': 0.1 }),
    ]
    const lost = { ...span('prefill_forward', 5, 6), traceId: '0b' }
    const spans = [...turn(0), lost, ...turn(500)]
    const { requests, leftOut } = await read(bytesOf(JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })))
    const parts = [
      ['other', 2],
      ['queued', 8],
      ['prefill', 30],
      ['decode', 50],
      ['other', 10],
    ]
    expect(
      requests.map((of) => of.parts.map(({ what, startNs, endNs }) => [what, Math.round((endNs - startNs) / MS)])),
    ).toEqual([parts, parts])
    expect(leftOut).toEqual([['stages without a request', 1]])
  })
})

test('requests at the same time are in different rows, and the pieces of the input do not matter', async () => {
  const bytes = plainBytes('aiperf/cut.jsonl')
  expect((await read(cut(bytes, 11))).requests).toEqual((await read(bytes)).requests)
  const open = await openTrace(await converted(bytes))
  try {
    const query = `select s.name, s.dur, t.name from slice s join track t on t.id = s.track_id where s.category = 'request' order by s.ts`
    const { rows } = open.query(query)
    expect(rows).toHaveLength(8)
    expect(new Set(rows.filter(([, dur]) => Number(dur) > 0).map(([, , row]) => row)).size).toBe(5)
    expect(open.query(`select count(*) from slice where category = 'request_part'`).rows).toEqual([[10]])
    expect(open.problems()).toEqual([])
  } finally {
    open.close()
  }
})
