import { viewOf } from '../../../input/field-reader.ts'
import type { Format } from '../../format.ts'

/** The magic in both byte orders. */
const MAGICS = ['PERFILE2', '2ELIFREP'].map((text) => new TextEncoder().encode(text))

export const perfData: Format = {
  name: 'perf-data',
  title: "perf record's perf.data, or its pipe: scheduler tracepoints, context switches, threads",

  // On the clock that the file names; Perfetto supports perf's default clock, too.
  perfetto: {
    refusal,
    showsSwitches: false,
    clockOf({ clock, clockSource = 'perf' }) {
      if (clock !== 'unknown' && clock !== 'none') return clock
      return clockSource === 'perf' ? 'PERF' : undefined
    },
  },
  sniff: (head) => MAGICS.some((magic) => magic.every((byte, i) => head[i] === byte)),

  async *read(source, context) {
    yield* (await import('./file-reader.ts')).readRecording(source, context)
  },
}

/** Size of a file's header. */
const FILE_HEAD_BYTES = 104
/** Place of the features' bits, and the bit for compressed records. */
const FEATURES_AT = 72
const COMPRESSED = 27

/** Why Perfetto's reader does not read a file. */
function refusal(head: Uint8Array): string | undefined {
  const view = viewOf(head)
  const headBytes = head.length < 16 ? 0 : view.getUint32(8, true)
  if (headBytes === FILE_HEAD_BYTES && head.length < headBytes) {
    return `expected ${headBytes} bytes of a head, found the end of the file after ${head.length}\nhint: give the whole file`
  }
  if (headBytes !== FILE_HEAD_BYTES) {
    return 'Perfetto does not read what `perf record -o -` writes\nhint: record to a file: perf record -o perf.data'
  }
  if ((view.getUint32(FEATURES_AT, true) & (1 << COMPRESSED)) === 0) return undefined
  return 'Perfetto does not read compressed records\nhint: record without -z, or: perf inject -i <it> -o plain.data'
}
