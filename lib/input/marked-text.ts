import { peek } from './gunzip.ts'

/** Encodings of texts that begin with a byte order mark, as tools of Windows write them. */
type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be'

/** Marks, each with three characters of ASCII: all texts begin with such, and a record of a binary log may begin with the bytes of a mark. */
const MARKS: readonly (readonly [Encoding, RegExp])[] = [
  ['utf-8', /^\u00ef\u00bb\u00bf[\t-\r -~]/],
  ['utf-16le', /^\u00ff\u00fe(?:[\t-\r -~]\0){3}/],
  ['utf-16be', /^\u00fe\u00ff(?:\0[\t-\r -~]){3}/],
]
const MARK_BYTES = 8

/** The encoding of a text with these first bytes; undefined: it has no byte order mark. */
export function markOf(head: Uint8Array): Encoding | undefined {
  const text = String.fromCharCode(...head.subarray(0, MARK_BYTES))
  return MARKS.find(([, mark]) => mark.test(text))?.[0]
}

/** The bytes of a text in UTF-8 without its byte order mark; an input without a mark as it is. */
export async function* unmarked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { head, rest } = await peek(source, MARK_BYTES)
  const encoding = markOf(head)
  if (encoding === undefined) return yield* rest
  const [decoder, encoder] = [new TextDecoder(encoding), new TextEncoder()]
  for await (const chunk of rest) {
    const bytes = encoder.encode(decoder.decode(chunk, { stream: true }))
    if (bytes.length > 0) yield bytes
  }
  const last = encoder.encode(decoder.decode())
  if (last.length > 0) yield last
}
