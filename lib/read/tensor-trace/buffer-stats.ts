// buffer_stats.jsonl of the TensorTrace logger: a JSON object per line, with the records' clock, in ms.
//
//     {"timestamp_ms":600604855.454,"event":"alloc","buffer_id":98645139604320,"buffer_ptr":…,"size":3221225472,
//      "name":"KVCache_CPU","backend":"CPU","usage":2,"layer":65535}
//     {"timestamp_ms":600605498.424,"event":"dealloc","buffer_id":98645139604320}
//
// usage is ggml's: 0 any, 1 weights, 2 compute. The logger does not escape names.

import { FormatError, isFormatError } from '../../errors.ts'
import { parseJson, textOf } from '../../input/json.ts'
import { LineCursor } from '../../input/line-cursor.ts'
import type { TraceEvent } from '../../model/events.ts'
import { issueOf } from '../../model/issues.ts'
import { containing } from '../common/holdings.ts'
import { LineReader } from '../common/line-reader.ts'
import type { Format, ReadContext } from '../format.ts'
import { BufferLog, stampOf } from './buffers.ts'

/** Reading stops after so many bad lines without a good one. */
const EARLY_ISSUES_MAX = 1000

export const bufferStats: Format = {
  name: 'buffer-stats',
  title: 'buffer_stats.jsonl of the TensorTrace logger: backend buffers allocated and freed',
  isCompanion: true,

  sniff(head) {
    const [line = ''] = decoder.decode(head).trimStart().split('\n')
    return line.startsWith('{') && /"event"\s*:\s*"(?:de)?alloc"/.test(line) && !/"(?:buffers|timeline)"/.test(line)
  },

  read: (source, context) => new StatsReader(new LineCursor(source, bufferStats.name), context).batches(),
}

const decoder = new TextDecoder()

/** Converts lines to events. */
class StatsReader extends LineReader {
  private readonly buffers: BufferLog
  private originNs: bigint | undefined
  private lastNs = 0

  constructor(lines: LineCursor, { names }: ReadContext) {
    super(lines)
    this.buffers = new BufferLog(names)
  }

  protected override finish(): void {
    if (!this.batch.hasBegun) this.begin(0n)
    this.batch.add({ kind: 'facts', ...containing(this.buffers.about) })
  }

  protected override readLine({ bytes, start, end, offset: byte, line }: LineCursor): void {
    const { batch } = this
    const at = { byte, line }
    const text = decoder.decode(bytes.subarray(start, end))
    if (text.trim() === '') return
    const events = this.parse(text, at)
    if (typeof events === 'string') batch.add(issueOf('companion-entry', events, at, this.lastNs))
    else for (const event of events) batch.add(event)
    if (!batch.hasBegun && batch.size > EARLY_ISSUES_MAX) {
      throw new FormatError(bufferStats.name, at, 'a line that describes a buffer', `none in ${line} lines`)
    }
  }

  private parse(text: string, at: { readonly byte: number; readonly line: number }): TraceEvent[] | string {
    try {
      const object = parseJson(escapeNames(text), bufferStats.name, at)
      const stamp = stampOf(object['timestamp_ms'])
      if (stamp === undefined) return 'expected timestamp_ms'
      if (this.originNs === undefined) this.begin(stamp)
      this.lastNs = Number(stamp - this.originNs!)
      const event = textOf(object, 'event')
      if (event === 'alloc') return this.buffers.allocate(object, 'buffer_id', this.lastNs)
      if (event === 'dealloc') return this.buffers.free(object, 'buffer_id', this.lastNs)
      return `expected the event "alloc" or "dealloc", found ${JSON.stringify(event.slice(0, 20))}`
    } catch (error) {
      if (!isFormatError(error)) throw error
      return `byte ${error.at.byte}: expected ${error.expected}, found ${error.found}`
    }
  }

  private begin(originNs: bigint): void {
    this.originNs = originNs
    this.batch.begin({ kind: 'input', format: bufferStats.name, clock: 'MONOTONIC', originNs, attributes: {} })
  }
}

const NAME = '"name":"'

/** Escapes quotes and backslashes of a name, which is between two fields that the logger always writes. */
function escapeNames(line: string): string {
  const end = line.lastIndexOf('","backend":')
  const before = end < 0 ? -1 : line.lastIndexOf(NAME, end - NAME.length)
  if (before < 0) return line
  const start = before + NAME.length
  return line.slice(0, start) + line.slice(start, end).replace(/["\\]/g, '\\$&') + line.slice(end)
}
