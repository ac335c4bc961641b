import type { PerfettoReading } from '../../format.ts'

/** Perfetto's reader of perf.data: it uses the clock that the file names, and supports perf's default clock. */
export const perfettoOfPerfData: PerfettoReading = {
  refusal,
  showsSwitches: false,
  clockOf({ clock, clockSource = 'perf' }) {
    if (clock !== 'unknown' && clock !== 'none') return clock
    return clockSource === 'perf' ? 'PERF' : undefined
  },
}

const FILE_HEAD_BYTES = 104
/** Place of the features' bits, and the bit for compressed records. */
const FEATURES_AT = 72
const COMPRESSED = 27

function refusal(head: Uint8Array): string | undefined {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength)
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
