import { joined } from '../bytes/joined.ts'
import { readWebStream } from '../bytes/web-stream.ts'
import { Replay } from './replay.ts'

/** Called with the error where a compressed input is cut or damaged, after so many decompressed bytes. */
export type OnBroken = (detail: string, bytes: number) => void

/**
 * Returns the chunks of an input, decompressed where it starts with gzip's magic bytes. A damaged or cut gzip stream ends
 * there, after all bytes before the damage, and `onBroken` is called. Errors of the source itself are thrown.
 */
export async function* gunzip(source: AsyncIterable<Uint8Array>, onBroken: OnBroken): AsyncGenerator<Uint8Array> {
  const { head, rest } = await peek(source, GZIP_BYTES)
  if (isGzip(head)) yield* decompressed(rest, 'gzip', onBroken)
  else yield* rest
}

/** Bytes that {@link isGzip} needs. */
export const GZIP_BYTES = 3
const DEFLATE = 8

/** Are these the first bytes of a gzip stream? Its method is always deflate: a time in a binary log may begin with the two bytes before it. */
export function isGzip(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b && (head[2] ?? DEFLATE) === DEFLATE
}

/** The first `bytes` bytes of an input (fewer where it is shorter), and the whole input. */
export async function peek(
  source: AsyncIterable<Uint8Array>,
  bytes: number,
): Promise<{ head: Uint8Array; rest: Replay<Uint8Array> }> {
  const rest = new Replay(source)
  const seen: Uint8Array[] = []
  let length = 0
  await rest.look((chunk) => {
    seen.push(chunk.subarray(0, bytes - length))
    length += chunk.length
    return length >= bytes
  })
  return { head: new Uint8Array(joined(seen)), rest }
}

/** Bytes that go into a decompressor at once. */
const PIECE_BYTES = 1 << 14
/** More than a decompressor of any platform takes before it reports damage in them: Node's streams hold 16 KiB. */
const TAIL_BYTES = 1 << 15
/** Compressed bytes that are held, so that the second decompressor has nothing to do but after damage. */
const HELD_BYTES = 32 << 20

/**
 * The bytes of a compressed stream. Where it is damaged or cut, all that can be decompressed before that is delivered, however the
 * input is cut into pieces. With an error, the platform's decompressors drop what they have made of the piece: a second one, which
 * is behind, gets the last pieces byte by byte.
 */
export async function* decompressed(
  source: AsyncIterable<Uint8Array>,
  format: CompressionFormat,
  onBroken: OnBroken,
): AsyncGenerator<Uint8Array> {
  const ahead = new Decompressor(format)
  let behind: Decompressor | undefined
  const waiting: Uint8Array<ArrayBuffer>[] = []
  let waitingBytes = 0
  const follow = async (leftBytes: number) => {
    while (waitingBytes > leftBytes + PIECE_BYTES) {
      const next = waiting.shift()!
      waitingBytes -= next.length
      behind ??= new Decompressor(format)
      await behind.push(next)
    }
  }
  let made: Promise<Made> = ahead.push(NO_BYTES)
  let bytes = 0
  const counted = function* (pieces: readonly Uint8Array[]) {
    for (const piece of pieces) {
      bytes += piece.length
      yield piece
    }
  }
  let broken: string | undefined
  try {
    for await (const piece of cut(source)) {
      const { plain, broken: why } = await made
      if (why === undefined) made = ahead.push(piece)
      yield* counted(plain)
      broken = why
      if (broken !== undefined) break
      waiting.push(piece)
      waitingBytes += piece.length
      if (waitingBytes > HELD_BYTES) await follow(HELD_BYTES / 2)
    }
    for (const rest of [() => made, () => ahead.end()]) {
      if (broken !== undefined) break
      const { plain, broken: why } = await rest()
      yield* counted(plain)
      broken = why
    }
    if (broken === undefined) return
    await follow(TAIL_BYTES)
    behind ??= new Decompressor(format)
    yield* counted(await behind.pushBytes(waiting, bytes))
    onBroken(broken, bytes)
  } finally {
    ahead.stop()
    behind?.stop()
  }
}

/** Pieces of at most {@link PIECE_BYTES}. */
async function* cut(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const chunk of source)
    for (let at = 0; at < chunk.length; at += PIECE_BYTES)
      yield chunk.subarray(at, at + PIECE_BYTES) as Uint8Array<ArrayBuffer>
}

/** What has come out of a decompressor; `broken`: the stream is damaged or cut. */
interface Made {
  readonly plain: readonly Uint8Array[]
  readonly broken?: string
}

const NO_BYTES = new Uint8Array(0)

/** One of the platform's decompressors, which gets its input piece by piece. */
class Decompressor {
  private from = 0
  private bytes = 0
  private plain: Uint8Array[] = []
  private readonly writer: WritableStreamDefaultWriter<BufferSource>
  private readonly taken: Promise<void>

  constructor(format: CompressionFormat) {
    const { readable, writable } = new DecompressionStream(format)
    this.writer = writable.getWriter()
    this.writer.closed.catch(() => {}) // writing fails with the same
    this.taken = this.take(readable)
  }

  /** What has come out by the time that the piece is in. */
  push(piece: BufferSource): Promise<Made> {
    return this.made(this.writer.write(piece))
  }

  /** What is left at the end. */
  end(): Promise<Made> {
    return this.made(this.close().then(() => this.taken))
  }

  /** Pieces byte by byte, up to one that is damaged; then the end. Returns what comes out after the first `from` bytes. */
  async pushBytes(pieces: readonly Uint8Array[], from: number): Promise<readonly Uint8Array[]> {
    this.from = from
    this.plain = []
    try {
      for (const piece of pieces) for (const byte of piece) await this.writer.write(Uint8Array.of(byte))
      await this.close()
    } catch {
      // what came out before is in `plain`
    }
    await this.taken
    return this.plain
  }

  stop(): void {
    this.writer.abort().catch(() => {})
  }

  /** Where the input ends too early, Node's decompressor drops what the last piece contains: that one is empty. */
  private async close(): Promise<void> {
    await this.writer.write(NO_BYTES)
    await this.writer.close()
  }

  private async made(done: Promise<void>): Promise<Made> {
    try {
      await done
      return { plain: this.plain.splice(0) }
    } catch (error) {
      return { plain: this.plain.splice(0), broken: String((error as Partial<Error>)?.message ?? error) }
    }
  }

  private async take(readable: ReadableStream<Uint8Array>): Promise<void> {
    try {
      for await (const piece of readWebStream(readable)) {
        this.bytes += piece.length
        const kept = Math.min(piece.length, this.bytes - this.from)
        if (kept > 0) this.plain.push(piece.subarray(piece.length - kept))
      }
    } catch {
      // writing fails with the same
    }
  }
}
