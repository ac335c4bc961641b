import { crc32, deflateRawSync, deflateSync } from 'node:zlib'
import { ZipWriter } from '../../lib/write/zip.ts'
import { joined } from '../line/support.ts'

/** Logs packed as other tools pack them. */

const utf8 = new TextEncoder()

/** The output of `adb shell atrace -z`: a line of the tool, then zlib's format. */
export const atraceOf = (text: Uint8Array): Uint8Array =>
  Buffer.concat([utf8.encode('capturing trace... done\nTRACE:\n'), deflateSync(text)])

/** A page of systrace: the viewer, the trace, and further data that is none. */
export const pageOf = (text: Uint8Array): Uint8Array =>
  Buffer.concat([
    utf8.encode(
      `<!DOCTYPE html>\n<html>\n<head><script>${'var viewer = "<script>";\n'.repeat(300)}</script></head>\n<body>\n`,
    ),
    utf8.encode('<!-- BEGIN TRACE -->\n  <script class="trace-data" type="application/text">\n'),
    text,
    utf8.encode('\n  </script>\n<!-- END TRACE -->\n</body></html>\n'),
  ])

/** A file of an archive, and what is odd about it. */
export interface Member {
  readonly name?: string | Uint8Array
  readonly content: Uint8Array
  readonly method?: number
  readonly flags?: number
  /** Sizes are behind the content; or in the field of ZIP64; or both. */
  readonly isStreamed?: boolean
  readonly isLarge?: boolean
  /** What the archive states. */
  readonly bytes?: number
  readonly packedBytes?: number
  readonly checksum?: number
}

/** Little-endian numbers, each with its size. */
export const fields = (...parts: readonly (readonly [2 | 4 | 8, number])[]) =>
  Buffer.concat(
    parts.map(([bytes, value]) => {
      const part = Buffer.alloc(8)
      part.writeBigUInt64LE(BigInt(value))
      return part.subarray(0, bytes)
    }),
  )

function headOf({ content, method = 8, flags = 0, isStreamed = false, isLarge = false, ...stated }: Member) {
  const packed = method === 8 ? deflateRawSync(content) : content
  const { bytes = content.length, packedBytes = packed.length, checksum = crc32(content) } = stated
  return { packed, bytes, packedBytes, checksum, method, isStreamed, isLarge, flags: flags | (isStreamed ? 8 : 0) }
}

const nameOf = ({ name = 'run.ggtrace' }: Member) => (typeof name === 'string' ? utf8.encode(name) : name)

/** A file in an archive. */
export function member(of: Member): Buffer {
  const { packed, bytes, packedBytes, checksum, method, flags, isStreamed, isLarge } = headOf(of)
  const name = nameOf(of)
  const field = isLarge
    ? fields([2, 1], [2, 16], [8, isStreamed ? 0 : bytes], [8, isStreamed ? 0 : packedBytes])
    : Buffer.alloc(0)
  const known = (size: number) => (isLarge ? 0xffffffff : isStreamed ? 0 : size)
  const head = fields(
    ...([
      [4, 0x04034b50],
      [2, 20],
      [2, flags],
      [2, method],
      [4, 0x21],
      [4, isStreamed ? 0 : checksum],
    ] as const),
    ...([
      [4, known(packedBytes)],
      [4, known(bytes)],
      [2, name.length],
      [2, field.length],
    ] as const),
  )
  const width = isLarge ? 8 : 4
  const descriptor = isStreamed ? [fields([4, 0x08074b50], [4, checksum], [width, packedBytes], [width, bytes])] : []
  return Buffer.concat([head, name, field, packed, ...descriptor])
}

/** A ZIP archive with the list at its end. Members that are the same object are made once. */
export function zip(...members: readonly Member[]): Uint8Array {
  const listed = Buffer.concat(madeOnce(members, listEntry))
  const count = Math.min(members.length, 0xffff)
  const end = fields([4, 0x06054b50], [4, 0], [2, count], [2, count], [4, listed.length], [4, 0], [2, 0])
  return new Uint8Array(Buffer.concat([...madeOnce(members, member), listed, end]))
}

function madeOnce(members: readonly Member[], make: (member: Member) => Buffer): Buffer[] {
  const made = new Map([...new Set(members)].map((one) => [one, make(one)]))
  return members.map((one) => made.get(one)!)
}

function listEntry(of: Member): Buffer {
  const { bytes, packedBytes, checksum, method, flags } = headOf(of)
  const name = nameOf(of)
  const own = fields([4, 0x02014b50], [2, 20], [2, 20], [2, flags], [2, method], [4, 0x21], [4, checksum])
  const sizes = fields([4, packedBytes], [4, bytes], [2, name.length], [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, 0])
  return Buffer.concat([own, sizes, name])
}

/** A ZIP archive as the command `zip` writes it, after a folder: sizes ahead of the content. `method` 0: stored. */
export const zipOf = (content: Uint8Array, method: 0 | 8): Uint8Array =>
  zip(
    { name: 'trace/', content: new Uint8Array(0), method: 0 },
    { name: 'trace/log', content, method: content.length > 0 ? method : 0 },
  )

/** A ZIP archive that was written to a pipe: sizes are after the content. */
export async function streamedZipOf(content: Uint8Array): Promise<Uint8Array> {
  async function* written() {
    const zip = new ZipWriter()
    async function* pieces() {
      yield content
    }
    yield* zip.add('log', pieces())
    yield* zip.finish()
  }
  return joined(written())
}
