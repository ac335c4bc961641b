import type { Format } from '../../format.ts'

const MAGIC = [0x17, 0x08, 0x44, ...new TextEncoder().encode('tracing')]

export const traceDat: Format = {
  name: 'trace-dat',
  title: "trace-cmd's trace.dat, versions 6 and 7: scheduler events of all threads",

  sniff: (head) => MAGIC.every((byte, i) => head[i] === byte),

  async *read(source, context) {
    yield* (await import('./file-reader.ts')).readRecording(source, context)
  },
}
