import { through } from '../bytes/web-stream.ts'

/**
 * Compresses a trace: `gzip(convert(…))`. Perfetto's UI and trace_processor read it. Returns what `pieces` returns and throws what
 * it throws. Level 6, by the platform's CompressionStream, which is zlib in Node.
 */
export function gzip<R>(pieces: AsyncGenerator<Uint8Array, R>): AsyncGenerator<Uint8Array, R> {
  return through(pieces, new CompressionStream('gzip'))
}

/** Compresses some bytes as a whole, by the platform's CompressionStream (level 6). */
export async function gzipBytes(bytes: Uint8Array): Promise<Uint8Array> {
  const body = new Response(bytes as Uint8Array<ArrayBuffer>).body!
  return new Uint8Array(await new Response(body.pipeThrough(new CompressionStream('gzip'))).arrayBuffer())
}
