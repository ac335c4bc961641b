import {
  BuiltinClock,
  Clock as ClockMessage,
  ClockSnapshot,
  CounterDescriptor,
  CounterDescriptorUnit,
  DebugAnnotation,
  EventName,
  InternedData,
  SequenceFlags,
  Trace,
  TraceAttribute,
  TraceAttributes,
  TracePacket,
  TracePacketDefaults,
  TrackDescriptor,
  TrackDescriptorChildTracksOrdering,
  TrackDescriptorSiblingMergeBehavior,
  TrackEvent,
  TrackEventDefaults,
  TrackEventType,
} from '../generated/perfetto.ts'
import type { Clock } from '../model/events.ts'
import type { Names } from '../model/names.ts'
import type { ArgSet, ExtraArg } from './args.ts'
import { IidSet, Iids } from './iids.ts'
import { ProtoWriter } from './proto-writer.ts'
import type { Label, Track, Writer } from './writer.ts'

/** The sequence's own incremental clock: every timestamp is the distance to the one before it. */
const DELTA_CLOCK = 64

const CLOCK_IDS: Readonly<Record<Clock, number>> = {
  MONOTONIC: BuiltinClock.BUILTIN_CLOCK_MONOTONIC,
  MONOTONIC_RAW: BuiltinClock.BUILTIN_CLOCK_MONOTONIC_RAW,
  BOOTTIME: BuiltinClock.BUILTIN_CLOCK_BOOTTIME,
  REALTIME: BuiltinClock.BUILTIN_CLOCK_REALTIME,
}

const UNITS = {
  bytes: CounterDescriptorUnit.UNIT_SIZE_BYTES,
  count: CounterDescriptorUnit.UNIT_COUNT,
  ns: CounterDescriptorUnit.UNIT_TIME_NS,
} as const

/** The packet sequence of one track: what the reader of the trace has been told on it so far. */
class Sequence {
  readonly names = new IidSet()
  readonly categories = new IidSet()
  readonly argNames = new IidSet()
  readonly argTexts = new IidSet()
  readonly argSets = new IidSet()

  constructor(
    readonly id: number,
    public lastNs: number,
  ) {}
}

/** A set of arguments as bytes, with the names that must be interned before it. */
interface EncodedArgs {
  readonly bytes: Uint8Array
  readonly args: readonly ExtraArg[]
}

/**
 * Writes Perfetto's protobuf (TrackEvent): one packet sequence per track with a default track, a delta clock and
 * interned names, which is the smallest encoding there is (about 25 bytes a slice).
 */
export class PerfettoWriter implements Writer {
  private readonly out = new ProtoWriter()
  private readonly scratch = new ProtoWriter()
  private readonly sequences: (Sequence | undefined)[] = []
  private readonly encodedArgs: (EncodedArgs | undefined)[] = []
  private readonly nameIids = new Iids()
  private readonly categoryIids = new Map<string, number>()
  private readonly argNameIids = new Iids()
  private readonly argTextIids = new Iids()
  private sequenceCount = 0
  private originNs = 0n
  private clockId: number = BuiltinClock.BUILTIN_CLOCK_MONOTONIC
  private hasOrigin = false

  constructor(private readonly names: Names) {}

  get size(): number {
    return this.out.size
  }

  take(): Uint8Array {
    return this.out.take()
  }

  origin(clock: Clock, originNs: bigint): void {
    this.originNs = originNs
    this.clockId = CLOCK_IDS[clock]
    if (!this.hasOrigin) this.clocks([{ clock, ns: originNs }])
  }

  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void {
    const packet = this.out.begin(Trace.packet)
    const snapshot = this.out.begin(TracePacket.clock_snapshot)
    for (const { clock, ns } of readings) this.clock(CLOCK_IDS[clock], ns, false)
    if (!this.hasOrigin) this.out.varint(ClockSnapshot.primary_trace_clock, this.clockId)
    this.hasOrigin = true
    this.out.end(snapshot)
    this.out.end(packet)
  }

  track(track: Track): void {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const descriptor = out.begin(TracePacket.track_descriptor)
    out.varint(TrackDescriptor.uuid, track.uuid)
    if (track.parent !== 0) out.varint(TrackDescriptor.parent_uuid, track.parent)
    out.string(TrackDescriptor.name, track.name)
    out.string(TrackDescriptor.description, track.description)
    if (track.kind === 'group') out.varint(TrackDescriptor.child_ordering, TrackDescriptorChildTracksOrdering.EXPLICIT)
    out.varint(TrackDescriptor.sibling_order_rank, track.rank)
    const merge = TrackDescriptorSiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_NONE
    out.varint(TrackDescriptor.sibling_merge_behavior, merge)
    if (track.kind === 'counter') {
      const counter = out.begin(TrackDescriptor.counter)
      const unit = track.unit ?? 'count'
      if (unit in UNITS) out.varint(CounterDescriptor.unit, UNITS[unit as keyof typeof UNITS])
      else out.string(CounterDescriptor.unit_name, unit)
      if (track.axis) out.string(CounterDescriptor.y_axis_share_key, track.axis)
      out.end(counter)
    }
    out.end(descriptor)
    out.end(packet)
  }

  begin(track: number, atNs: number, label: Label): void {
    this.named(track, atNs, TrackEventType.TYPE_SLICE_BEGIN, label)
  }

  end(track: number, atNs: number): void {
    const { out } = this
    const packet = this.packet(this.sequence(track, atNs), atNs)
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, TrackEventType.TYPE_SLICE_END)
    out.end(event)
    out.end(packet)
  }

  instant(track: number, atNs: number, label: Label): void {
    this.named(track, atNs, TrackEventType.TYPE_INSTANT, label)
  }

  counter(track: number, atNs: number, value: number): void {
    const { out } = this
    const packet = this.packet(this.sequence(track, atNs), atNs)
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, TrackEventType.TYPE_COUNTER)
    if (Number.isSafeInteger(value)) out.int64(TrackEvent.counter_value, value)
    else out.double(TrackEvent.double_counter_value, value)
    out.end(event)
    out.end(packet)
  }

  attributes(attributes: Readonly<Record<string, string | number>>): void {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const message = out.begin(TracePacket.trace_attributes)
    for (const [key, value] of Object.entries(attributes)) {
      const attribute = out.begin(TraceAttributes.attribute)
      out.string(TraceAttribute.key, key)
      if (typeof value === 'number' && Number.isSafeInteger(value)) out.int64(TraceAttribute.long_value, value)
      else out.string(TraceAttribute.string_value, String(value))
      out.end(attribute)
    }
    out.end(message)
    out.end(packet)
  }

  /** Packets stand for themselves: there is nothing to close. */
  finish(): void {}

  private named(track: number, atNs: number, type: number, label: Label): void {
    const { out } = this
    const { name, category, args, extra, flows } = label
    const sequence = this.sequence(track, atNs)
    const nameIid = typeof name === 'number' ? this.nameIids.of(name) : 0
    const categoryIid = this.categoryIid(category)
    const packet = this.packet(sequence, atNs)
    const known = (nameIid === 0 || sequence.names.has(nameIid)) && sequence.categories.has(categoryIid)
    if (!known || extra || (args && !sequence.argSets.has(args.id))) this.intern(sequence, label, nameIid, categoryIid)
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, type)
    out.varint(TrackEvent.category_iids, categoryIid)
    if (typeof name === 'number') out.varint(TrackEvent.name_iid, nameIid)
    else out.string(TrackEvent.name, name)
    if (args) out.raw(this.encoded(args).bytes)
    if (extra) for (const arg of extra) this.arg(out, arg)
    if (flows) for (const flow of flows) out.fixed64(TrackEvent.flow_ids, flow)
    out.end(event)
    out.end(packet)
  }

  /** Begins a packet: its sequence and its time. A time before the last one is written absolute. */
  private packet(sequence: Sequence, atNs: number): number {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const delta = atNs - sequence.lastNs
    if (delta >= 0) {
      out.varint(TracePacket.timestamp, delta)
      sequence.lastNs = atNs
    } else {
      out.bigVarint(TracePacket.timestamp, this.absolute(atNs))
      out.varint(TracePacket.timestamp_clock_id, this.clockId)
    }
    out.varint(TracePacket.trusted_packet_sequence_id, sequence.id)
    return packet
  }

  /** The sequence of a track; begins it at the track's first event. */
  private sequence(track: number, atNs: number): Sequence {
    const known = this.sequences[track]
    if (known) return known
    const sequence = new Sequence(++this.sequenceCount, atNs)
    this.sequences[track] = sequence
    const { out } = this
    const packet = out.begin(Trace.packet)
    out.varint(TracePacket.trusted_packet_sequence_id, sequence.id)
    out.varint(TracePacket.sequence_flags, SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED)
    const defaults = out.begin(TracePacket.trace_packet_defaults)
    out.varint(TracePacketDefaults.timestamp_clock_id, DELTA_CLOCK)
    const eventDefaults = out.begin(TracePacketDefaults.track_event_defaults)
    out.varint(TrackEventDefaults.track_uuid, track)
    out.end(eventDefaults)
    out.end(defaults)
    const snapshot = out.begin(TracePacket.clock_snapshot)
    this.clock(DELTA_CLOCK, this.absolute(atNs), true)
    this.clock(this.clockId, this.absolute(atNs), false)
    out.end(snapshot)
    out.end(packet)
    return sequence
  }

  private clock(id: number, ns: bigint, isIncremental: boolean): void {
    const { out } = this
    const clock = out.begin(ClockSnapshot.clocks)
    out.varint(ClockMessage.clock_id, id)
    out.bigVarint(ClockMessage.timestamp, ns)
    if (isIncremental) out.varint(ClockMessage.is_incremental, 1)
    out.end(clock)
  }

  private absolute(atNs: number): bigint {
    return this.originNs + BigInt(atNs)
  }

  /** Tells, within the packet that first needs them, the names that this sequence has not told yet. */
  private intern(sequence: Sequence, label: Label, nameIid: number, categoryIid: number): void {
    const { out } = this
    const { name, category, args, extra } = label
    const interned = out.begin(TracePacket.interned_data)
    if (nameIid !== 0 && sequence.names.add(nameIid)) {
      this.entry(InternedData.event_names, nameIid, this.names.text(name as number))
    }
    if (sequence.categories.add(categoryIid)) this.entry(InternedData.event_categories, categoryIid, category)
    if (args && sequence.argSets.add(args.id)) for (const arg of this.encoded(args).args) this.internArg(sequence, arg)
    if (extra) for (const arg of extra) this.internArg(sequence, arg)
    out.end(interned)
  }

  private internArg(sequence: Sequence, arg: ExtraArg): void {
    const key = this.argNameIids.of(arg.key)
    if (sequence.argNames.add(key)) this.entry(InternedData.debug_annotation_names, key, this.names.text(arg.key))
    if (!('name' in arg)) return
    const text = this.argTextIids.of(arg.name)
    if (sequence.argTexts.add(text)) {
      this.entry(InternedData.debug_annotation_string_values, text, this.names.text(arg.name))
    }
  }

  /** An interned text. All entry messages have the same two fields (EventName, EventCategory, InternedString, …). */
  private entry(field: number, iid: number, text: string): void {
    const { out } = this
    const entry = out.begin(field)
    out.varint(EventName.iid, iid)
    out.string(EventName.name, text)
    out.end(entry)
  }

  private categoryIid(category: string): number {
    let iid = this.categoryIids.get(category)
    if (iid === undefined) {
      iid = this.categoryIids.size + 1
      this.categoryIids.set(category, iid)
    }
    return iid
  }

  private encoded(set: ArgSet): EncodedArgs {
    let encoded = this.encodedArgs[set.id]
    if (!encoded) {
      for (const arg of set.args) this.arg(this.scratch, arg)
      encoded = { bytes: this.scratch.take(), args: set.args }
      this.encodedArgs[set.id] = encoded
    }
    return encoded
  }

  private arg(out: ProtoWriter, arg: ExtraArg): void {
    const annotation = out.begin(TrackEvent.debug_annotations)
    out.varint(DebugAnnotation.name_iid, this.argNameIids.of(arg.key))
    if ('name' in arg) out.varint(DebugAnnotation.string_value_iid, this.argTextIids.of(arg.name))
    else if ('int' in arg) out.int64(DebugAnnotation.int_value, arg.int)
    else if ('text' in arg) out.string(DebugAnnotation.string_value, arg.text)
    else if ('pointer' in arg) out.varint(DebugAnnotation.pointer_value, arg.pointer)
    else out.double(DebugAnnotation.double_value, arg.double)
    out.end(annotation)
  }
}
