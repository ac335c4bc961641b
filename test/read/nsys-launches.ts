import { readFileSync } from 'node:fs'
import protobuf from 'protobufjs'

/** What a trace says of launches to viewers that draw arrows: GpuCorrelation, decoded by a library of another make. */

const proto = readFileSync(new URL('../../proto/perfetto.proto', import.meta.url), 'utf8')
const Trace = protobuf.parse(proto, { keepCase: true }).root.lookupType('Trace')

interface Packet {
  readonly trusted_packet_sequence_id: number
  readonly trace_packet_defaults?: { readonly track_event_defaults?: { readonly track_uuid: number } | null }
  readonly track_descriptor?: { readonly uuid: number; readonly name: string }
  readonly track_event?: {
    readonly gpu_correlation?: { readonly render_stage_submission_event_ids: readonly number[] } | null
  }
  readonly gpu_render_stage_event?: {
    readonly event_id: number
    readonly duration: number
    readonly context: number
    readonly submission_id: number
  }
  readonly interned_data?: { readonly graphics_contexts?: readonly { readonly iid: number; readonly pid: number }[] }
}

/** Thread of the call, process, correlation id and duration of each piece of work that a call is joined with; sorted. */
export function drawnLaunches(trace: Uint8Array): string[] {
  // Numbers hold all of them: an id is the number of a process and a correlation id of 32 bits.
  const { packet: packets } = Trace.toObject(Trace.decode(trace), { longs: Number }) as { packet: Packet[] }
  const tids = new Map<number, number>()
  const tracks = new Map<number, number>()
  const pids = new Map<number, number>()
  const callers = new Map<number, number[]>()
  for (const packet of packets) {
    const { track_descriptor: track, track_event: event, trusted_packet_sequence_id: sequence } = packet
    if (track) tids.set(track.uuid, Number(/(\d+)(?:: [A-Z]+ API)?(?: \(\d+\))?$/.exec(track.name)?.[1]))
    const uuid = packet.trace_packet_defaults?.track_event_defaults?.track_uuid
    if (uuid !== undefined) tracks.set(sequence, uuid)
    for (const { iid, pid } of packet.interned_data?.graphics_contexts ?? []) pids.set(iid, pid)
    for (const id of event?.gpu_correlation?.render_stage_submission_event_ids ?? []) {
      const known = callers.get(id)
      const tid = tids.get(tracks.get(sequence)!)!
      if (known) known.push(tid)
      else callers.set(id, [tid])
    }
  }
  return packets
    .flatMap(({ gpu_render_stage_event: work }) =>
      work
        ? (callers.get(work.event_id) ?? []).map(
            (tid) => `${tid} ${pids.get(work.context)} ${work.submission_id} ${work.duration}`,
          )
        : [],
    )
    .sort()
}
