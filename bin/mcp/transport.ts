import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  type RequestId,
  type Transport,
} from '@modelcontextprotocol/server'
import { visible, visibleJson } from '../../lib/cli.ts'
import { send } from '../terminal.ts'
import { count, duration, plural, size } from '../units.ts'
import { ANSWER_BYTES, bytesOf, shortText, visibleValue } from './answer.ts'
import { CUT, LINE_BYTES, type Line, Lines } from './lines.ts'

/** Levels of lists and objects in a message: many functions of JavaScript fail at some thousands. */
const LEVELS = 64
/** Time in which calls of tools end that were not answered when the input ended, in ms: they run commands. */
const GRACE_MS = 1000
/** Codes of JSON-RPC. */
const [PARSE_ERROR, INVALID_REQUEST, SERVER_ERROR] = [-32700, -32600, -32000]

/** What is wrong with a line. */
class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message)
  }
}

/**
 * MCP on standard input and output. Each line that is no notification has one answer: also a line that is too long, too deep or no message gets one, an
 * error, with the id of the request if it has one, and the next line is read. What is read and written takes the memory of a line.
 */
export class LineTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #lines = new Lines()
  /** Requests without an answer: how many have this id, and whether the last one calls a tool. */
  readonly #waiting = new Map<RequestId, { readonly times: number; readonly isCall: boolean }>()
  #isClosed = false
  #whenAnswered: (() => void) | undefined

  constructor(
    private readonly stdin: NodeJS.ReadableStream,
    private readonly stdout: NodeJS.WritableStream,
  ) {}

  async start(): Promise<void> {
    this.stdin.on('data', (piece: Buffer) => {
      for (const line of this.#lines.add(piece)) this.#read(line)
    })
    this.stdin.once('end', () => void this.#end())
    this.stdin.once('error', () => void this.#end())
    this.stdout.once('error', () => void this.close())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return
    const text = visibleJson(JSON.stringify(shownMessage(message)))
    await send(this.stdout, `${text}\n`).catch(() => this.close())
    if ('id' in message && !('method' in message) && message.id !== undefined) this.#answered(message.id)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#whenAnswered?.()
    this.onclose?.()
  }

  /** Passes a message, or answers that it is none. */
  #read(line: Line): void {
    try {
      const message = messageIn(line)
      if (message === undefined) return
      if (isJSONRPCRequest(message)) this.#asked(message.id, message.method === 'tools/call')
      else if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled')
        this.#answered(message.params?.['requestId'] as RequestId) // it has no answer
      this.onmessage?.(message)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      const { code, message } = error
      void this.#write({ jsonrpc: '2.0', id: idIn(line), error: { code, message } })
    }
  }

  #write(answer: unknown): Promise<void> {
    return this.send(answer as JSONRPCMessage)
  }

  #asked(id: RequestId, isCall: boolean): void {
    this.#waiting.set(id, { times: (this.#waiting.get(id)?.times ?? 0) + 1, isCall })
  }

  #answered(id: RequestId): void {
    const { times, isCall } = this.#waiting.get(id) ?? { times: 0, isCall: false }
    if (times > 1) this.#waiting.set(id, { times: times - 1, isCall })
    else this.#waiting.delete(id)
    this.#whenAnswered?.()
  }

  /** The input has ended: what is still asked is answered, calls of tools after a time with an error. */
  async #end(): Promise<void> {
    this.#read(this.#lines.end())
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#whenAnswered?.()
    }, GRACE_MS)
    const mayWait = () => !this.#isClosed && [...this.#waiting.values()].some(({ isCall }) => !isCall || !isLate)
    while (mayWait())
      await new Promise<void>((resolve) => {
        this.#whenAnswered = resolve
      })
    clearTimeout(timer)
    const message = `standard input ended, and the call was not done ${duration(GRACE_MS * 1e6)} later`
    for (const [id, { times }] of [...this.#waiting])
      for (let i = 0; i < times; i++) await this.#write({ jsonrpc: '2.0', id, error: { code: SERVER_ERROR, message } })
    await this.close()
  }
}

/** The message of a line; undefined if it is blank. Throws Refusal. */
function messageIn({ bytes, length, levels }: Line): JSONRPCMessage | undefined {
  if (bytes === undefined)
    throw new Refusal(INVALID_REQUEST, `expected a line of at most ${size(LINE_BYTES)}, found one of ${size(length)}`)
  const text = textOf(bytes)
  if (text.trim() === '') return
  if (levels > LEVELS)
    throw new Refusal(
      INVALID_REQUEST,
      `expected at most ${plural(LEVELS, 'level')} of lists and objects, found ${count(levels)}`,
    )
  const message = jsonIn(text)
  if (isJSONRPCRequest(message)) return message
  if (isJSONRPCNotification(message) || isJSONRPCResponse(message)) return message
  throw new Refusal(INVALID_REQUEST, whyNone(message))
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Refusal(PARSE_ERROR, 'expected UTF-8')
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal(PARSE_ERROR, `expected a line of JSON: ${(error as Error).message}`)
  }
}

/** Why a value is no message. */
function whyNone(value: unknown): string {
  if (Array.isArray(value)) return 'expected one message a line, found a list'
  if (typeof value === 'object' && value !== null && 'id' in value && !isId(value.id))
    return 'expected an id that is a text or a whole number of at most 2^53'
  return 'expected a request, a notification or an answer of JSON-RPC 2.0'
}

const isId = (id: unknown): id is RequestId => typeof id === 'string' || Number.isSafeInteger(id)

/** The id of the request that a line was to be; null if it is not known. */
function idIn({ outline }: Line): RequestId | null {
  try {
    const { id } = JSON.parse(outline ?? 'null')
    return isId(id) && !String(id).includes(CUT) ? id : null
  } catch {
    return null
  }
}

/** A message as clients may get it: texts of errors contain what the client sent, as much as it sent. */
function shownMessage(message: JSONRPCMessage): unknown {
  if ('error' in message) {
    const { code, data, message: text } = message.error
    const isShort = data !== undefined && bytesOf(data) <= ANSWER_BYTES
    return { ...message, error: { code, message: errorText(text), ...(isShort && { data: visibleValue(data) }) } }
  }
  const { result } = message as { readonly result?: { readonly isError?: boolean; readonly content?: unknown } }
  if (!result?.isError || !Array.isArray(result.content)) return message
  const content = result.content.map((part) => ({ ...part, text: errorText(String(part.text)) }))
  return { ...message, result: { ...result, content } }
}

/** A text of at most 4 bytes a character, in the room of an answer. */
const errorText = (text: string) => shortText(visible(text), ANSWER_BYTES / 4 - 100)
