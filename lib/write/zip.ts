import { Crc32 } from '../bytes/crc32.ts'
import { joined } from '../bytes/joined.ts'
import { through } from '../bytes/web-stream.ts'
import { UsageError } from '../errors.ts'

const LOCAL = 0x04034b50
const DESCRIPTOR = 0x08074b50
const CENTRAL = 0x02014b50
const END = 0x06054b50
/** Version 2.0: deflate requires it, and trace_processor supports no later one. */
const VERSION = 20
/** Sizes and checksum are after the content. */
const STREAMED = 1 << 3
const DEFLATE = 8
/** 1980-01-01: the same bytes for the same content. */
const DATE = 0x21
const BYTES_MAX = 0xffff_ffff

interface Member {
  readonly name: Uint8Array
  readonly offset: number
  readonly checksum: number
  readonly packedBytes: number
  readonly bytes: number
}

/**
 * Writes a ZIP archive from front to back, member by member; their sizes need not be known in advance. Without ZIP64, which
 * trace_processor does not read: an archive must be smaller than 4 GiB.
 */
export class ZipWriter {
  private readonly members: Member[] = []
  private offset = 0

  /** Appends a member with an ASCII name. Returns what `content` returns. Throws UsageError if the archive becomes too large. */
  async *add<R>(name: string, content: AsyncGenerator<Uint8Array, R>): AsyncGenerator<Uint8Array, R> {
    const encodedName = new TextEncoder().encode(name)
    const { offset } = this
    yield this.counted(joined([numbers(LOCAL, ...head(0, 0, 0, encodedName.length)), encodedName]))
    const sum = new Crc32()
    const start = this.offset
    const packed = through(summed(content, sum), new CompressionStream('deflate-raw'))
    let next = await packed.next()
    for (; !next.done; next = await packed.next()) yield this.counted(next.value)
    const packedBytes = this.offset - start
    if (sum.bytes > BYTES_MAX) throw tooLarge(name)
    yield this.counted(numbers(DESCRIPTOR, [4, sum.value], [4, packedBytes], [4, sum.bytes]))
    this.members.push({ name: encodedName, offset, checksum: sum.value, packedBytes, bytes: sum.bytes })
    return next.value
  }

  /** Ends the archive by the list of its members. */
  *finish(): Generator<Uint8Array> {
    const start = this.offset
    for (const { name, offset, checksum, packedBytes, bytes } of this.members) {
      const own = numbers(CENTRAL, [2, VERSION], ...head(checksum, packedBytes, bytes, name.length))
      const rest = numbers([2, 0], [2, 0], [2, 0], [4, 0], [4, offset]) // no comment, on disk 0, no attributes
      yield this.counted(joined([own, rest, name]))
    }
    const { length } = this.members
    yield numbers(END, [2, 0], [2, 0], [2, length], [2, length], [4, this.offset - start], [4, start], [2, 0])
  }

  private counted(piece: Uint8Array): Uint8Array {
    this.offset += piece.length
    if (this.offset > BYTES_MAX) throw tooLarge('the archive')
    return piece
  }
}

/** Fields that both headers of a member contain. */
function head(checksum: number, packedBytes: number, bytes: number, nameBytes: number): Field[] {
  return [
    [2, VERSION],
    [2, STREAMED],
    [2, DEFLATE],
    [2, 0],
    [2, DATE],
    [4, checksum],
    [4, packedBytes],
    [4, bytes],
    [2, nameBytes],
    [2, 0],
  ]
}

function tooLarge(what: string): UsageError {
  return new UsageError(
    `${what}: a bundle must be smaller than 4 GiB, the limit of trace_processor for ZIP files\nhint: convert both inputs ` +
      'without --bundle, or bundle a shorter recording',
  )
}

/** Size of a little-endian number, and the number; a signature without size has 4 bytes. */
type Field = number | readonly [bytes: 2 | 4, value: number]

function numbers(...fields: readonly Field[]): Uint8Array {
  const sized = fields.map((field) => (typeof field === 'number' ? ([4, field] as const) : field))
  const view = new DataView(new ArrayBuffer(sized.reduce((sum, [bytes]) => sum + bytes, 0)))
  let at = 0
  for (const [bytes, value] of sized) {
    if (bytes === 2) view.setUint16(at, value, true)
    else view.setUint32(at, value, true)
    at += bytes
  }
  return new Uint8Array(view.buffer)
}

/** The content, which is added to `sum` as it passes. */
async function* summed<R>(content: AsyncGenerator<Uint8Array, R>, sum: Crc32): AsyncGenerator<Uint8Array, R> {
  let next = await content.next()
  for (; !next.done; next = await content.next()) {
    sum.add(next.value)
    yield next.value
  }
  return next.value
}
