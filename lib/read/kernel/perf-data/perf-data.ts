// perf.data: the output of `perf record`, little-endian. The end of a file contains what is needed to read its records:
//
//     0  "PERFILE2"   8  u64 size of this header: 104 (a pipe: 16, and the rest follows as records)
//    16  u64 size of an event's description   24  u64 place, u64 size of these (perf_event_attr + place of its ids)
//    40  place of the records   56  –   72  256 bits: features, whose places are after the records
//
//     records: u32 type, u16 misc, u16 size, … : samples of tracepoints, names, forks, exits, switches
//     feature 1 contains the formats of the tracepoints, 29 (CLOCK_DATA) the same time on two clocks
//
// Records are in rounds, by CPU; the reader sorts them by time.

import { FormatError } from '../../../errors.ts'
import { ByteRanges } from '../../../input/byte-ranges.ts'
import type { Format } from '../../format.ts'
import { PerfEvents } from './events.ts'
import { noFacts, PIPE_HEAD_BYTES, readPerfHead } from './head.ts'
import { perfettoOfPerfData } from './perfetto.ts'
import { PerfRecords } from './records.ts'

/** The magic in both byte orders. */
const MAGICS = ['PERFILE2', '2ELIFREP'].map((text) => new TextEncoder().encode(text))

export const perfData: Format = {
  name: 'perf-data',
  title: "perf record's perf.data, or its pipe: scheduler tracepoints, context switches, threads",

  perfetto: perfettoOfPerfData,
  sniff: (head) => MAGICS.some((magic) => magic.every((byte, i) => head[i] === byte)),

  async *read(source, { names, range }) {
    const ranges = new ByteRanges(source, range, (byte) => {
      const found = 'a stream, or a compressed file, too long to be kept in memory'
      const hint = 'decompress it and give the file itself, or pipe the output of `perf record -o -`'
      return new FormatError(perfData.name, { byte }, 'a file that can be read at any place', found, hint)
    })
    const facts = noFacts()
    const data = await readPerfHead(ranges, perfData.name, facts)
    const events = new PerfEvents(perfData.name, names, facts)
    const place = data ?? { offset: PIPE_HEAD_BYTES, bytes: Infinity }
    yield* new PerfRecords(ranges, place, perfData.name, facts, events).read()
  },
}
