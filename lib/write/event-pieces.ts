import { DebugAnnotation, TracePacket, TrackEvent, TrackEventType } from '../generated/perfetto.ts'
import { Piece } from './byte-writer.ts'
import { encodeVarint, ProtoWriter } from './proto-writer.ts'

const VARINT_BYTES_MAX = 10
/** Tag and length of an event are a byte each up to here. */
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

/** An argument that is an integer: its tags stand at 0, 2 and 4; to be put in are its length, its name's id, its value. */
const INT_ARG = encoded((out) => {
  const annotation = out.begin(TrackEvent.debug_annotations)
  out.varint(DebugAnnotation.name_iid, 1)
  out.varint(DebugAnnotation.int_value, 0)
  out.end(annotation)
})
const ARG_BYTES_MAX = 4 + 2 * VARINT_BYTES_MAX

/** The two kinds of events that are mostly known beforehand. What is returned holds until the next call. */
export class ScratchEvents {
  private readonly ofSample = new Piece(SAMPLE, SAMPLE.length, SAMPLE.length + VARINT_BYTES_MAX)
  private readonly ofSlice = new Piece(new Uint8Array(), 0, EVENT_BYTES_MAX)

  /** A counter's sample: an integer from 0 to 2^53 - 1. */
  sample(value: number): Piece {
    const { ofSample } = this
    ofSample.length = encodeVarint(ofSample.bytes, SAMPLE.length, value)
    ofSample.bytes[1] = ofSample.length - 2
    return ofSample
  }

  /**
   * An event, and an integer from 0 to 2^53 - 1 as its last argument, called by the id of an interned name; undefined where
   * that may be too long.
   */
  withInt(event: Piece, name: number, value: number): Piece | undefined {
    if (event.length > EVENT_BYTES_MAX - ARG_BYTES_MAX) return undefined
    const { ofSlice } = this
    const { bytes, words } = ofSlice
    const count = (event.length + 3) >> 2
    for (let i = 0; i < count; i++) words[i] = event.words[i]!
    const start = event.length
    bytes[start] = INT_ARG[0]!
    bytes[start + 2] = INT_ARG[2]!
    let end = encodeVarint(bytes, start + 3, name)
    bytes[end] = INT_ARG[4]!
    end = encodeVarint(bytes, end + 1, value)
    bytes[start + 1] = end - start - 2
    bytes[1] = end - 2
    ofSlice.length = end
    return ofSlice
  }
}
