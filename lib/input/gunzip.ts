import { joined } from '../bytes/joined.ts'
import { through } from '../bytes/web-stream.ts'
import { Replay } from './replay.ts'

/** Called with what went wrong when a compressed input ends or breaks early, after so many decompressed bytes. */
export type OnBroken = (detail: string, bytes: number) => void

/**
 * Passes chunks on, decompressed where the input starts with gzip's magic bytes. A broken or cut gzip stream ends
 * where it broke, after (nearly) everything before that was passed on, and `onBroken` is told. Errors of the source
 * itself are thrown.
 */
export async function* gunzip(source: AsyncIterable<Uint8Array>, onBroken: OnBroken): AsyncGenerator<Uint8Array> {
  const { head, rest } = await peek(source, 2)
  if (isGzip(head)) yield* inflate(rest, onBroken)
  else yield* rest
}

/** Does an input that begins like this claim to be compressed by gzip? */
export function isGzip(head: Uint8Array): boolean {
  return head[0] === 0x1f && head[1] === 0x8b
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
  const told = (error: unknown) => onBroken(error instanceof Error ? error.message : String(error), bytes)
  for await (const chunk of through(source, new DecompressionStream('gzip'), told)) {
    bytes += chunk.length
    yield chunk
  }
}
