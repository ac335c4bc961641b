import { BLOCK_ALIGNMENT, MAGIC } from '../../log/ggtrace-layout.ts'
import type { Format } from '../format.ts'

export const ggtrace: Format = {
  name: 'ggtrace',
  title: "ggml2perfetto's own log, written by its recorder",

  sniff(head) {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength)
    let at = 0
    while (at + BLOCK_ALIGNMENT <= head.length && view.getBigUint64(at) === 0n) at += BLOCK_ALIGNMENT
    return at + 4 <= head.length && view.getUint32(at, true) === MAGIC
  },

  /** Programs load the reader, the largest of all, with their first log of this kind. */
  async *read(source, context) {
    yield* (await import('./log-reader.ts')).readLog(source, context)
  },
}
