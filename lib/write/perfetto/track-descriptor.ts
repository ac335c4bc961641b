import {
  CounterDescriptor,
  CounterDescriptorBuiltinCounterType,
  CounterDescriptorUnit,
  ProcessDescriptor,
  ThreadDescriptor,
  TracePacket,
  TrackDescriptor,
  TrackDescriptorChildTracksOrdering,
  TrackDescriptorSiblingMergeBehavior,
} from '../../generated/perfetto.ts'
import type { Track } from '../../sink/track.ts'
import type { ProtoWriter } from './proto-writer.ts'

const UNITS = {
  bytes: CounterDescriptorUnit.UNIT_SIZE_BYTES,
  count: CounterDescriptorUnit.UNIT_COUNT,
  ns: CounterDescriptorUnit.UNIT_TIME_NS,
} as const

const MERGE = {
  BY_NAME: TrackDescriptorSiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_BY_TRACK_NAME,
  NONE: TrackDescriptorSiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_NONE,
} as const

/** The unit of a {@link anchorOf} track. */
const HIDDEN = 'hidden'

/**
 * A counter below a track that is at the top. Perfetto's UI puts such tracks that have nothing below them into a closed group, *Global
 * Track Events*; it does not draw counters of a built-in type. Source: Perfetto v55.3 and v58.2,
 * ui/src/plugins/dev.perfetto.TrackEvent/index.ts.
 */
export function anchorOf(track: number, uuid: number): Track {
  const description = 'Not drawn: keeps the track above it at the top of the viewer.'
  return { uuid, parent: track, name: 'at the top', description, rank: 0, kind: 'counter', unit: HIDDEN }
}

/** Writes the descriptor of a track into a packet. */
export function writeTrack(out: ProtoWriter, track: Track): void {
  const descriptor = out.begin(TracePacket.track_descriptor)
  out.varint(TrackDescriptor.uuid, track.uuid)
  if (track.parent !== 0) out.varint(TrackDescriptor.parent_uuid, track.parent)
  out.string(TrackDescriptor.name, track.name)
  if (track.description !== '') out.string(TrackDescriptor.description, track.description)
  if (track.kind === 'group' || track.ordersChildren)
    out.varint(TrackDescriptor.child_ordering, TrackDescriptorChildTracksOrdering.EXPLICIT)
  out.int64(TrackDescriptor.sibling_order_rank, track.rank)
  out.varint(TrackDescriptor.sibling_merge_behavior, track.merges ? MERGE.BY_NAME : MERGE.NONE)
  if (track.ofProcess) {
    const { pid, name, sortIndex, labels = [] } = track.ofProcess
    const message = out.begin(TrackDescriptor.process)
    out.varint(ProcessDescriptor.pid, pid)
    if (sortIndex !== undefined) out.int64(ProcessDescriptor.legacy_sort_index, sortIndex)
    if (name !== '') out.string(ProcessDescriptor.process_name, name)
    for (const label of labels) out.string(ProcessDescriptor.process_labels, label)
    out.end(message)
  }
  if (track.ofThread) {
    const { pid, tid, name, sortIndex } = track.ofThread
    const message = out.begin(TrackDescriptor.thread)
    out.varint(ThreadDescriptor.pid, pid)
    out.varint(ThreadDescriptor.tid, tid)
    if (sortIndex !== undefined) out.int64(ThreadDescriptor.legacy_sort_index, sortIndex)
    if (name !== '') out.string(ThreadDescriptor.thread_name, name)
    out.end(message)
  }
  if (track.kind === 'counter') {
    const counter = out.begin(TrackDescriptor.counter)
    const unit = track.unit ?? 'count'
    if (unit === HIDDEN) out.varint(CounterDescriptor.type, CounterDescriptorBuiltinCounterType.COUNTER_THREAD_TIME_NS)
    else if (unit in UNITS) out.varint(CounterDescriptor.unit, UNITS[unit as keyof typeof UNITS])
    else out.string(CounterDescriptor.unit_name, unit)
    if (track.axis) out.string(CounterDescriptor.y_axis_share_key, track.axis)
    out.end(counter)
  }
  out.end(descriptor)
}
