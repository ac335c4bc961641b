// trace.dat: trace-cmd's file, versions 6 and 7, little-endian: 17 08 44 "tracing" "6\0", byte order, size of a long,
// u32 page size, then
//
//   6  header_page, header_event, event formats, kernel symbols, thread names, options, a table of the CPUs' pages and
//      the clock, one after the other; then the pages
//   7  compression, place of the options, which tell where all other sections are; the pages may be compressed
//
// The pages are those of the kernel's ring buffer, all of one CPU, then all of the next: events of one CPU are in order of
// time, those of different CPUs are not; nor is an event of a thread behind all that happened to it before on other CPUs.

import { FormatError } from '../../../errors.ts'
import { ByteRanges } from '../../../input/byte-ranges.ts'
import type { Format } from '../../format.ts'
import { TraceDatEvents } from './events.ts'
import { readHead } from './head.ts'

const MAGIC = [0x17, 0x08, 0x44, ...new TextEncoder().encode('tracing')]

export const traceDat: Format = {
  name: 'trace-dat',
  title: "trace-cmd's trace.dat, versions 6 and 7: scheduler events of all threads",

  sniff: (head) => MAGIC.every((byte, i) => head[i] === byte),

  async *read(source, { names, range }) {
    const ranges = new ByteRanges(source, range, (byte) => {
      const found = 'a stream, or a compressed file, too long to be held'
      const hint = 'decompress it and give the file itself, or record with `trace-cmd record --file-version 6`'
      return new FormatError(traceDat.name, { byte }, 'a file to which one can go back', found, hint)
    })
    const head = await readHead(ranges, traceDat.name)
    yield* new TraceDatEvents(traceDat.name, head, ranges, names).read()
  },
}
