import { through } from '../bytes/web-stream.ts'

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

/** The first `bytes` bytes of an input (fewer where it is shorter), and the whole input again. */
export async function peek(
  source: AsyncIterable<Uint8Array>,
  bytes: number,
): Promise<{ head: Uint8Array; rest: AsyncGenerator<Uint8Array> }> {
  const chunks = source[Symbol.asyncIterator]()
  const seen: Uint8Array[] = []
  let length = 0
  while (length < bytes) {
    const next = await chunks.next()
    if (next.done) break
    seen.push(next.value)
    length += next.value.length
  }
  const head = new Uint8Array(Math.min(bytes, length))
  let filled = 0
  for (const chunk of seen) {
    const part = chunk.subarray(0, head.length - filled)
    head.set(part, filled)
    filled += part.length
  }
  return { head, rest: again(seen, chunks) }
}

async function* again(seen: Uint8Array[], chunks: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* seen
    seen.length = 0
    for (;;) {
      const next = await chunks.next()
      if (next.done) return
      yield next.value
    }
  } finally {
    await chunks.return?.()
  }
}

async function* inflate(source: AsyncGenerator<Uint8Array>, onBroken: OnBroken): AsyncGenerator<Uint8Array> {
  let bytes = 0
  const told = (error: unknown) => onBroken(error instanceof Error ? error.message : String(error), bytes)
  for await (const chunk of through(source, new DecompressionStream('gzip'), told)) {
    bytes += chunk.length
    yield chunk
  }
}
