import { Decompress, decompress } from 'fzstd'
import { decompressed } from './gunzip.ts'

/** What comes out of one piece: all of it, or what is before the damage. */
export interface Inflated {
  readonly plain: Uint8Array
  /** Describes the damage. */
  readonly broken?: string
}

/** Decompresses one piece, from which `bytes` bytes should come. */
export type Inflate = (packed: Uint8Array, bytes: number) => Promise<Inflated>

/** zlib's format. */
export const inflateZlib: Inflate = async (packed, bytes) => {
  async function* pieces() {
    yield packed
  }
  let broken: string | undefined
  const plain = new Collected(bytes)
  for await (const piece of decompressed(pieces(), 'deflate', (detail) => {
    broken = detail
  }))
    if (!plain.add(piece)) break
  return plain.result(broken)
}

/** A larger window is damage: perf's have 512 KiB to 8 MiB. */
const WINDOW_BYTES_MAX = 8 << 20

/** Zstandard's format. */
export const inflateZstd: Inflate = async (packed, bytes) => {
  const plain = new Collected(bytes)
  try {
    plain.add(decompress(packed, new Uint8Array(bytes)))
    return plain.result(undefined)
  } catch (error) {
    return partOf(packed, bytes, (error as Error).message)
  }
}

/** The blocks before the damage; none where a damaged header asks for more memory than any window has. */
function partOf(packed: Uint8Array, bytes: number, broken: string): Inflated {
  const plain = new Collected(bytes)
  try {
    if (windowOf(packed) <= WINDOW_BYTES_MAX) new Decompress((piece) => plain.add(piece)).push(packed, true)
  } catch {
    // the same damage
  }
  return plain.result(broken)
}

/** Bytes that the decompressor allocates for a frame: its window, or its content. */
function windowOf(packed: Uint8Array): number {
  const [flags = 0, window = 0] = packed.subarray(4, 6)
  const base = 2 ** (10 + (window >> 3))
  if ((flags & 0x20) === 0) return base + (base / 8) * (window & 7)
  const at = 5 + [0, 1, 2, 4][flags & 3]!
  const size = packed.subarray(at, at + (1 << (flags >> 6)))
  return size.reduceRight((sum, byte) => 256 * sum + byte, 0) + (flags >> 6 === 1 ? 256 : 0)
}

/** Pieces, of which so many bytes are expected. */
class Collected {
  private readonly bytes: Uint8Array
  private filled = 0
  private hasMore = false

  constructor(expected: number) {
    this.bytes = new Uint8Array(expected)
  }

  /** False: there are more than are expected. */
  add(piece: Uint8Array): boolean {
    const fitting = piece.subarray(0, this.bytes.length - this.filled)
    this.bytes.set(fitting, this.filled)
    this.filled += fitting.length
    this.hasMore ||= fitting.length < piece.length
    return !this.hasMore
  }

  result(broken: string | undefined): Inflated {
    const { bytes, filled } = this
    const odd = this.hasMore
      ? `more than ${bytes.length} bytes come out`
      : filled < bytes.length
        ? `only ${filled} of ${bytes.length} bytes come out`
        : undefined
    const why = broken ?? odd
    return { plain: bytes.subarray(0, filled), ...(why !== undefined && { broken: why }) }
  }
}

const MAGIC = 0xfd2fb528
/** Magic, flags, window. */
const FRAME_HEAD_BYTES = 6

/** A Zstandard stream in pieces cut anywhere, such as perf's. */
export class ZstdStream {
  private readonly stream: Decompress
  private head: number[] | undefined = []

  /** `onPlain` gets what comes out. */
  constructor(onPlain: (plain: Uint8Array) => void) {
    this.stream = new Decompress(onPlain)
  }

  /** Decompresses the next piece. Throws an error that describes the damage; what is before it has come out. */
  push(packed: Uint8Array): void {
    if (this.head) this.checkHead(packed)
    this.stream.push(packed)
  }

  /** The decompressor would allocate as much memory as a damaged header asks for. */
  private checkHead(packed: Uint8Array): void {
    const head = this.head!
    head.push(...packed.subarray(0, FRAME_HEAD_BYTES - head.length))
    if (head.length < FRAME_HEAD_BYTES) return
    this.head = undefined
    const magic = new DataView(Uint8Array.from(head).buffer).getUint32(0, true)
    if (magic !== MAGIC) throw new RangeError(`no Zstandard frame: it begins with 0x${magic.toString(16)}`)
    const isSingle = (head[4]! & 0x20) !== 0
    if (isSingle || windowOf(Uint8Array.from(head)) > WINDOW_BYTES_MAX)
      throw new RangeError('a window of more than 8 MiB')
  }
}
