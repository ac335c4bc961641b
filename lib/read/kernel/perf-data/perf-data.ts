// perf.data: what `perf record` writes, little-endian. A file has at its end what is needed to read its start:
//
//     0  "PERFILE2"   8  u64 size of this head: 104 (a pipe: 16, and records follow that tell the rest)
//    16  u64 size of an event's description   24  where these are (u64 place, u64 size: perf_event_attr + its ids)
//    40  where the records are   56  –   72  256 bits: features, whose places are told behind the records
//
//     records: u32 type, u16 misc, u16 size, … : samples of tracepoints, names, forks, exits, switches
//     feature 1 holds the formats of the tracepoints, 29 (CLOCK_DATA) the same instant on two clocks
//
// Records come by CPU, in rounds; they are put in order of their times.

import { FormatError } from '../../../errors.ts'
import { ByteRanges } from '../../../input/byte-ranges.ts'
import type { Format } from '../../format.ts'
import { PerfEvents } from './events.ts'
import { noFacts, PIPE_HEAD_BYTES, readPerfHead } from './head.ts'
import { perfettoOfPerfData } from './perfetto.ts'
import { PerfRecords } from './records.ts'

/** Of the two byte orders. */
const MAGICS = ['PERFILE2', '2ELIFREP'].map((text) => new TextEncoder().encode(text))

export const perfData: Format = {
  name: 'perf-data',
  title: "perf record's perf.data, or its pipe: scheduler tracepoints, context switches, threads",

  perfetto: perfettoOfPerfData,
  sniff: (head) => MAGICS.some((magic) => magic.every((byte, i) => head[i] === byte)),

  async *read(source, { names, range }) {
    const ranges = new ByteRanges(source, range, (byte) => {
      const found = 'a stream, or a compressed file, too long to be held'
      const hint = 'decompress it and give the file itself, or pipe what `perf record -o -` writes'
      return new FormatError(perfData.name, { byte }, 'a file to which one can go back', found, hint)
    })
    const facts = noFacts()
    const data = await readPerfHead(ranges, perfData.name, facts)
    const events = new PerfEvents(perfData.name, names, facts)
    const place = data ?? { offset: PIPE_HEAD_BYTES, bytes: Infinity }
    yield* new PerfRecords(ranges, place, perfData.name, facts, events).read()
  },
}
