import { resized } from '../../bytes/resized.ts'
import { DebugAnnotation, Trace, TracePacket, TrackEvent, TrackEventType } from '../../generated/perfetto.ts'
import { Piece } from '../byte-writer.ts'
import { writeLaunch } from './gpu-stages.ts'
import { encodeVarint, ProtoWriter, tagOf, VARINT_BYTES_MAX } from './proto-writer.ts'

/** Of a packet without its encoded pieces: tags, lengths, a time, a value; the last two words of a piece may extend beyond it. */
const PACKET_BYTES_MAX = 4 + 2 * 5 + 2 * VARINT_BYTES_MAX + 7
/** The length of nearly all packets is one byte. */
const LENGTH_1_MAX = 0x7f

/** Bytes after the time of a packet whose length is one byte for certain: a time and its tag take at most eleven. */
const SHORT_REST_MAX = LENGTH_1_MAX - 1 - VARINT_BYTES_MAX

const PACKET = tagOf(Trace.packet, 'message')
const TIMESTAMP = tagOf(TracePacket.timestamp, 'varint')
const EVENT = tagOf(TracePacket.track_event, 'message')

function encoded(write: (out: ProtoWriter) => void): Uint8Array {
  const out = new ProtoWriter()
  write(out)
  return out.take()
}

const wordOf = (bytes: Uint8Array) => new DataView(Uint8Array.of(...bytes, 0).buffer).getInt32(0, true)

/** The event that ends a slice. */
const END = encoded((out) => {
  const event = out.begin(TracePacket.track_event)
  out.varint(TrackEvent.type, TrackEventType.TYPE_SLICE_END)
  out.end(event)
})
/** The fields of a counter's sample, up to its value: four bytes. */
const SAMPLE = wordOf(
  encoded((out) => {
    out.varint(TrackEvent.type, TrackEventType.TYPE_COUNTER)
    out.varint(TrackEvent.counter_value, 0)
  }).slice(0, -1),
)

/** The first part of a time from 0, see {@link PacketWriter}. V8 knows the values of literals only. */
export const highOf = (ts: number): number => (ts / 0x10000000) | 0
/** The second part. */
export const lowOf = (ts: number): number => ts & 0xfffffff

/** What names a sequence in its packets. */
export class SequenceName {
  readonly piece: Piece
  /** With the tag of an event after it. */
  readonly beforeEvent: Piece
  /** With the event that ends a slice after it. */
  readonly end: Piece

  /** `name`: the field with its id, encoded. */
  constructor(name: Uint8Array) {
    this.piece = new Piece(name)
    this.beforeEvent = new Piece(Uint8Array.of(...name, EVENT))
    this.end = new Piece(Uint8Array.of(...name, ...END))
  }
}

/** Some 60 000 labels of sequences; others are written in another way. */
const BEGINS_BYTES_MAX = 1 << 22

/**
 * What follows the time in packets that begin slices: by sequence and label, in one buffer, as slices need them in any order. Each is
 * after its length, and begins at a multiple of four.
 */
export class Begins {
  private bytes = new Uint8Array(1 << 12)
  view = new DataView(this.bytes.buffer)
  private end = 4

  /** Adds one with the fields of a label; returns its place, or 0 if it is too long for {@link PacketWriter.slice}, or there is no room. */
  add({ beforeEvent }: SequenceName, fields: Piece): number {
    const length = beforeEvent.length + 1 + fields.length
    if (length > SHORT_REST_MAX || this.end > BEGINS_BYTES_MAX) return 0
    const place = this.end
    this.end += (4 + length + 3) & ~3
    if (this.end + 4 > this.bytes.length) {
      this.bytes = resized(this.bytes, 2 * this.bytes.length)
      this.view = new DataView(this.bytes.buffer)
    }
    this.view.setInt32(place, length, true)
    this.bytes.set(beforeEvent.bytes.subarray(0, beforeEvent.length), place + 4)
    this.bytes[place + 4 + beforeEvent.length] = fields.length
    this.bytes.set(fields.bytes.subarray(0, fields.length), place + 4 + beforeEvent.length + 1)
    return place
  }
}

/**
 * Writes the packets of events, which nearly all of a trace consists of, from encoded pieces.
 *
 * A time is in two parts: its bits from 28 on, and its low 28 bits, four whole groups of a varint. Both are small integers, which V8
 * passes to functions as they are; for each larger number, it allocates an object.
 */
export class PacketWriter extends ProtoWriter {
  /** A packet with an event: its time, its sequence, the fields of its label, arguments of its own. */
  event(high: number, low: number, { beforeEvent }: SequenceName, fields: Piece, args: Piece): void {
    const size = fields.length + args.length
    this.reserve(PACKET_BYTES_MAX + beforeEvent.length + size)
    const { bytes, view, position: start } = this
    bytes[start] = PACKET
    bytes[start + 2] = TIMESTAMP
    let at = this.put(putTime(bytes, view, start + 3, high, low), beforeEvent)
    if (size <= LENGTH_1_MAX) bytes[at++] = size
    else at = encodeVarint(bytes, at, size)
    at = this.put(at, fields)
    if (args.length > 0) at = this.put(at, args)
    this.position = at
    this.end(start + 1)
  }

  /**
   * The packets of a whole slice, as by {@link event} and {@link sliceEnd}; false if the first one may be too long, and nothing is written.
   * `begins` has at `place` what follows its time. Times as in {@link event}.
   */
  slice(
    high: number,
    low: number,
    endHigh: number,
    endLow: number,
    name: SequenceName,
    { view: from }: Begins,
    place: number,
    args: Piece,
  ): boolean {
    const length = from.getInt32(place, true)
    if (length + args.length > SHORT_REST_MAX) return false
    this.reserve(2 * PACKET_BYTES_MAX + SHORT_REST_MAX + name.end.length)
    const { bytes, view, position: start } = this
    bytes[start] = PACKET
    bytes[start + 2] = TIMESTAMP
    const rest = putTime(bytes, view, start + 3, high, low)
    for (let i = 0; i < length; i += 8) {
      view.setInt32(rest + i, from.getInt32(place + 4 + i, true), true)
      view.setInt32(rest + i + 4, from.getInt32(place + 8 + i, true), true)
    }
    let at = rest + length
    if (args.length > 0) {
      at = this.put(at, args)
      bytes[rest + name.beforeEvent.length]! += args.length
    }
    bytes[start + 1] = at - start - 2
    bytes[at] = PACKET
    bytes[at + 2] = TIMESTAMP
    const end = this.put(putTime(bytes, view, at + 3, endHigh, endLow), name.end)
    bytes[at + 1] = end - at - 2
    this.position = end
    return true
  }

  /** A packet with the end of a slice. */
  sliceEnd(high: number, low: number, { end }: SequenceName): void {
    this.reserve(PACKET_BYTES_MAX + end.length)
    const { bytes, view, position: start } = this
    bytes[start] = PACKET
    bytes[start + 2] = TIMESTAMP
    const at = this.put(putTime(bytes, view, start + 3, high, low), end)
    bytes[start + 1] = at - start - 2
    this.position = at
  }

  /** A packet with a counter's sample; its value is an integer from 0 to 2^53 - 1. */
  sample(high: number, low: number, { beforeEvent }: SequenceName, value: number): void {
    this.reserve(PACKET_BYTES_MAX + beforeEvent.length)
    const { bytes, view, position: start } = this
    bytes[start] = PACKET
    bytes[start + 2] = TIMESTAMP
    const at = this.put(putTime(bytes, view, start + 3, high, low), beforeEvent)
    view.setInt32(at + 1, SAMPLE, true)
    const end = encodeVarint(bytes, at + 5, value)
    bytes[at] = end - at - 1
    bytes[start + 1] = end - start - 2
    this.position = end
  }
}

/** Writes a time as a varint. Returns the end. */
function putTime(bytes: Uint8Array, view: DataView, at: number, high: number, low: number): number {
  if (high === 0) return encodeVarint(bytes, at, low)
  const groups = (low & 0x7f) | ((low & 0x3f80) << 1) | ((low & 0x1fc000) << 2) | ((low & 0xfe00000) << 3)
  view.setInt32(at, groups | 0x80808080, true)
  if (high > 0x3fff) return encodeVarint(bytes, at + 4, high)
  // One or two bytes, up to 73 minutes. No branch is new to V8 after 34 seconds, which would compile all callers again.
  const more = high > 0x7f ? 1 : 0
  bytes[at + 4] = high | (more << 7)
  bytes[at + 5] = high >> 7
  return at + 5 + more
}

/** Template of an argument with its tags at 0, 2 and from 4; its length, its name's id and its value are added. */
const argOf = (write: (out: ProtoWriter) => void, valueBytes: number) =>
  encoded((out) => {
    const annotation = out.begin(TrackEvent.debug_annotations)
    out.varint(DebugAnnotation.name_iid, 1)
    write(out)
    out.end(annotation)
  }).slice(0, -valueBytes)
const INT_ARG = argOf((out) => out.varint(DebugAnnotation.int_value, 0), 1)
const TEXT_ARG = argOf((out) => out.varint(DebugAnnotation.string_value_iid, 0), 1)
const POINTER_ARG = argOf((out) => out.varint(DebugAnnotation.pointer_value, 0), 1)
const DOUBLE_ARG = argOf((out) => out.double(DebugAnnotation.double_value, 0), 8)
/** Of a field or an argument. */
const FIELD_BYTES_MAX = 5 + 2 * VARINT_BYTES_MAX
/** Room for a label and a few arguments. */
const SCRATCH_BYTES = 256

/** Reference to the launched work, up to the work's id: the last byte but one is the length of the rest. */
const LAUNCH = encoded((out) => writeLaunch(out, 0)).slice(0, -1)
const LAUNCH_LENGTH = LAUNCH.length - 2

const encoder = new TextEncoder()

/** Encodes fields of an event in memory of its own, the most frequent kinds of arguments from templates. Its methods return false if there may be no room. */
export class ScratchFields {
  /** The fields since {@link clear}. */
  readonly piece = new Piece(new Uint8Array(), 0, SCRATCH_BYTES)
  /** An integer argument alone: what is before its value remains for the next one of the same name. */
  private readonly single = new Piece(new Uint8Array(), 0, FIELD_BYTES_MAX)
  private singleName = -1
  private singleValueAt = 0

  clear(): void {
    this.piece.length = 0
  }

  /** Adds a field of an integer from 0 to 2^53 - 1. */
  addField(field: number, value: number): boolean {
    const { bytes, length } = this.piece
    if (length > SCRATCH_BYTES - FIELD_BYTES_MAX) return false
    this.piece.length = encodeVarint(bytes, encodeVarint(bytes, length, tagOf(field, 'varint')), value)
    return true
  }

  /** Adds a field of a text. */
  addString(field: number, text: string): boolean {
    const { bytes, length } = this.piece
    const from = length + FIELD_BYTES_MAX
    if (from + 3 * text.length > SCRATCH_BYTES) return false
    const { written } = encoder.encodeInto(text, bytes.subarray(from))
    const at = encodeVarint(bytes, encodeVarint(bytes, length, tagOf(field, 'message')), written)
    bytes.copyWithin(at, from, from + written)
    this.piece.length = at + written
    return true
  }

  /** Adds an integer from 0 to 2^53 - 1. `name`: id of its interned name. */
  addInt(name: number, value: number): boolean {
    return this.add(INT_ARG, name, value)
  }

  /** The fields that {@link addInt} would add alone, until the next call. */
  singleInt(name: number, value: number): Piece {
    const { single } = this
    const { bytes } = single
    if (name !== this.singleName) {
      this.singleValueAt = beginArg(bytes, 0, INT_ARG, name)
      this.singleName = name
    }
    const end = encodeVarint(bytes, this.singleValueAt, value)
    bytes[1] = end - 2
    single.length = end
    return single
  }

  /** Adds an interned text. */
  addText(name: number, text: number): boolean {
    return this.add(TEXT_ARG, name, text)
  }

  /** Adds an address, as {@link addInt}. */
  addPointer(name: number, address: number): boolean {
    return this.add(POINTER_ARG, name, address)
  }

  addDouble(name: number, value: number): boolean {
    const start = this.piece.length
    const at = this.beginArg(DOUBLE_ARG, name)
    if (at === 0) return false
    this.piece.view.setFloat64(at, value, true)
    this.endArg(start, at + 8)
    return true
  }

  /** Adds the id of GPU work that the slice launched. */
  addLaunch(work: number): boolean {
    const { bytes, length: start } = this.piece
    if (start > SCRATCH_BYTES - FIELD_BYTES_MAX) return false
    for (let i = 0; i < LAUNCH.length; i++) bytes[start + i] = LAUNCH[i]!
    const end = encodeVarint(bytes, start + LAUNCH.length, work)
    bytes[start + LAUNCH_LENGTH] = end - start - LAUNCH_LENGTH - 1
    this.piece.length = end
    return true
  }

  private add(arg: Uint8Array, name: number, value: number): boolean {
    const start = this.piece.length
    const at = this.beginArg(arg, name)
    if (at === 0) return false
    this.endArg(start, encodeVarint(this.piece.bytes, at, value))
    return true
  }

  /** Returns where the value of the argument begins; 0 if there may be no room. */
  private beginArg(arg: Uint8Array, name: number): number {
    const { bytes, length: start } = this.piece
    return start > SCRATCH_BYTES - FIELD_BYTES_MAX ? 0 : beginArg(bytes, start, arg, name)
  }

  private endArg(start: number, end: number): void {
    this.piece.bytes[start + 1] = end - start - 2
    this.piece.length = end
  }
}

/** Writes what is before the value of an argument. Returns its end. */
function beginArg(bytes: Uint8Array, start: number, arg: Uint8Array, name: number): number {
  bytes[start] = arg[0]!
  bytes[start + 2] = arg[2]!
  let at = encodeVarint(bytes, start + 3, name)
  for (let i = 4; i < arg.length; i++) bytes[at++] = arg[i]!
  return at
}
