import { through } from '../bytes/web-stream.ts'

/**
 * Compresses a trace: `gzip(convert(…))`. Perfetto's UI and trace_processor read it. Returns what `pieces` returns and throws what
 * it throws. Level 6, by the platform's CompressionStream, which is zlib in Node.
 */
export function gzip<R>(pieces: AsyncGenerator<Uint8Array, R>): AsyncGenerator<Uint8Array, R> {
  return through(pieces, new CompressionStream('gzip'))
}
