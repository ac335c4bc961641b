import { DebugAnnotation, TracePacket, TrackEvent, TrackEventType } from '../../generated/perfetto.ts'
import { Piece } from '../byte-writer.ts'
import { writeLaunch } from './gpu-stages.ts'
import { encodeVarint, ProtoWriter } from './proto-writer.ts'

const VARINT_BYTES_MAX = 10
/** Size of an event up to which its tag and its length are one byte each. */
const EVENT_BYTES_MAX = 2 + 0x7f

function encoded(write: (out: ProtoWriter) => void): Uint8Array {
  const out = new ProtoWriter()
  write(out)
  return out.take()
}

/** The event that ends a slice. */
export const END = new Piece(
  encoded((out) => {
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, TrackEventType.TYPE_SLICE_END)
    out.end(event)
  }),
)

/** The event of a counter's sample, up to its value: the second byte is its length. */
const SAMPLE = encoded((out) => {
  out.begin(TracePacket.track_event)
  out.varint(TrackEvent.type, TrackEventType.TYPE_COUNTER)
  out.varint(TrackEvent.counter_value, 0)
}).slice(0, -1)

/** Template of an argument with its tags at 0, 2 and from 4; its length, its name's id and its value are added. */
const argOf = (field: number) =>
  encoded((out) => {
    const annotation = out.begin(TrackEvent.debug_annotations)
    out.varint(DebugAnnotation.name_iid, 1)
    out.varint(field, 0)
    out.end(annotation)
  }).slice(0, -1)
const INT_ARG = argOf(DebugAnnotation.int_value)
const TEXT_ARG = argOf(DebugAnnotation.string_value_iid)
const ARG_BYTES_MAX = 5 + 2 * VARINT_BYTES_MAX

/** Reference to the launched work, up to the work's id: the last byte but one is the length of the rest. */
const LAUNCH = encoded((out) => writeLaunch(out, 0)).slice(0, -1)
const LAUNCH_LENGTH = LAUNCH.length - 2

/** Encodes the two most frequent kinds of events from templates. A returned piece is valid until the next call. */
export class ScratchEvents {
  private readonly ofSample = new Piece(SAMPLE, SAMPLE.length, SAMPLE.length + VARINT_BYTES_MAX)
  private readonly ofSlice = new Piece(new Uint8Array(), 0, EVENT_BYTES_MAX)

  /** A counter's sample; its value is an integer from 0 to 2^53 - 1. */
  sample(value: number): Piece {
    const { ofSample } = this
    ofSample.length = encodeVarint(ofSample.bytes, SAMPLE.length, value)
    ofSample.bytes[1] = ofSample.length - 2
    return ofSample
  }

  /** Begins with an event, to which arguments are added; undefined if it is too long. */
  extend(event: Piece): Piece | undefined {
    if (event.length > EVENT_BYTES_MAX) return undefined
    const { ofSlice } = this
    for (let i = 0; i < event.length; i += 4) ofSlice.view.setInt32(i, event.view.getInt32(i, true), true)
    ofSlice.length = event.length
    return ofSlice
  }

  /** Adds an argument: an integer from 0 to 2^53 - 1. `name`: id of its interned name. Returns false if the event may be too long. */
  addInt(name: number, value: number): boolean {
    return this.add(INT_ARG, name, value)
  }

  /** Adds an argument: an interned text. */
  addText(name: number, text: number): boolean {
    return this.add(TEXT_ARG, name, text)
  }

  /** Adds the id of GPU work that the slice launched. */
  addLaunch(work: number): boolean {
    const { bytes, length: start } = this.ofSlice
    if (start > EVENT_BYTES_MAX - ARG_BYTES_MAX) return false
    for (let i = 0; i < LAUNCH.length; i++) bytes[start + i] = LAUNCH[i]!
    const end = encodeVarint(bytes, start + LAUNCH.length, work)
    bytes[start + LAUNCH_LENGTH] = end - start - LAUNCH_LENGTH - 1
    bytes[1] = end - 2
    this.ofSlice.length = end
    return true
  }

  private add(arg: Uint8Array, name: number, value: number): boolean {
    const { bytes, length: start } = this.ofSlice
    if (start > EVENT_BYTES_MAX - ARG_BYTES_MAX) return false
    bytes[start] = arg[0]!
    bytes[start + 2] = arg[2]!
    let end = encodeVarint(bytes, start + 3, name)
    for (let i = 4; i < arg.length; i++) bytes[end++] = arg[i]!
    end = encodeVarint(bytes, end, value)
    bytes[start + 1] = end - start - 2
    bytes[1] = end - 2
    this.ofSlice.length = end
    return true
  }
}
