import { Crc32 } from '../bytes/crc32.ts'
import { joined } from '../bytes/joined.ts'
import { ByteCursor } from './byte-cursor.ts'
import { decompressed } from './gunzip.ts'
import type { Unpacked } from './unpacked.ts'

/** Records of an archive begin with one of these. */
const [LOCAL, CENTRAL, END, DESCRIPTOR] = [0x04034b50, 0x02014b50, 0x06054b50, 0x08074b50]
/** Their bytes, without names. */
const [LOCAL_BYTES, CENTRAL_BYTES, END_BYTES] = [30, 46, 22]
const [ENCRYPTED, STREAMED] = [1, 1 << 3]
const [STORED, DEFLATE] = [0, 8]
/** A size that is in the field of ZIP64. */
const IN_FIELD = 0xffff_ffff
/** The number of that field. */
const ZIP64 = 1
/** Bytes at the end of an archive in which its list is looked for. */
const LIST_BYTES_MAX = 1 << 20
const COMMENT_BYTES_MAX = 0xffff
const EMPTY_BYTES_MAX = 5
const NAME_LENGTH_MAX = 80

const decoder = new TextDecoder()

/** The head of a file in an archive. */
interface Entry {
  readonly name: string
  readonly method: number
  readonly isEncrypted: boolean
  /** The next ones are 0, and behind the content. */
  readonly isStreamed: boolean
  readonly checksum: number
  readonly packedBytes: number
  readonly bytes: number
  /** Sizes behind the content have 8 bytes. */
  readonly isLarge: boolean
}

/** The first file of a ZIP archive that is not empty; the number of the others is in `found`. */
export async function* unzip(source: AsyncIterable<Uint8Array>, found: Unpacked): AsyncGenerator<Uint8Array> {
  const cursor = new ByteCursor(source)
  try {
    const entry = await firstFile(cursor)
    if (typeof entry === 'string') return found.breaks(entry, 0)
    found.reads(entry.name.slice(0, NAME_LENGTH_MAX))
    const refusal = refusalOf(entry)
    if (refusal !== undefined)
      return found.breaks(`the file ${JSON.stringify(found.file)} ${refusal}`, 0, 'unpack the archive')
    yield* contentOf(new PackedFile(cursor, entry), entry, found)
    if (!found.broken) found.otherFiles += await otherFiles(cursor)
  } finally {
    await cursor.close()
  }
}

/** Or why there is none. */
async function firstFile(cursor: ByteCursor): Promise<Entry | string> {
  for (;;) {
    const entry = await entryOf(cursor)
    if (typeof entry === 'string' || (isOfUser(entry.name) && !isEmpty(entry))) return entry
    for await (const _ of new PackedFile(cursor, entry).pieces());
  }
}

/** Deflate makes some bytes of none. */
const isEmpty = ({ name, isStreamed, bytes, packedBytes }: Entry) =>
  name.endsWith('/') || (!isStreamed && (packedBytes === 0 || (bytes === 0 && packedBytes <= EMPTY_BYTES_MAX)))

/** macOS adds files with attributes of files. */
const isOfUser = (name: string) => !/^__MACOSX\/|(^|\/)\.DS_Store$/.test(name)

async function entryOf(cursor: ByteCursor): Promise<Entry | string> {
  if (!(await cursor.has(LOCAL_BYTES))) return 'the archive has no file'
  if (viewOf(cursor).getUint32(0, true) !== LOCAL) return 'the archive has no file that is not empty'
  const nameEnd = LOCAL_BYTES + viewOf(cursor).getUint16(26, true)
  const headEnd = nameEnd + viewOf(cursor).getUint16(28, true)
  if (!(await cursor.has(headEnd))) return 'the archive ends in the name of a file'
  const view = viewOf(cursor)
  const flags = view.getUint16(6, true)
  const large = zip64Of(view, nameEnd, headEnd)
  const [bytes, packedBytes] = [22, 18].map((at) => {
    const size = view.getUint32(at, true)
    return size === IN_FIELD ? (large?.shift() ?? size) : size
  }) as [number, number]
  const entry = {
    name: decoder.decode(cursor.bytes.subarray(cursor.start + LOCAL_BYTES, cursor.start + nameEnd)),
    method: view.getUint16(8, true),
    isEncrypted: (flags & ENCRYPTED) !== 0,
    isStreamed: (flags & STREAMED) !== 0,
    checksum: view.getUint32(14, true),
    ...{ bytes, packedBytes, isLarge: large !== undefined },
  }
  cursor.skip(headEnd)
  return entry
}

/** The sizes in the field of ZIP64, which is one of `[start, end)`; undefined: there is none. */
function zip64Of(view: DataView, start: number, end: number): number[] | undefined {
  for (let at = start; at + 4 <= end; at += 4 + view.getUint16(at + 2, true)) {
    if (view.getUint16(at, true) !== ZIP64) continue
    const count = Math.min(view.getUint16(at + 2, true), end - at - 4) >> 3
    return Array.from({ length: count }, (_, i) => Number(view.getBigUint64(at + 4 + 8 * i, true)))
  }
  return undefined
}

function refusalOf({ isEncrypted, method }: Entry): string | undefined {
  if (isEncrypted) return 'is encrypted'
  return method === STORED || method === DEFLATE ? undefined : `is packed by method ${method} of ZIP, not by deflate`
}

/** The content of a file as it is in the archive. */
class PackedFile {
  /** What it should be, after all pieces; undefined: the archive ends in it. */
  end: { readonly checksum: number; readonly bytes: number } | undefined

  constructor(
    private readonly cursor: ByteCursor,
    private readonly entry: Entry,
  ) {}

  async *pieces(): AsyncGenerator<Uint8Array, void> {
    const { cursor, entry } = this
    if (entry.isStreamed) return yield* this.described()
    let left = entry.packedBytes
    for await (const piece of cursor.take(left)) {
      left -= piece.length
      yield piece
    }
    if (left === 0) this.end = entry
  }

  /** The bytes up to a descriptor that has their number, or up to the input's end. */
  private async *described(): AsyncGenerator<Uint8Array, void> {
    const { cursor, entry } = this
    const descriptorBytes = entry.isLarge ? 24 : 16
    const sizeAt = (view: DataView, at: number) =>
      entry.isLarge ? Number(view.getBigUint64(at, true)) : view.getUint32(at, true)
    let taken = 0
    for (;;) {
      const isLast = !(await cursor.has(descriptorBytes))
      const view = viewOf(cursor)
      const end = Math.max(0, cursor.available - descriptorBytes + 1)
      let at = 0
      const isDescriptor = () => view.getUint32(at, true) === DESCRIPTOR && sizeAt(view, at + 8) === taken + at
      while (at < end && !(view.getUint8(at) === 0x50 && isDescriptor())) at++
      const isFound = at < end
      if (isFound)
        this.end = { checksum: view.getUint32(at + 4, true), bytes: sizeAt(view, at + (entry.isLarge ? 16 : 12)) }
      const piece = isLast && !isFound ? cursor.available : at
      yield* cursor.take(piece)
      taken += piece
      if (isFound) cursor.skip(descriptorBytes)
      if (isFound || isLast) return
    }
  }
}

/** The content of a file, unpacked. What it should be is behind it: whether it is, is known after all of it. */
async function* contentOf(file: PackedFile, { method }: Entry, found: Unpacked): AsyncGenerator<Uint8Array> {
  const sum = new Crc32()
  const plain =
    method === STORED
      ? file.pieces()
      : decompressed(file.pieces(), 'deflate-raw', (detail, bytes) => found.breaks(detail, bytes))
  for await (const piece of plain) {
    sum.add(piece)
    yield piece
  }
  const { end } = file
  // A stream of deflate has an end of its own.
  if (!end && method === STORED) found.breaks('the archive ends in the file', sum.bytes)
  if (end && end.bytes !== sum.bytes) found.breaks('the file has another size than the archive states', sum.bytes)
  if (end && end.checksum !== sum.value)
    found.breaks('the file has another checksum than the archive states', sum.bytes)
}

/** The number of files that follow, without empty ones, by the list at the end of the archive. */
async function otherFiles(cursor: ByteCursor): Promise<number> {
  const isNext = (await cursor.has(4)) && viewOf(cursor).getUint32(0, true) === LOCAL
  if (!isNext) return 0
  const bytes = await lastBytes(cursor)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let end = bytes.length - END_BYTES
  const least = Math.max(end - COMMENT_BYTES_MAX, 0)
  while (end >= least && view.getUint32(end, true) !== END) end--
  if (end < least) return 1 // it is cut
  const listed = view.getUint16(end + 10, true)
  const start = end - view.getUint32(end + 12, true)
  if (start < 0) return listed - 1
  let files = 0
  for (let at = start; at + CENTRAL_BYTES <= end && view.getUint32(at, true) === CENTRAL; ) {
    const nameEnd = at + CENTRAL_BYTES + view.getUint16(at + 28, true)
    const name = decoder.decode(bytes.subarray(at + CENTRAL_BYTES, nameEnd))
    if (isOfUser(name) && view.getUint32(at + 24, true) > 0) files++
    at = nameEnd + view.getUint16(at + 30, true) + view.getUint16(at + 32, true)
  }
  return Math.max(files - 1, 0)
}

/** The rest of the input, of which only the last bytes are kept. */
async function lastBytes(cursor: ByteCursor): Promise<Uint8Array> {
  const kept: Uint8Array[] = []
  let bytes = 0
  for await (const piece of cursor.take(Infinity)) {
    kept.push(piece)
    bytes += piece.length
    while (bytes - kept[0]!.length >= LIST_BYTES_MAX) bytes -= kept.shift()!.length
  }
  return joined(kept)
}

const viewOf = ({ bytes, start, end }: ByteCursor) => new DataView(bytes.buffer, bytes.byteOffset + start, end - start)
