import { gunzip, isGzip, type OnBroken, peek } from './gunzip.ts'

/**
 * What a log may be packed in: gzip, a ZIP archive (its first file), an HTML page of systrace, the output of atrace ahead of the
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

/**
 * The chunks of an input, unpacked where it is packed, texts as UTF-8 without a byte order mark. A damaged or cut stream ends there, after all bytes before the
 * damage, and `onBroken` is called. `onLeftOut` is called for each section of a page that is left out. Errors of the source itself are thrown.
 */
export function unpack(
  source: AsyncIterable<Uint8Array>,
  onBroken: OnBroken,
  onLeftOut: () => unknown = () => {},
): AsyncGenerator<Uint8Array> {
  return unmarked(content(source, onBroken, onLeftOut))
}

async function* content(
  source: AsyncIterable<Uint8Array>,
  onBroken: OnBroken,
  onLeftOut: () => unknown,
): AsyncGenerator<Uint8Array> {
  const { head, rest } = await peek(source, PACKING_BYTES)
  switch (packingOf(head)) {
    case 'gzip':
      return yield* gunzip(rest, onBroken)
    case 'zip':
      return yield* (await import('./archives.ts')).unzip(rest, onBroken)
    case 'html':
      return yield* (await import('./archives.ts')).traceOfPage(rest, onBroken, onLeftOut)
    case 'atrace':
      return yield* (await import('./archives.ts')).traceOfAtrace(rest, onBroken)
    default:
      yield* rest
  }
}

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
