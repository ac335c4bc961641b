// The profile of GenAI-Perf and perf_analyzer, `profile_export.json`: for each request, when it was sent and when each response came.
//
//   {"service_kind": "openai", "endpoint": "v1/chat/completions",
//    "experiments": [{"experiment": {"mode": "concurrency", "value": 4},
//                     "requests": [{"timestamp": 1718…, "request_inputs": {"payload": "{…}"}, "response_timestamps": [1718…, …],
//                                   "response_outputs": [{"response": "data: {…}\n\n"}, …]}], "window_boundaries": […]}]}
//
// Times are ns since 1970. A response may contain several chunks of a stream, or none with text (the role, the end). The first one
// with text is the first token; the number of generated tokens is the server's own ("usage"), else that of the chunks with text.

import { isObject, type JsonObject } from '../../input/json.ts'
import { parsedJson } from '../../input/json-bytes.ts'
import type { Format } from '../format.ts'
import { type ClientFormat, type ClientRequest, readClient, timeOf } from './client-requests.ts'

const REQUEST = 'experiments/*/requests/*'

const FORMAT: ClientFormat = {
  name: 'genai-perf',
  title: 'GenAI-Perf',
  times: "the client's, in ns since 1970",
  paths: [REQUEST, 'service_kind', 'endpoint', 'version', 'experiments/*/experiment'],
  item({ path, value, byte }, into) {
    if (path === REQUEST) {
      const request = isObject(value) ? requestOf(value) : undefined
      if (request) into.add(request, { byte })
      else into.issue('unreadable-row', 'expected a request with "timestamp" and "response_timestamps"', { byte })
    } else if (path.endsWith('experiment') && isObject(value)) {
      const { mode } = value
      into.fact(typeof mode === 'string' && mode !== '' ? mode : 'mode', value['value'])
    } else into.fact(path, value)
  },
}

export const genaiPerf: Format = {
  name: 'genai-perf',
  title: 'profile of GenAI-Perf or perf_analyzer (profile_export.json): requests',
  sniff: (head) => {
    const text = new TextDecoder().decode(head).trimStart()
    return (
      text.startsWith('{') &&
      /"experiments"\s*:\s*\[/.test(text) &&
      /"(?:service_kind|requests|experiment)"\s*:/.test(text)
    )
  },
  read: (source, { names }) => readClient(source, FORMAT, names),
}

function requestOf(request: JsonObject): ClientRequest | undefined {
  const start = timeOf(request['timestamp'])
  const times = request['response_timestamps']
  if (start === undefined || !Array.isArray(times)) return undefined
  const ends = times.map(timeOf)
  if (!ends.every((time) => time !== undefined)) return undefined
  const outputs = Array.isArray(request['response_outputs']) ? request['response_outputs'] : []
  const answer = answerOf(outputs)
  const end = ends.at(-1) ?? start
  const isText = answer.first >= 0 && answer.first < ends.length
  return {
    start,
    end,
    firstToken: isText && !answer.isWhole ? ends[answer.first] : undefined,
    lastToken: isText && !answer.isWhole ? ends[Math.min(answer.last, ends.length - 1)] : undefined,
    promptTokens: answer.promptTokens,
    generatedTokens: answer.generatedTokens ?? (answer.isWhole ? undefined : answer.chunks),
    areChunks: answer.generatedTokens === undefined && answer.chunks > 0,
    type: answer.chunks > 0 ? 'completion' : answer.isEmbedding ? 'embedding' : 'unknown',
    outcome: answer.error !== undefined ? 'error' : ends.length === 0 ? 'cancelled' : 'complete',
    error: answer.error,
  }
}

/** What the responses of a request contain. */
interface Answer {
  /** Index of the first response with text, and of the last one; -1 = none. */
  first: number
  last: number
  /** Chunks with text. */
  chunks: number
  /** The text came at once. */
  isWhole: boolean
  isEmbedding: boolean
  promptTokens: number | undefined
  generatedTokens: number | undefined
  error: string | undefined
}

function answerOf(outputs: readonly unknown[]): Answer {
  const answer: Answer = {
    ...{ first: -1, last: -1, chunks: 0, isWhole: false, isEmbedding: false },
    ...{ promptTokens: undefined, generatedTokens: undefined, error: undefined },
  }
  outputs.forEach((output, i) => {
    const before = answer.chunks
    for (const body of bodiesOf(output)) addBody(answer, body)
    if (answer.chunks === before) return
    if (answer.first < 0) answer.first = i
    answer.last = i
  })
  return answer
}

/** The JSON objects of a response: the events of a stream, or one document; Triton's outputs are objects themselves. */
function bodiesOf(output: unknown): JsonObject[] {
  if (!isObject(output)) return []
  const { response } = output
  if (typeof response !== 'string') return [output]
  const texts = /^data:/m.test(response) ? response.split(/^data: ?/m).slice(1) : [response]
  return texts.flatMap((text) => {
    try {
      const value = parsedJson(text) as unknown
      return isObject(value) ? [value] : []
    } catch {
      return []
    }
  })
}

function addBody(answer: Answer, body: JsonObject): void {
  const { choices, usage, error } = body
  if (isObject(error)) answer.error = String(error['message'] ?? error['type'] ?? 'error')
  if (isObject(usage)) {
    const [prompt, generated] = [usage['prompt_tokens'], usage['completion_tokens']]
    if (typeof prompt === 'number') answer.promptTokens = prompt
    if (typeof generated === 'number') answer.generatedTokens = generated
  }
  if (body['object'] === 'list' && Array.isArray(body['data'])) answer.isEmbedding = true
  const choice = Array.isArray(choices) && isObject(choices[0]) ? choices[0] : undefined
  const [delta, message] = [choice?.['delta'], choice?.['message']]
  const content = isObject(delta) ? delta : isObject(message) ? message : undefined
  const text = content?.['content'] ?? content?.['reasoning_content'] ?? choice?.['text'] ?? body['text_output']
  const isText = (typeof text === 'string' && text !== '') || Array.isArray(content?.['tool_calls'])
  if (!isText) return
  answer.chunks++
  if (isObject(message)) answer.isWhole = true
}
