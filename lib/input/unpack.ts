import { gunzip, isGzip, peek } from './gunzip.ts'
import { Unpacked } from './unpacked.ts'

/**
 * What a log may be packed in: gzip, a ZIP archive (its first file), these in each other, an HTML page of systrace, the output of atrace ahead of the
 * trace; a text may begin with a byte order mark, and may be UTF-16. Each is detected by its first bytes and unpacked as a stream.
 */

/** Bytes that {@link packingOf} needs. */
export const PACKING_BYTES = 512

/** The kinds of packing. */
export type Packing = 'gzip' | 'zip' | 'html' | 'atrace' | 'marked'

const ZIP = [0x50, 0x4b, 0x03, 0x04]
const HTML = /^(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b/i
/** What `adb shell atrace` prints ahead of the trace. */
const ATRACE = /^(?:[^\n]{0,200}\r?\n){0,3}?TRACE:\r?\n/
const latin1 = new TextDecoder('latin1')

/** The packing of an input with these first bytes; undefined: none. */
export function packingOf(head: Uint8Array): Packing | undefined {
  if (isGzip(head)) return 'gzip'
  if (ZIP.every((byte, i) => head[i] === byte)) return 'zip'
  const text = latin1.decode(head.subarray(0, PACKING_BYTES))
  if (HTML.test(text)) return 'html'
  if (ATRACE.test(text)) return 'atrace'
  return markOf(head) ? 'marked' : undefined
}

/** Logs are packed once or twice; more is an attempt to take all memory and time. */
const DEPTH_MAX = 4
/** Deflate packs 1 032 bytes at most into one: an input from which more come is packed twice by it, as no log is. */
const RATIO_MAX = 1100
/** The same of a small input. */
const PLAIN_BYTES = 64 << 20

/**
 * The chunks of an input, unpacked where it is packed, also several times, texts as UTF-8 without a byte order mark. A damaged or cut stream ends there, after all
 * bytes before the damage, which is in `found`, as is what is left out. Errors of the source itself are thrown.
 */
export function unpack(source: AsyncIterable<Uint8Array>, found = new Unpacked()): AsyncGenerator<Uint8Array> {
  return unmarked(bounded(source, found))
}

/** The beginning of an input, unpacked: `head` are its first bytes as they are stored. */
export async function unpackedHead(head: Uint8Array, bytes: number): Promise<Uint8Array> {
  async function* only() {
    yield head
  }
  const { head: plain, rest } = await peek(unpack(only()), bytes)
  await rest.return()
  return plain
}

async function* bounded(source: AsyncIterable<Uint8Array>, found: Unpacked): AsyncGenerator<Uint8Array> {
  let [storedBytes, plainBytes] = [0, 0]
  async function* counted() {
    for await (const chunk of source) {
      storedBytes += chunk.length
      yield chunk
    }
  }
  for await (const chunk of content(counted(), found, 0)) {
    plainBytes += chunk.length
    if (plainBytes > Math.max(RATIO_MAX * storedBytes, PLAIN_BYTES))
      return found.breaks(`more than ${RATIO_MAX} bytes come out of each byte`, plainBytes - chunk.length)
    yield chunk
  }
}

/** `depth`: what the source is unpacked from. */
async function* content(source: AsyncIterable<Uint8Array>, found: Unpacked, depth: number): AsyncGenerator<Uint8Array> {
  const { head, rest } = await peek(source, PACKING_BYTES)
  const packing = packingOf(head)
  switch (packing) {
    case 'gzip':
    case 'zip': {
      if (depth < DEPTH_MAX) return yield* content(await plainOf(packing, rest, found), found, depth + 1)
      await rest.return()
      return found.breaks(`it is packed more than ${DEPTH_MAX} times`, 0, 'unpack it')
    }
    case 'html':
      return yield* (await import('./archives.ts')).traceOfPage(rest, found)
    case 'atrace':
      return yield* (await import('./archives.ts')).traceOfAtrace(rest, found)
    default:
      yield* rest
  }
}

const plainOf = async (packing: 'gzip' | 'zip', source: AsyncIterable<Uint8Array>, found: Unpacked) =>
  packing === 'zip'
    ? (await import('./unzip.ts')).unzip(source, found)
    : gunzip(source, (detail, bytes) => found.breaks(detail, bytes))

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
function markOf(head: Uint8Array): Encoding | undefined {
  const text = String.fromCharCode(...head.subarray(0, MARK_BYTES))
  return MARKS.find(([, mark]) => mark.test(text))?.[0]
}

/** The bytes of a text in UTF-8 without its byte order mark; an input without a mark as it is. */
async function* unmarked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
