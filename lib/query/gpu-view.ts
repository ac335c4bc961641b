import type { QueryResult } from './trace-processor.ts'

/** What is shown first of the work of GPUs. */
export interface GpuView {
  readonly span: readonly [bigint, bigint] | undefined
  /** Regular expressions for names of groups. */
  readonly expanded: readonly string[]
  /** Regular expressions for paths of rows, and of groups with all their rows, such as `GPU > Hardware Queues > stream 7`. */
  readonly rows: readonly string[]
}

/** Streams that are shown, if they have at least this share of the time of the one with most. */
const STREAMS_SHOWN = 6
const STREAM_SHARE_MIN = 0.01
/** Two pieces of work of a stream are of one burst if there is less time between them. */
const PAUSE_NS = 1e6
/** The first burst in view has at least this share of the length of the longest one. */
const BURST_SHARE_MIN = 0.1
/** Of a long burst only the beginning is in view. */
const BURST_NS_MAX = 20e6
/** Space before and after it, as a share of its time. */
const MARGIN = 0.15
/** NVTX domains that are opened. */
const DOMAINS_MAX = 8
/** Processes that are opened, such as those of PyTorch. */
const PROCESSES_MAX = 4

/** What our traces of GPUs contain, by the calls of the host; Perfetto's UI draws the work of the GPUs, in its own groups. */
const HOST_GROUPS = [
  ...['NVTX', 'NVTX on the GPU', 'Annotations on the GPU', 'CUDA API', 'HIP API', 'Vulkan API'],
  'GPU synchronization',
]
/** The first rows of these, which are rows of the run: a regular expression, and a pattern for GLOB. */
const HOST_ROWS = ['[^>]*: (NVTX[^>]*|[^>]* API|operators|Python|Allocations|annotations)', 'GPU [^>]* waits: [^>]*']
const ARE_HOST_ROWS = `name glob '*: NVTX*' or name glob '*: * API' or name glob 'GPU * waits: *'
  or name glob '*: operators' or name glob '*: Python' or name glob '*: Allocations' or name glob '*: annotations'`
/** Source: Perfetto v58, ui/src/plugins/dev.perfetto.Gpu/index.ts. */
const GPU_GROUPS = ['GPU', 'Hardware Queues', 'GPU [0-9]+ Hardware Queues']

/** Streams as this library names them, the one with most work first. */
const STREAMS = `
  select track.id, track.name, sum(dur) as ns from gpu_slice join track on track.id = track_id
  where track.name glob '*stream *' or track.name glob '*, pid [0-9]*' or track.name glob '* · GPU [0-9]*' group by 1 order by 3 desc`

/** The groups and rows of the host. */
const HOST = `
  with ours as (
    select id, name, parent_id from track
    where name in (${HOST_GROUPS.map((name) => `'${name}'`).join(', ')}) or ${ARE_HOST_ROWS})`

/** Names of the groups, of the groups that they are in, and of NVTX domains. */
const GROUPS = `${HOST}
  select name from track where id in (select parent_id from ours) and parent_id is null
  union select name from ours where not (${ARE_HOST_ROWS})
  union select * from (
    select name from track where parent_id in (select id from ours where name = 'NVTX') limit ${DOMAINS_MAX})`

const HAS_HOST = `${HOST} select count(*) from ours`

/** The name of a process's group in the UI. Source: Perfetto v55.3 and v58.2, ui/src/plugins/dev.perfetto.ProcessThreadGroups/index.ts. */
export const PROCESS_GROUP = `iif(ifnull(process.name, '') = '', 'Process', process.name) || ' ' || pid`

/** Processes with slices on their threads. */
const PROCESSES = `
  select ${PROCESS_GROUP} from process join thread using (upid)
  where utid in (select utid from thread_track join slice on track_id = thread_track.id) group by upid limit ${PROCESSES_MAX}`

/** The begin and the end of the first burst of a stream's work. */
const firstBurst = (stream: number) => `
  with works as (
    select ts, ts + dur as endTs, max(ts + dur) over (order by ts rows between unbounded preceding and 1 preceding) as lastTs
    from gpu_slice where track_id = ${stream}),
  numbered as (select *, sum(lastTs is null or ts - lastTs > ${PAUSE_NS}) over (order by ts) as burst from works),
  bursts as (select min(ts) as ts, max(endTs) as endTs from numbered group by burst)
  select ts, endTs from bursts
  where endTs - ts >= ${BURST_SHARE_MIN} * (select max(endTs - ts) from bursts) order by ts limit 1`

/** What to show first of a trace that was converted from a profile of GPUs; nothing of other traces. */
export function gpuViewOf(query: (sql: string) => QueryResult): GpuView {
  const namesOf = (sql: string) => query(sql).rows.map(([name]) => escaped(String(name)))
  const groups = namesOf(GROUPS)
  const streams = query(STREAMS).rows
  const [main] = streams
  const ofHost = query(HAS_HOST).rows[0]![0] !== 0 ? [`([^>]* > )?(${[...HOST_GROUPS, ...HOST_ROWS].join('|')})`] : []
  if (!main) return { span: undefined, expanded: groups, rows: ofHost }
  const [start, end] = query(firstBurst(Number(main[0]))).rows[0]!.map((ts) => BigInt(ts as number | bigint))
  const lastShown = start! + BigInt(BURST_NS_MAX)
  const leastNs = STREAM_SHARE_MIN * Number(main[2])
  const processes = namesOf(PROCESSES)
  const shown = streams
    .filter(([, , ns]) => Number(ns) >= leastNs)
    .slice(0, STREAMS_SHOWN)
    .map(([, name]) => escaped(String(name)))
  return {
    span: widened([start!, end! < lastShown ? end! : lastShown], MARGIN),
    expanded: [...GPU_GROUPS, ...groups, ...processes],
    rows: [`GPU.* > (${shown.join('|')})`, ...ofHost, ...processes],
  }
}

/** A span with a margin on both sides, as a share of its length. */
export function widened([start, end]: readonly [bigint, bigint], share: number): readonly [bigint, bigint] {
  const margin = BigInt(Math.ceil(Number(end - start) * share))
  return [start - margin, end + margin]
}

/** A regular expression for this text. */
export function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
