import { FormatError, type Position } from '../errors.ts'
import { parsedJson } from './json-bytes.ts'

/** Bytes of a JSON document, which is in memory as a whole. */
const JSON_BYTES_MAX = 64 << 20

/** A JSON object with unknown members. */
export type JsonObject = Readonly<Record<string, unknown>>

/**
 * Reads an input that is one JSON object. Throws FormatError, with the place, if it is none or has more than
 * {@link JSON_BYTES_MAX}.
 */
export async function readJson(source: AsyncIterable<Uint8Array>, format: string): Promise<JsonObject> {
  const decoder = new TextDecoder()
  let bytes = 0
  let text = ''
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > JSON_BYTES_MAX) {
      throw new FormatError(format, { byte: JSON_BYTES_MAX }, `at most ${JSON_BYTES_MAX} bytes`, 'a longer document')
    }
    text += decoder.decode(chunk, { stream: true })
  }
  return parseJson(text + decoder.decode(), format, { byte: 0 })
}

/** Parses an object; `at` is the place of its text in the input. Throws FormatError with the place of the first mistake. */
export function parseJson(text: string, format: string, at: Position): JsonObject {
  let value: unknown
  try {
    value = parsedJson(text.replace(LONG_IDS, '$1"$2"'))
  } catch {
    const { index, expected } = findMistake(text)
    const byte = at.byte + new TextEncoder().encode(text.slice(0, index)).length
    const rest = text.slice(index, index + 20)
    throw new FormatError(format, { ...at, byte }, expected, rest === '' ? 'the end' : JSON.stringify(rest))
  }
  if (isObject(value)) return value
  throw new FormatError(format, at, 'a JSON object', JSON.stringify(text.slice(0, 20)))
}

/** Is a value a JSON object? */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A required list of objects. Throws FormatError if it is missing. */
export function listOf(object: JsonObject, key: string, format: string): readonly JsonObject[] {
  const list = object[key]
  if (Array.isArray(list)) return list.map((item) => (isObject(item) ? item : {}))
  throw new FormatError(format, { byte: 0 }, `a list called "${key}"`, list === undefined ? 'none' : 'something else')
}

/** An unsigned integer, or undefined. */
export function wholeOf(object: JsonObject, key: string): number | undefined {
  const value = object[key]
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** A text, or the empty one. */
export function textOf(object: JsonObject, key: string): string {
  const value = object[key]
  return typeof value === 'string' ? value : ''
}

/** The elements per dimension of a tensor, its `shape`, or undefined. */
export function shapeOf({ shape }: JsonObject): readonly number[] | undefined {
  const isShape = Array.isArray(shape) && shape.length > 0 && shape.every((n) => Number.isSafeInteger(n) && n >= 0)
  return isShape ? shape : undefined
}

/** Numbers that a double cannot hold become texts: addresses that serve as ids. */
const LONG_IDS = /("(?:id|buffer_id|buffer_ptr)"\s*:\s*)(\d{16,})/g

const TOKEN =
  /[ \t\n\r]*(?:([{}[\],:])|("[^"\\\0]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\0]*)*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y

/** The token that may come next: a value, a key, a colon, or one that continues or ends the open object or list. */
type State = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'next'

const EXPECTED: Readonly<Record<State, string>> = {
  value: 'a value',
  'first value': 'a value or ]',
  key: 'a key',
  'first key': 'a key or }',
  colon: 'a colon',
  next: 'a comma or the end of an object or list',
}

/** Index of the first character that JSON does not allow. */
function findMistake(text: string): { readonly index: number; readonly expected: string } {
  const open: string[] = []
  let state: State = 'value'
  let index = 0
  for (;;) {
    TOKEN.lastIndex = index
    const token = TOKEN.exec(text)
    const after: State | undefined = token ? follow(state, token, open) : undefined
    if (after === undefined || (after === 'next' && open.length === 0)) {
      if (after !== undefined) index = TOKEN.lastIndex
      const skipped = /[ \t\n\r]*/y
      skipped.lastIndex = index
      skipped.exec(text)
      return { index: skipped.lastIndex, expected: after === undefined ? EXPECTED[state] : 'the end' }
    }
    state = after
    index = TOKEN.lastIndex
  }
}

/** The state after a token; undefined where the token is not allowed. */
function follow(state: State, [, mark, string, other]: RegExpExecArray, open: string[]): State | undefined {
  const isValue = state === 'value' || state === 'first value'
  if (other !== undefined) return isValue ? 'next' : undefined
  if (string !== undefined) return isValue ? 'next' : state.endsWith('key') ? 'colon' : undefined
  if (mark === ':') return state === 'colon' ? 'value' : undefined
  if (mark === '{' || mark === '[') {
    if (!isValue) return undefined
    open.push(mark)
    return mark === '{' ? 'first key' : 'first value'
  }
  if (mark === ',') return state === 'next' ? (open.at(-1) === '{' ? 'key' : 'value') : undefined
  const opening = mark === '}' ? '{' : '['
  const mayEnd = state === 'next' || state === (mark === '}' ? 'first key' : 'first value')
  return mayEnd && open.pop() === opening ? 'next' : undefined
}
