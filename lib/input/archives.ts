import { traceStart } from '../bytes/trace-start.ts'
import { ByteCursor } from './byte-cursor.ts'
import { decompressed, type OnBroken } from './gunzip.ts'

const latin1 = new TextDecoder('latin1')

const LOCAL_BYTES = 30
/** Sizes are after the content. */
const STREAMED = 1 << 3
const ENCRYPTED = 1
const DEFLATE = 8
const DESCRIPTOR = 0x08074b50
const DESCRIPTOR_BYTES = 16
/** The size is in a field of ZIP64. */
const LARGE = 0xffffffff

/** The first file of a ZIP archive. */
export async function* unzip(source: AsyncIterable<Uint8Array>, onBroken: OnBroken): AsyncGenerator<Uint8Array> {
  const cursor = new ByteCursor(source)
  try {
    for (;;) {
      if (!(await has(cursor, LOCAL_BYTES))) return onBroken('the archive has no file', 0)
      const view = viewOf(cursor)
      const isFile = view.getUint32(0, true) === 0x04034b50
      if (!isFile) return onBroken('the archive has no file that is not empty', 0)
      const [flags, method, size] = [view.getUint16(6, true), view.getUint16(8, true), view.getUint32(18, true)]
      const headBytes = LOCAL_BYTES + view.getUint16(26, true) + view.getUint16(28, true)
      if (!(await has(cursor, headBytes))) return onBroken('the archive ends in the name of a file', 0)
      cursor.skip(headBytes)
      if ((flags & STREAMED) === 0 && size === 0) continue
      if ((flags & ENCRYPTED) !== 0 || (method !== 0 && method !== DEFLATE) || size === LARGE) {
        return onBroken('the file is encrypted, larger than 4 GiB, or packed by another method than deflate', 0)
      }
      const packed = (flags & STREAMED) === 0 ? sized(cursor, size) : described(cursor)
      return yield* method === 0 ? packed : decompressed(packed, 'deflate-raw', onBroken)
    }
  } finally {
    await cursor.close()
  }
}

/** The next `bytes` bytes. */
async function* sized(cursor: ByteCursor, bytes: number): AsyncGenerator<Uint8Array, void> {
  let left = bytes
  while (left > 0 && (cursor.available > 0 || (await cursor.fill()))) {
    const piece = Math.min(left, cursor.available)
    yield cursor.bytes.slice(cursor.start, cursor.start + piece)
    cursor.skip(piece)
    left -= piece
  }
}

/** The bytes up to a descriptor that has their number, or up to the input's end. */
async function* described(cursor: ByteCursor): AsyncGenerator<Uint8Array, void> {
  let taken = 0
  for (;;) {
    const isLast = !(await has(cursor, DESCRIPTOR_BYTES))
    const view = viewOf(cursor)
    const end = Math.max(0, cursor.available - DESCRIPTOR_BYTES + 1)
    let at = 0
    const isDescriptor = () => view.getUint32(at, true) === DESCRIPTOR && view.getUint32(at + 8, true) === taken + at
    while (at < end && !(view.getUint8(at) === 0x50 && isDescriptor())) at++
    const isFound = at < end
    const piece = isLast && !isFound ? cursor.available : at
    if (piece > 0) yield cursor.bytes.slice(cursor.start, cursor.start + piece)
    taken += piece
    cursor.skip(piece)
    if (isFound || isLast) return
  }
}

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
export async function* traceOfPage(
  source: AsyncIterable<Uint8Array>,
  onBroken: OnBroken,
  onLeftOut: () => unknown,
): AsyncGenerator<Uint8Array> {
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
        onLeftOut()
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
        if (waiting.length > 0) onLeftOut()
        waiting = []
        chosen = 'ftrace'
        yield* section
      }
    }
    yield* waiting
    if (chosen === undefined && waiting.length === 0) onBroken('no trace data in the page', 0)
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
  while ((await has(cursor, 1)) && cursor.bytes[cursor.start]! <= 0x20) cursor.skip(1)
  return true
}

/** What a section contains; undefined: something else, such as a list of processes. */
async function kindOfSection(cursor: ByteCursor): Promise<'ftrace' | 'json' | undefined> {
  await has(cursor, SECTION_BYTES)
  const head = cursor.bytes.subarray(cursor.start, Math.min(cursor.end, cursor.start + SECTION_BYTES))
  if (traceStart(head) === 'json') return 'json'
  return latin1.decode(head).startsWith('PROCESS DUMP') ? undefined : 'ftrace'
}

/** The bytes ahead of `mark`, to which it moves; all bytes where there is none. */
async function* until(cursor: ByteCursor, mark: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const isLast = !(await has(cursor, mark.length))
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
export async function* traceOfAtrace(
  source: AsyncIterable<Uint8Array>,
  onBroken: OnBroken,
): AsyncGenerator<Uint8Array> {
  const cursor = new ByteCursor(source)
  try {
    for await (const _ of until(cursor, TRACE));
    for await (const _ of until(cursor, Uint8Array.of(0x0a)));
    cursor.skip(Math.min(1, cursor.available))
    const isPacked = (await has(cursor, 2)) && isZlib(cursor.bytes[cursor.start]!, cursor.bytes[cursor.start + 1]!)
    const rest = sized(cursor, Number.MAX_SAFE_INTEGER)
    yield* isPacked ? decompressed(rest, 'deflate', onBroken) : rest
  } finally {
    await cursor.close()
  }
}

/** RFC 1950: deflate, and a check of both bytes. */
const isZlib = (first: number, second: number) => (first & 0x0f) === DEFLATE && (first * 256 + second) % 31 === 0

/** Fills the window up to so many bytes; false where the input has fewer. */
async function has(cursor: ByteCursor, bytes: number): Promise<boolean> {
  while (cursor.available < bytes) if (!(await cursor.fill())) return false
  return true
}

function viewOf({ bytes, start, end }: ByteCursor): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset + start, end - start)
}
