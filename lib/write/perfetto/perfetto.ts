import {
  EventName,
  InternedData,
  SequenceFlags,
  Trace,
  TraceAttribute,
  TraceAttributes,
  TracePacket,
  TracePacketDefaults,
  TrackEvent,
  TrackEventDefaults,
  TrackEventType,
} from '../../generated/perfetto.ts'
import type { Arg } from '../../model/args.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { Clock } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Label } from '../../sink/label.ts'
import type { Track } from '../../sink/track.ts'
import type { Machine, Writer } from '../../sink/writer.ts'
import { Piece } from '../byte-writer.ts'
import { ArgEncoder } from './args.ts'
import { ARROW_ENDS, writeArrowEnd } from './arrows.ts'
import { PerfettoScheduler } from './ftrace.ts'
import { PerfettoGpu, writeLaunch } from './gpu-stages.ts'
import { Iids } from './iids.ts'
import { writeMachine } from './machine.ts'
import { Begins, highOf, lowOf, PacketWriter, ScratchArgs, SequenceName } from './packet-writer.ts'
import { ProtoWriter } from './proto-writer.ts'
import { Sequence } from './sequence.ts'
import { ORIGIN_CLOCK, TraceClock } from './trace-clock.ts'
import { anchorOf, writeTrack } from './track-descriptor.ts'

const NONE: readonly Arg[] = []
const NO_FLOWS: readonly number[] = []
const NO_ARGS = new Piece(new Uint8Array())
/** Ids of {@link anchorOf} tracks, beyond those of all others. */
const ANCHORS = 2 ** 31

const hasArrows = ({ flows, flowEnds, arrowsOut, arrowsIn }: Label) => flows || flowEnds || arrowsOut || arrowsIn

/**
 * Writes Perfetto's protobuf (TrackEvent): one packet sequence per track with a default track and interned names, the smallest
 * encoding (about 30 bytes a slice). Times count from near zero, in few bytes: see {@link TraceClock}.
 */
export class PerfettoWriter implements Writer {
  readonly scheduler: PerfettoScheduler
  readonly gpu: PerfettoGpu
  private readonly out = new PacketWriter()
  private readonly scratch = new ProtoWriter()
  private readonly args: ArgEncoder
  private readonly sequences: (Sequence | undefined)[] = []
  /** By id of labels: their fields, and all fields of the event that begins a slice. */
  private readonly labelFields: (Uint8Array | undefined)[] = []
  private readonly beginFields: (Piece | undefined)[] = []
  private readonly begins = new Begins()
  private readonly scratchArgs = new ScratchArgs()
  private readonly nameIids = new Iids()
  private readonly categoryIids: DefaultMap<string, number> = new DefaultMap(() => this.categoryIids.size + 1)
  private readonly colourIids = new Iids()
  private readonly atTop = new Set<number>()
  private events = 0
  private arrows = 0
  private gpuSequence: Sequence | undefined
  private sequenceCount = 0
  private readonly clock = new TraceClock(this.out)

  constructor(private readonly names: Names) {
    this.args = new ArgEncoder(names)
    this.scheduler = new PerfettoScheduler(this.out, names, (atNs) => this.clock.boottime(atNs))
    this.gpu = new PerfettoGpu(this.out, names, (atNs) => {
      this.gpuSequence ??= this.begun(undefined)
      return this.packet(this.gpuSequence, atNs)
    })
  }

  get draws(): number {
    return this.events + this.scheduler.draws + this.gpu.draws
  }

  get size(): number {
    return this.out.size
  }

  take(): Uint8Array {
    return this.out.take()
  }

  countFrom(leadNs: number): void {
    this.clock.countFrom(leadNs)
  }

  origin(clock: Clock | 'unknown', originNs: bigint): void {
    this.clock.begin(clock, originNs)
  }

  clocks(readings: readonly { readonly clock: Clock; readonly ns: bigint }[]): void {
    this.clock.add(readings)
  }

  track(track: Track): void {
    const { out } = this
    const packet = out.begin(Trace.packet)
    writeTrack(out, track)
    out.end(packet)
    if (track.isAtTop) this.atTop.add(track.uuid)
  }

  begin(track: number, atNs: number, label: Label): void {
    this.events++
    this.named(track, atNs, TrackEventType.TYPE_SLICE_BEGIN, label)
  }

  end(track: number, atNs: number): void {
    const sequence = this.sequence(track, atNs)
    const ts = atNs + this.clock.originTs
    if (ts >= 0) return this.out.sliceEnd(highOf(ts), lowOf(ts), sequence.name)
    const packet = this.packet(sequence, atNs)
    const event = this.out.begin(TracePacket.track_event)
    this.out.varint(TrackEvent.type, TrackEventType.TYPE_SLICE_END)
    this.out.end(event)
    this.out.end(packet)
  }

  /** Ends a slice, to which it adds arguments. */
  endWith(track: number, atNs: number, extra: readonly Arg[]): void {
    this.named(track, atNs, TrackEventType.TYPE_SLICE_END, { name: '', category: '', extra })
  }

  slice(track: number, startNs: number, endNs: number, label: Label, extra = label.extra): void {
    // Labels with an id have one shape, others have many: the code for the former stays fast.
    const { id } = label
    if (id !== undefined && this.repeated(id, track, startNs, endNs, label, extra)) return
    this.events++
    this.named(track, startNs, TrackEventType.TYPE_SLICE_BEGIN, label, extra)
    this.end(track, endNs)
    if (id !== undefined) this.sequence(track, startNs).prepare(id, this.beginFields[id]!, this.begins)
  }

  /** The fast path: most slices repeat a label of their sequence that is prepared. False if it is not such a slice. */
  private repeated(
    id: number,
    track: number,
    startNs: number,
    endNs: number,
    label: Label,
    extra: Label['extra'],
  ): boolean {
    const sequence = this.sequence(track, startNs)
    const place = sequence.beginOf(id)
    const { originTs } = this.clock
    const ts = startNs + originTs
    const endTs = endNs + originTs
    if (place === 0 || !(ts >= 0 && endTs >= ts) || hasArrows(label)) return false
    const { launched } = label
    const args = extra || launched !== undefined ? this.ownArgs(sequence, extra ?? NONE, launched) : NO_ARGS
    if (!args) return false
    const { out } = this
    if (!out.slice(highOf(ts), lowOf(ts), highOf(endTs), lowOf(endTs), sequence.name, this.begins, place, args))
      return false
    this.events++
    return true
  }

  instant(track: number, atNs: number, label: Label): void {
    this.events++
    this.named(track, atNs, TrackEventType.TYPE_INSTANT, label)
  }

  counter(track: number, atNs: number, value: number): void {
    this.events++
    const sequence = this.sequence(track, atNs)
    const { out } = this
    const ts = atNs + this.clock.originTs
    if (ts >= 0 && value >= 0 && Number.isSafeInteger(value))
      return out.sample(highOf(ts), lowOf(ts), sequence.name, value)
    this.rareSample(sequence, atNs, value)
  }

  arrow(from: number, to: number, atNs: number): void {
    const id = ++this.arrows
    for (const end of ARROW_ENDS) {
      const packet = this.packet(this.sequence(end === 'begin' ? from : to, atNs), atNs)
      writeArrowEnd(this.out, end, id)
      this.out.end(packet)
    }
  }

  machine(machine: Machine): void {
    writeMachine(this.out, machine)
  }

  attributes(attributes: Readonly<Record<string, string | number>>): void {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const message = out.begin(TracePacket.trace_attributes)
    for (const [key, value] of Object.entries({ ...attributes, ...this.clock.attributes() })) {
      const attribute = out.begin(TraceAttributes.attribute)
      out.string(TraceAttribute.key, key)
      if (typeof value === 'bigint') out.bigVarint(TraceAttribute.long_value, value)
      else if (typeof value === 'number' && Number.isSafeInteger(value)) out.int64(TraceAttribute.long_value, value)
      else out.string(TraceAttribute.string_value, String(value))
      out.end(attribute)
    }
    out.end(message)
    out.end(packet)
  }

  finish(): void {
    this.scheduler.finish()
  }

  private named(track: number, atNs: number, type: number, label: Label, extra = label.extra): void {
    const { out } = this
    const { id, flows, flowEnds, arrowsOut, arrowsIn } = label
    const sequence = this.sequence(track, atNs)
    const ts = atNs + this.clock.originTs
    if (id !== undefined && type === TrackEventType.TYPE_SLICE_BEGIN && ts >= 0) {
      const args = this.encodedBefore(sequence, label, extra)
      if (args) return out.event(highOf(ts), lowOf(ts), sequence.name, this.beginFields[id]!, args)
    }
    const packet = this.packet(sequence, atNs)
    const isNew = id === undefined || sequence.labels.add(id)
    if (isNew || (extra && !this.knows(sequence, extra))) this.intern(sequence, label, extra)
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, type)
    if (id === undefined) this.fields(out, label)
    else out.raw(this.body(id, label))
    if (extra) for (const arg of extra) this.args.write(out, arg)
    if (flows) for (const flow of flows) out.fixed64(TrackEvent.flow_ids, flow)
    if (arrowsOut) for (const flow of arrowsOut) out.fixed64(TrackEvent.flow_ids, flow)
    for (const flow of flowEnds ?? arrowsIn ?? NO_FLOWS) out.fixed64(TrackEvent.terminating_flow_ids, flow)
    if (label.launched !== undefined) writeLaunch(out, label.launched)
    out.end(event)
    out.end(packet)
  }

  /** Of the begin of a slice whose label is encoded, and known to this sequence: its own arguments. Undefined of others. */
  private encodedBefore(sequence: Sequence, label: Label, extra: Label['extra']): Piece | undefined {
    const { id, launched } = label
    if (id === undefined || !sequence.labels.has(id)) return undefined
    if (hasArrows(label)) return undefined
    return extra || launched !== undefined ? this.ownArgs(sequence, extra ?? NONE, launched) : NO_ARGS
  }

  /** Integers and interned texts as arguments; undefined if one is something else or not interned yet, or there are many. */
  private ownArgs(sequence: Sequence, extra: readonly Arg[], launched: number | undefined): Piece | undefined {
    const { scratchArgs } = this
    scratchArgs.clear()
    for (let i = 0; i < extra.length; i++) {
      const arg = extra[i]!
      const key = this.args.keys.of(arg.key)
      if (!sequence.argNames.has(key)) return undefined
      if ('name' in arg) {
        const text = this.args.texts.of(arg.name)
        if (!sequence.argTexts.has(text) || !scratchArgs.addText(key, text)) return undefined
      } else if (!('int' in arg) || !Number.isSafeInteger(arg.int) || arg.int < 0) return undefined
      else if (!scratchArgs.addInt(key, arg.int)) return undefined
    }
    return launched !== undefined && !scratchArgs.addLaunch(launched) ? undefined : scratchArgs.piece
  }

  /** A value that is no integer from 0, or one before the origin. */
  private rareSample(sequence: Sequence, atNs: number, value: number): void {
    const { out } = this
    const packet = this.packet(sequence, atNs)
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, TrackEventType.TYPE_COUNTER)
    if (Number.isSafeInteger(value)) out.int64(TrackEvent.counter_value, value)
    else out.double(TrackEvent.double_counter_value, value)
    out.end(event)
    out.end(packet)
  }

  /** The encoded fields of labels with this id. Also keeps those of the event that begins a slice. */
  private body(id: number, label: Label): Uint8Array {
    let fields = this.labelFields[id]
    if (fields) return fields
    this.fields(this.scratch, label)
    fields = this.scratch.take()
    this.labelFields[id] = fields
    this.scratch.varint(TrackEvent.type, TrackEventType.TYPE_SLICE_BEGIN)
    this.scratch.raw(fields)
    this.beginFields[id] = new Piece(this.scratch.take())
    return fields
  }

  private fields(out: ProtoWriter, { name, category, args, colour }: Label): void {
    if (category !== '') out.varint(TrackEvent.category_iids, this.categoryIids.of(category))
    if (typeof name === 'number') out.varint(TrackEvent.name_iid, this.nameIids.of(name))
    else if (name !== '') out.string(TrackEvent.name, name)
    if (args) out.raw(this.args.ofSet(args))
    if (typeof colour === 'number') out.varint(TrackEvent.correlation_id_str_iid, this.colourIids.of(colour))
    else if (colour !== undefined) out.string(TrackEvent.correlation_id_str, colour)
  }

  /** Begins a packet: its sequence and its time. In a trace with snapshots, a time before the origin is written as absolute time. */
  private packet(sequence: Sequence, atNs: number): number {
    const { out } = this
    const packet = out.begin(Trace.packet)
    const { clock } = this
    if (atNs >= 0 || clock.isNearZero) out.varint(TracePacket.timestamp, clock.timestamp(atNs))
    else {
      out.bigVarint(TracePacket.timestamp, clock.absolute(atNs))
      out.varint(TracePacket.timestamp_clock_id, clock.id)
    }
    out.piece(sequence.name.piece)
    return packet
  }

  /** The sequence of a track; begins it at the track's first event. */
  private sequence(track: number, atNs: number): Sequence {
    return this.sequences[track] ?? this.beginTrack(track, atNs)
  }

  private beginTrack(track: number, atNs: number): Sequence {
    const sequence = this.begun(track)
    this.sequences[track] = sequence
    if (!this.atTop.has(track)) return sequence
    const anchor = ANCHORS + track
    this.track(anchorOf(track, anchor))
    this.counter(anchor, atNs, 0)
    this.events-- // it draws nothing
    return sequence
  }

  private begun(track: number | undefined): Sequence {
    this.scratch.varint(TracePacket.trusted_packet_sequence_id, ++this.sequenceCount)
    const sequence = new Sequence(new SequenceName(this.scratch.take()))
    const { out } = this
    const packet = out.begin(Trace.packet)
    out.piece(sequence.name.piece)
    out.varint(TracePacket.sequence_flags, SequenceFlags.SEQ_INCREMENTAL_STATE_CLEARED)
    const defaults = out.begin(TracePacket.trace_packet_defaults)
    if (!this.clock.isNearZero) out.varint(TracePacketDefaults.timestamp_clock_id, ORIGIN_CLOCK)
    if (track !== undefined) {
      const eventDefaults = out.begin(TracePacketDefaults.track_event_defaults)
      out.varint(TrackEventDefaults.track_uuid, track)
      out.end(eventDefaults)
    }
    out.end(defaults)
    out.end(packet)
    return sequence
  }

  /** Writes the names that are not interned in this sequence yet, within the packet that first needs them. */
  private intern(sequence: Sequence, { name, category, args, colour }: Label, extra: Label['extra']): void {
    const { out } = this
    const nameIid = typeof name === 'number' ? this.nameIids.of(name) : 0
    const colourIid = typeof colour === 'number' ? this.colourIids.of(colour) : 0
    const categoryIid = category === '' ? 0 : this.categoryIids.of(category)
    const knowsColour = colourIid === 0 || sequence.colours.has(colourIid)
    const knowsCategory = categoryIid === 0 || sequence.categories.has(categoryIid)
    const isKnown = (nameIid === 0 || sequence.names.has(nameIid)) && knowsColour && knowsCategory
    const knowsArgs = (!args || sequence.argSets.has(args.id)) && (!extra || this.knows(sequence, extra))
    if (isKnown && knowsArgs) return
    const interned = out.begin(TracePacket.interned_data)
    if (nameIid !== 0 && sequence.names.add(nameIid)) {
      this.entry(InternedData.event_names, nameIid, this.names.text(name as number))
    }
    if (categoryIid !== 0 && sequence.categories.add(categoryIid))
      this.entry(InternedData.event_categories, categoryIid, category)
    if (args && sequence.argSets.add(args.id)) for (const arg of args.args) this.internArg(sequence, arg)
    if (extra) for (const arg of extra) this.internArg(sequence, arg)
    if (colourIid !== 0 && sequence.colours.add(colourIid)) {
      this.entry(InternedData.correlation_id_str, colourIid, this.names.text(colour as number))
    }
    out.end(interned)
  }

  private knows(sequence: Sequence, extra: readonly Arg[]): boolean {
    for (const arg of extra) {
      if (!sequence.argNames.has(this.args.keys.of(arg.key))) return false
      if ('name' in arg && !sequence.argTexts.has(this.args.texts.of(arg.name))) return false
    }
    return true
  }

  private internArg(sequence: Sequence, arg: Arg): void {
    const key = this.args.keys.of(arg.key)
    if (sequence.argNames.add(key)) this.entry(InternedData.debug_annotation_names, key, this.names.text(arg.key))
    if (!('name' in arg)) return
    const text = this.args.texts.of(arg.name)
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
}
