import {
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
import type { Clock } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Label } from '../../sink/label.ts'
import type { Track } from '../../sink/track.ts'
import type { Machine, Writer } from '../../sink/writer.ts'
import { ARROW_ENDS, writeArrowEnd } from './arrows.ts'
import { PerfettoScheduler } from './ftrace.ts'
import { PerfettoGpu, writeLaunch } from './gpu-stages.ts'
import { LabelEncoder, NO_ARGS } from './label-encoder.ts'
import { writeMachine } from './machine.ts'
import { Begins, highOf, lowOf, PacketWriter, SequenceName } from './packet-writer.ts'
import { ProtoWriter } from './proto-writer.ts'
import { Sequence } from './sequence.ts'
import { ORIGIN_CLOCK, TraceClock } from './trace-clock.ts'
import { anchorOf, writeTrack } from './track-descriptor.ts'

const NO_FLOWS: readonly number[] = []
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
  private readonly labels: LabelEncoder
  private readonly sequences: (Sequence | undefined)[] = []
  private readonly begins = new Begins()
  private readonly atTop = new Set<number>()
  private events = 0
  private arrows = 0
  private gpuSequence: Sequence | undefined
  private sequenceCount = 0
  private readonly clock = new TraceClock(this.out)

  constructor(names: Names) {
    this.labels = new LabelEncoder(this.out, names)
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
    if (id !== undefined) this.sequence(track, startNs).prepare(id, this.labels.beginOf(id), this.begins)
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
    const args = this.labels.briefArgs(sequence, extra, label.launched)
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
    const { out, labels } = this
    const { id, flows, flowEnds, arrowsOut, arrowsIn } = label
    const sequence = this.sequence(track, atNs)
    if (!hasArrows(label) && this.brief(sequence, atNs, type, label, extra)) return
    const packet = this.packet(sequence, atNs)
    const isNew = id === undefined || sequence.labels.add(id)
    if (isNew || (extra && !labels.knows(sequence, extra))) labels.intern(sequence, label, extra)
    const event = out.begin(TracePacket.track_event)
    out.varint(TrackEvent.type, type)
    labels.write(out, label)
    if (extra) for (const arg of extra) labels.args.write(out, arg)
    if (flows) for (const flow of flows) out.fixed64(TrackEvent.flow_ids, flow)
    if (arrowsOut) for (const flow of arrowsOut) out.fixed64(TrackEvent.flow_ids, flow)
    for (const flow of flowEnds ?? arrowsIn ?? NO_FLOWS) out.fixed64(TrackEvent.terminating_flow_ids, flow)
    if (label.launched !== undefined) writeLaunch(out, label.launched)
    out.end(event)
    out.end(packet)
  }

  /** Writes an event with what is interned in the sequence already; false of others, and of long ones. */
  private brief(sequence: Sequence, atNs: number, type: number, label: Label, extra: Label['extra']): boolean {
    const { labels, out } = this
    const { id } = label
    const ts = atNs + this.clock.originTs
    if (ts < 0) return false
    if (id === undefined) {
      const fields = labels.brief(sequence, type, label, extra)
      if (fields) out.event(highOf(ts), lowOf(ts), sequence.name, fields, NO_ARGS)
      return fields !== undefined
    }
    if (type !== TrackEventType.TYPE_SLICE_BEGIN || !sequence.labels.has(id)) return false
    const args = labels.briefArgs(sequence, extra, label.launched)
    if (args) out.event(highOf(ts), lowOf(ts), sequence.name, labels.beginOf(id), args)
    return args !== undefined
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
}
