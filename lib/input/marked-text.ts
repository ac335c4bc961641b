import { peek } from './gunzip.ts'

/** Encodings of texts that begin with a byte order mark, as tools of Windows write them. */
type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be'

const MARKS: readonly (readonly [Encoding, ...bytes: number[]])[] = [
  ['utf-8', 0xef, 0xbb, 0xbf],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff],
]
const MARK_BYTES = 3

/** The encoding of a text with these first bytes; undefined: it has no byte order mark. */
export function markOf(head: Uint8Array): Encoding | undefined {
  return MARKS.find(([, ...mark]) => mark.every((byte, i) => head[i] === byte))?.[0]
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
