import type { TraceProcessor } from './trace-processor.ts'

/** The first structural problem of a trace file. */
export interface WalkProblem {
  /**
   * `truncated`: the file ends within a packet; `garbage`: something else where a packet should start;
   * `oversize`: a packet of more than 256 MiB; `malformed`: a packet whose fields do not fill it exactly, or JSON whose
   * brackets do not match.
   */
  readonly kind: 'truncated' | 'garbage' | 'oversize' | 'malformed'
  /** Byte offset of the record (`truncated`, `oversize`), of the byte (`garbage`), of the field (`malformed`). */
  readonly offset: number
  /** Index of the packet or event, from 0. */
  readonly packet: number
  /** `truncated`: bytes the packet should have after its length, or undefined if the length itself is cut. */
  readonly expected: number | undefined
  /** `truncated`: how many of these bytes exist. */
  readonly found: number | undefined
  readonly message: string
}

/** The result of a walk through a trace. */
export interface WalkResult {
  /** Number of complete packets; for JSON, of events. */
  readonly packets: number
  /** Number of bytes walked: the whole file unless there is a problem. */
  readonly bytes: number
  readonly problem: WalkProblem | undefined
}

/** One problem of an imported trace. */
export interface Problem {
  /** Name of the counter in trace_processor's table `stats`, or `slice_without_end`, `slice_without_name`. */
  readonly name: string
  /** The counter's index (for example a CPU), if it has one. */
  readonly idx: number | null
  readonly severity: 'info' | 'notice' | 'data_loss' | 'error'
  /** How often it happened. */
  readonly value: number
  readonly description: string
}

/**
 * Walks the packets of a Perfetto trace (not compressed) given in chunks cut anywhere, to find what trace_processor
 * silently ignores, above all a truncated file. Stops at the first problem.
 * @throws only what `source` throws
 */
export function walkPackets(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<WalkResult> {
  return walk(source, new PacketWalker())
}

/** Walks a trace chunk by chunk, up to its first problem. */
export async function walk(
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  walker: { readonly problem: WalkProblem | undefined; push(chunk: Uint8Array): void; end(): WalkResult },
): Promise<WalkResult> {
  for await (const chunk of source) {
    walker.push(chunk)
    if (walker.problem) break
  }
  return walker.end()
}

const packetTag = 0x0a
const largestPacket = 256 << 20

class PacketWalker {
  problem: WalkProblem | undefined
  #packets = 0
  /** Offset of the next byte. */
  #offset = 0
  #recordStart = 0
  #payloadStart: number | undefined
  #packetEnd = 0
  #fieldStart = 0
  /** The meaning of the number that is being read; between two packets this is `packet`. */
  #expect: 'packet' | 'packet length' | 'field' | 'field value' | 'field length' = 'packet'
  #number = 0
  #scale = 1
  /** Bytes of a field's content still to skip. */
  #skip = 0

  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length && !this.problem; ) {
      if (this.#skip === 0) {
        this.#byte(chunk[at++]!)
        continue
      }
      const step = Math.min(this.#skip, chunk.length - at)
      at += step
      this.#offset += step
      this.#skip -= step
      if (this.#skip === 0) this.#next()
    }
  }

  end(): WalkResult {
    if (!this.problem && this.#expect !== 'packet') this.#truncated()
    return { packets: this.#packets, bytes: this.#offset, problem: this.problem }
  }

  /** Processes one byte of a number. */
  #byte(byte: number): void {
    if (this.#scale === 1) this.#begin()
    const inPacket = this.#expect !== 'packet' && this.#expect !== 'packet length'
    if (this.#expect === 'packet' && byte !== packetTag) {
      const what = `a packet should start here with 0x0a, but there is 0x${byte.toString(16).padStart(2, '0')}`
      this.#report('garbage', this.#offset, what)
    } else if (inPacket && this.#offset === this.#packetEnd) this.#overrun()
    else {
      this.#offset++
      this.#number += (byte & 127) * this.#scale
      this.#scale *= 128
      if (byte < 128) this.#complete()
      else if (this.#scale === 2 ** 70) this.#malformed('a number of more than ten bytes')
    }
  }

  /** Stores where a packet or a field starts. */
  #begin(): void {
    if (this.#expect === 'packet') {
      this.#recordStart = this.#offset
      this.#payloadStart = undefined
    }
    if (this.#expect === 'packet' || this.#expect === 'field') this.#fieldStart = this.#offset
  }

  #complete(): void {
    const number = this.#number
    this.#number = 0
    this.#scale = 1
    if (this.#expect === 'packet') this.#expect = 'packet length'
    else if (this.#expect === 'packet length') this.#open(number)
    else if (this.#expect === 'field') this.#field(number)
    else if (this.#expect === 'field length') this.#pass(number)
    else this.#next()
  }

  #open(length: number): void {
    if (length > largestPacket) {
      return this.#report('oversize', this.#recordStart, `the packet claims to have ${length} bytes`)
    }
    this.#payloadStart = this.#offset
    this.#packetEnd = this.#offset + length
    this.#next()
  }

  #field(tag: number): void {
    const wireType = tag % 8
    if (tag < 8 || tag >= 2 ** 32) this.#malformed(`a field of number ${Math.floor(tag / 8)}`)
    else if (wireType === 0) this.#expect = 'field value'
    else if (wireType === 1) this.#pass(8)
    else if (wireType === 2) this.#expect = 'field length'
    else if (wireType === 5) this.#pass(4)
    else this.#malformed(`a field of wire type ${wireType}`)
  }

  #pass(length: number): void {
    if (this.#offset + length > this.#packetEnd) this.#overrun()
    else if (length === 0) this.#next()
    else this.#skip = length
  }

  /** A field is complete, or a packet begins: expects the next field, or the next packet. */
  #next(): void {
    if (this.#offset < this.#packetEnd) {
      this.#expect = 'field'
    } else {
      this.#expect = 'packet'
      this.#packets++
    }
  }

  #truncated(): void {
    const start = this.#payloadStart
    const [expected, found] = start === undefined ? [undefined, 0] : [this.#packetEnd - start, this.#offset - start]
    const what = expected === undefined ? 'its length is cut' : `it should have ${expected} bytes and has ${found}`
    this.#report('truncated', this.#recordStart, `the file ends within a packet: ${what}`, expected, found)
  }

  #overrun(): void {
    this.#malformed('a field that goes beyond the end of its packet')
  }

  #malformed(what: string): void {
    this.#report('malformed', this.#fieldStart, `the packet has ${what}`)
  }

  #report(kind: WalkProblem['kind'], offset: number, what: string, expected?: number, found?: number): void {
    const message = `packet ${this.#packets}, byte ${offset}: ${what}`
    this.problem = { kind, offset, packet: this.#packets, expected, found, message }
  }
}

/** Counters of severity info or notice that mean a defect of our traces. */
const faults = [
  'interned_data_tokenizer_errors',
  'track_event_parser_errors',
  'track_event_tokenizer_errors',
  'track_hierarchy_missing_uuid',
  'tokenizer_skipped_packets',
  'packet_skipped_seq_needs_incremental_state_invalid',
  'interned_data_skipped_incremental_state_invalid',
  'flow_step_without_start',
  'flow_end_without_start',
  'compact_sched_switch_skipped',
  'compact_sched_waking_skipped',
]

// The first compact switch of each CPU is always skipped: it contains only what runs from then on.
const complaints = `
  SELECT name, idx, severity, value, description FROM stats
  WHERE value > 0
    AND (severity IN ('error', 'data_loss') OR name IN (${faults.map((name) => `'${name}'`).join(', ')}))
    AND NOT (name = 'compact_sched_switch_skipped' AND value <= (SELECT count(*) FROM cpu))
  ORDER BY name, idx`

const endless = `dur = -1 AND NOT EXISTS (
  SELECT 1 FROM args
  WHERE args.arg_set_id = slice.arg_set_id AND args.key IN ('debug.inferred', 'debug.open', 'args.inferred'))`

/**
 * The errors of trace_processor's import in the loaded trace, including counters that it classifies as mere
 * information; and slices without an end (unless marked by an argument `inferred` or `open`) or without a name.
 * @returns an empty array for a sound trace
 * @throws TraceProcessorError if trace_processor fails, is closed, or is still loading
 */
export function importProblems(tp: TraceProcessor): Problem[] {
  const stats = tp.query(complaints).rows.map(([name, idx, severity, value, description]) => {
    return { name, idx, severity, value, description } as Problem
  })
  const withoutEnd = sliceProblem(tp, 'slice_without_end', endless, 'never end and are not marked as open or inferred')
  const withoutName = sliceProblem(tp, 'slice_without_name', 'name IS NULL', 'have no name')
  return [...stats, ...withoutEnd, ...withoutName]
}

function sliceProblem(tp: TraceProcessor, name: string, condition: string, what: string): Problem[] {
  const [value, first] = tp.query(`SELECT count(*), min(ts) FROM slice WHERE ${condition}`).rows[0] as [number, number]
  if (value === 0) return []
  return [{ name, idx: null, severity: 'error', value, description: `slices that ${what}, the first at ${first} ns` }]
}
