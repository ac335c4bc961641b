import { through } from '../bytes/web-stream.ts'

/**
 * Compresses a trace on its way: `gzip(convert(…))`. Perfetto's UI and trace_processor read it as it is. Returns what
 * `pieces` returns and throws what it throws. Level 6, by the platform's own CompressionStream, which in Node is zlib.
 */
export function gzip<R>(pieces: AsyncGenerator<Uint8Array, R>): AsyncGenerator<Uint8Array, R> {
  return through(pieces, new CompressionStream('gzip'))
}
