import { joined } from '../bytes/joined.ts'
import { through } from '../bytes/web-stream.ts'
import { Replay } from './replay.ts'

/** Called with the error where a compressed input is cut or damaged, after so many decompressed bytes. */
export type OnBroken = (detail: string, bytes: number) => void

/**
 * Returns the chunks of an input, decompressed where it starts with gzip's magic bytes. A damaged or cut gzip stream ends
 * there, after (nearly) all bytes before the damage, and `onBroken` is called. Errors of the source itself are thrown.
 */
export async function* gunzip(source: AsyncIterable<Uint8Array>, onBroken: OnBroken): AsyncGenerator<Uint8Array> {
  const { head, rest } = await peek(source, GZIP_BYTES)
  if (isGzip(head)) yield* inflate(rest, onBroken)
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

async function* inflate(source: Replay<Uint8Array>, onBroken: OnBroken): AsyncGenerator<Uint8Array> {
  let bytes = 0
  const report = (error: unknown) => onBroken(error instanceof Error ? error.message : String(error), bytes)
  for await (const chunk of through(source, new DecompressionStream('gzip'), report)) {
    bytes += chunk.length
    yield chunk
  }
}
