import { LegacyEvent, TracePacket, TrackEvent } from '../../generated/perfetto.ts'
import type { ProtoWriter } from './proto-writer.ts'

/** The letters of upstream's phases. */
const PHASES = { begin: 's'.charCodeAt(0), end: 'f'.charCodeAt(0) }

/** The ends of an arrow, in order. */
export const ARROW_ENDS = ['begin', 'end'] as const

/**
 * Writes an end of an arrow into a packet of a track. It belongs to the slice that is open there at the packet's time, also if that was written
 * long before: trace_processor sorts packets by time. Those of one time must be in order. `id` is unique among these arrows: others have ids of
 * their own. Source: Perfetto v55.3 and v58.2, ParseFlowEventV1 in src/trace_processor/importers/proto/track_event_event_importer.h.
 */
export function writeArrowEnd(out: ProtoWriter, which: (typeof ARROW_ENDS)[number], id: number): void {
  const event = out.begin(TracePacket.track_event)
  const legacy = out.begin(TrackEvent.legacy_event)
  out.varint(LegacyEvent.phase, PHASES[which])
  out.varint(LegacyEvent.unscoped_id, id)
  if (which === 'end') out.varint(LegacyEvent.bind_to_enclosing, 1)
  out.end(legacy)
  out.end(event)
}
