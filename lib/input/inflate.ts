import { Decompress, decompress } from 'fzstd'
import { through } from '../bytes/web-stream.ts'

/** Decompresses one piece. Throws an error that describes the damage. */
export type Inflate = (packed: Uint8Array, bytes: number) => Promise<Uint8Array>

/** zlib's format, by the platform's decompressor. Throws RangeError unless the result has `bytes` bytes. */
export const inflateZlib: Inflate = async (packed, bytes) => {
  async function* pieces() {
    yield packed
  }
  const plain = new Uint8Array(bytes)
  let filled = 0
  for await (const piece of through(pieces(), new DecompressionStream('deflate'))) {
    if (filled + piece.length > bytes) throw new RangeError(`more than ${bytes} bytes come out`)
    plain.set(piece, filled)
    filled += piece.length
  }
  if (filled < bytes) throw new RangeError(`only ${filled} of ${bytes} bytes come out`)
  return plain
}

/** Zstandard's format. Throws RangeError unless the result has `bytes` bytes. */
export const inflateZstd: Inflate = async (packed, bytes) => {
  const plain = new Uint8Array(bytes)
  const found = decompress(packed, plain).length
  if (found !== bytes) throw new RangeError(`${found} bytes come out instead of ${bytes}`)
  return plain
}

/** A larger window is damage: perf's have 512 KiB to 8 MiB. */
const WINDOW_BYTES_MAX = 8 << 20
const MAGIC = 0xfd2fb528
/** Magic, flags, window. */
const FRAME_HEAD_BYTES = 6

/** A Zstandard stream in pieces cut anywhere, such as perf's. */
export class ZstdStream {
  private readonly plain: Uint8Array[] = []
  private readonly stream = new Decompress((piece) => {
    this.plain.push(piece)
  })
  private head: number[] | undefined = []

  /** The decompressed bytes of the next piece. Throws an error that describes the damage. */
  push(packed: Uint8Array): Uint8Array[] {
    if (this.head) this.checkHead(packed)
    this.plain.length = 0
    this.stream.push(packed)
    return this.plain
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
    const base = 2 ** (10 + (head[5]! >> 3))
    const window = base + (base / 8) * (head[5]! & 7)
    if (isSingle || window > WINDOW_BYTES_MAX) throw new RangeError('a window of more than 8 MiB')
  }
}
