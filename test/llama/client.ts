import { request as httpRequest, type IncomingMessage } from 'node:http'

/** A client of llama-server that measures its own times, for tests. */

/** A server's own figures of a completion. */
export interface Timings {
  readonly cache_n: number
  readonly prompt_n: number
  readonly prompt_ms: number
  readonly predicted_n: number
  readonly predicted_ms: number
  readonly draft_n?: number
  readonly draft_n_accepted?: number
}

export interface Ask {
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
  /** Of a streamed completion: the client closes its connection after this many of the server's events. */
  readonly closeAfter?: number | undefined
  /** Called with the number of events that a stream has so far, whenever more have come. */
  readonly onEvents?: ((events: number) => void) | undefined
}

/** Times in nanoseconds of CLOCK_MONOTONIC, as the client's process measured them. */
export interface Answer {
  readonly ask: Ask
  /** -1: the client closed the connection before the answer's head. */
  readonly status: number
  /** The JSON documents of the answer: of a stream, one for each event. */
  readonly documents: readonly Document[]
  /** The text of all choices, in their order; empty of embeddings. */
  readonly text: string
  readonly timings: Timings | undefined
  /** The slot that the server names. */
  readonly slot: number | undefined
  readonly isClosed: boolean
  readonly sentNs: bigint
  /** The first byte of the answer's body. */
  readonly firstNs: bigint
  readonly lastNs: bigint
}

/** What tests read of a document; the rest differs with the path. */
export interface Document {
  readonly content?: string
  readonly index?: number
  readonly stop?: boolean
  readonly id_slot?: number
  readonly timings?: Timings
  readonly tokens_evaluated?: number
  readonly error?: { readonly code: number; readonly message: string; readonly type: string }
  readonly embedding?: readonly (readonly number[])[]
}

const now = () => process.hrtime.bigint()

const documentsOf = (text: string, isStream: boolean): Document[] => {
  const parts = isStream ? [...text.matchAll(/^(?:data|error): (\{.*\})$/gm)].map(([, json]) => json!) : [text]
  return parts.flatMap((json) => JSON.parse(json) as Document | Document[])
}

const answerOf = (ask: Ask, status: number, body: string, isClosed: boolean, times: readonly bigint[]): Answer => {
  const isStream = ask.body['stream'] === true && status === 200
  const documents = isClosed && !isStream ? [] : documentsOf(body, isStream)
  const last = documents.findLast(({ timings }) => timings !== undefined)
  const [sentNs, firstNs, lastNs] = times as [bigint, bigint, bigint]
  const texts: string[] = []
  for (const { index = 0, content = '' } of documents) texts[index] = (texts[index] ?? '') + content
  const slot = documents.find(({ id_slot }) => id_slot !== undefined)?.id_slot
  const text = texts.join('\n')
  return { ask, status, documents, text, timings: last?.timings, slot, isClosed, sentNs, firstNs, lastNs }
}

/** Sends one request, and waits for the end of its answer or for the connection's. */
export const send = (url: string, ask: Ask): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify(ask.body)
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    let [text, firstNs, isClosed] = ['', 0n, false]
    const sentNs = now()
    const request = httpRequest(`${url}${ask.path}`, { method: 'POST', headers, agent: false })
    const finish = (status: number) => {
      resolve(answerOf(ask, status, text, isClosed, [sentNs, firstNs, now()]))
    }
    const close = (status: number) => {
      isClosed = true
      request.destroy()
      finish(status)
    }
    request.on('response', (response: IncomingMessage) => {
      const status = response.statusCode!
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        if (isClosed) return
        firstNs ||= now()
        text += chunk
        const events = text.split('\n\n').length - 1
        ask.onEvents?.(events)
        if (ask.closeAfter !== undefined && events >= ask.closeAfter) close(status)
      })
      response.on('end', () => isClosed || finish(status))
      response.on('error', (error) => isClosed || reject(error))
    })
    request.on('error', (error) => isClosed || reject(error))
    request.end(body)
    if (ask.closeAfter === 0) setTimeout(() => close(-1), 20)
  })
