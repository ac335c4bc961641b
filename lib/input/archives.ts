import { traceStart } from '../bytes/trace-start.ts'
import { ByteCursor } from './byte-cursor.ts'
import { decompressed } from './gunzip.ts'
import type { Unpacked } from './unpacked.ts'

const latin1 = new TextDecoder('latin1')
const encoder = new TextEncoder()
/** How systrace's page contains the trace (catapult, systrace/output_generator.py). */
const SCRIPT = encoder.encode('<script class="trace-data"')
const SCRIPT_END = encoder.encode('</script>')

/** A section of JSON that is not longer waits for a text, which is the trace then: Chrome adds its own metadata. */
const WAITING_BYTES_MAX = 1 << 20
/** Bytes by which the kind of a section is found. */
const SECTION_BYTES = 64

/**
 * The trace in a page of systrace: the texts of ftrace in its elements that contain trace data, one after the other; where there are
 * none, the first of Chrome's. All others are left out.
 */
export async function* traceOfPage(source: AsyncIterable<Uint8Array>, found: Unpacked): AsyncGenerator<Uint8Array> {
  const cursor = new ByteCursor(source)
  let waiting: Uint8Array[] = []
  let chosen: 'ftrace' | 'json' | undefined
  try {
    for (;;) {
      if (!(await toSection(cursor))) break
      const kind = await kindOfSection(cursor)
      const section = until(cursor, SCRIPT_END)
      if (
        kind === undefined ||
        (chosen ?? kind) !== kind ||
        chosen === 'json' ||
        (kind === 'json' && waiting.length > 0)
      ) {
        for await (const _ of section);
        found.otherSections++
      } else if (kind === 'json') {
        let bytes = 0
        for await (const chunk of section) {
          waiting.push(chunk)
          bytes += chunk.length
          if (bytes <= WAITING_BYTES_MAX) continue
          chosen = 'json'
          yield* waiting.splice(0)
        }
      } else {
        if (waiting.length > 0) found.otherSections++
        waiting = []
        chosen = 'ftrace'
        yield* section
      }
    }
    yield* waiting
    if (chosen === undefined && waiting.length === 0)
      found.breaks('no trace data in the page', 0, 'only pages of systrace contain a trace')
  } finally {
    await cursor.close()
  }
}

/** Moves to the begin of the next section; false: there is none. */
async function toSection(cursor: ByteCursor): Promise<boolean> {
  for await (const _ of until(cursor, SCRIPT));
  if (cursor.available === 0) return false
  for await (const _ of until(cursor, Uint8Array.of(0x3e)));
  cursor.skip(Math.min(1, cursor.available))
  // White space ahead of the trace would hide its first line.
  while ((await cursor.has(1)) && cursor.bytes[cursor.start]! <= 0x20) cursor.skip(1)
  return true
}

/** What a section contains; undefined: something else, such as a list of processes. */
async function kindOfSection(cursor: ByteCursor): Promise<'ftrace' | 'json' | undefined> {
  await cursor.has(SECTION_BYTES)
  const head = cursor.bytes.subarray(cursor.start, Math.min(cursor.end, cursor.start + SECTION_BYTES))
  if (traceStart(head) === 'json') return 'json'
  return latin1.decode(head).startsWith('PROCESS DUMP') ? undefined : 'ftrace'
}

/** The bytes ahead of `mark`, to which it moves; all bytes where there is none. */
async function* until(cursor: ByteCursor, mark: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const isLast = !(await cursor.has(mark.length))
    const at = indexOf(cursor, mark)
    const piece = at >= 0 ? at : isLast ? cursor.available : cursor.available - mark.length + 1
    if (piece > 0) yield cursor.bytes.slice(cursor.start, cursor.start + piece)
    cursor.skip(piece)
    if (at >= 0 || isLast) return
  }
}

/** Place of `mark` in the window; -1: none. */
function indexOf({ bytes, start, end }: ByteCursor, mark: Uint8Array): number {
  const [first] = mark
  for (let at = bytes.indexOf(first!, start); at >= 0 && at + mark.length <= end; at = bytes.indexOf(first!, at + 1)) {
    if (mark.every((byte, i) => bytes[at + i] === byte)) return at - start
  }
  return -1
}

const TRACE = encoder.encode('TRACE:')

/** The trace after the line `TRACE:`, which `atrace -z` compresses by zlib. */
export async function* traceOfAtrace(source: AsyncIterable<Uint8Array>, found: Unpacked): AsyncGenerator<Uint8Array> {
  const cursor = new ByteCursor(source)
  try {
    for await (const _ of until(cursor, TRACE));
    for await (const _ of until(cursor, Uint8Array.of(0x0a)));
    cursor.skip(Math.min(1, cursor.available))
    const isPacked = (await cursor.has(2)) && isZlib(cursor.bytes[cursor.start]!, cursor.bytes[cursor.start + 1]!)
    const rest = cursor.take(Infinity)
    yield* isPacked ? decompressed(rest, 'deflate', (detail, bytes) => found.breaks(detail, bytes)) : rest
  } finally {
    await cursor.close()
  }
}

const DEFLATE = 8
/** RFC 1950: deflate, and a check of both bytes. */
const isZlib = (first: number, second: number) => (first & 0x0f) === DEFLATE && (first * 256 + second) % 31 === 0
