import { INT32_MAX } from '../../model/limits.ts'
import { plural } from '../../model/units.ts'
import type { Analysis, GpuDevice, GpuTime } from '../analysis.ts'
import { lossesOf } from '../run/losses.ts'
import { type Confidence, doubtful } from './rule.ts'

// What the rules of GPUs share.

/** Work of less than this is no basis for a finding: the beginning and the end of a recording weigh too much. */
export const PIECES_MIN = 100

/** Devices whose time is known, with enough work; where calls of `llama_decode` launched it, with the time of that work. */
export function devicesOf({ gpu }: Analysis): (GpuDevice & { readonly time: GpuTime })[] {
  return (gpu?.devices ?? [])
    .map((device) => ({ ...device, ...device.calls }))
    .flatMap((device) =>
      device.time && device.work >= PIECES_MIN && device.time.total_ns > 0 ? [{ ...device, time: device.time }] : [],
    )
}

/** `GPU 0`, with the process where there are several devices. */
export function nameOf({ gpu }: Analysis, { device, pid }: GpuDevice): string {
  const isOnly = gpu!.devices.length === 1 || pid === null
  return `GPU ${device ?? ''}`.trim() + (isOnly ? '' : ` (process ${pid})`)
}

/** The device in evidence. */
export const evidenceOf = ({ device, pid }: GpuDevice) => ({
  ...(device !== null && { device }),
  ...(pid !== null && { pid }),
})

/** Confidence in figures of recorded work. */
export function confidenceIn(analysis: Analysis, { work }: GpuDevice): Confidence {
  const lost = lossesOf(analysis, ['gpu'])
  if (lost > 0) return doubtful(lost)
  return {
    confidence: 'high',
    confidence_reason: `times of ${plural(work, 'piece')} of work, as the GPU recorded them`,
  }
}

/** Work of a device in the trace: `ts`, `until`, `launch`, `class` (3: migrations, 2: copies and fills, 1: communication, 0: computation). */
export function workOf({ device, pid, calls }: GpuDevice): string {
  const copies = "'memcpy', 'memset'"
  const communication = "s.name like '%nccl%' or s.name like '%rccl%' or s.name like '%cross_device_reduce%'"
  return (
    `work as (select s.id, s.ts, s.ts + s.dur as until, s.submission_id as launch, ` +
    `case when extract_arg(s.arg_set_id, 'kind') = 'migration' then 3 when extract_arg(s.arg_set_id, 'kind') in (${copies}) or s.name like '__amd_rocclr_%' or s.name like 'MEMORY_COPY_%' ` +
    `then 2 when ${communication} then 1 else 0 end as class ` +
    `from gpu_slice s join gpu_track t on t.id = s.track_id left join process p using (upid) ` +
    `where extract_arg(t.dimension_arg_set_id, 'gpu') = ${Math.max(0, device ?? 0)}${ofProcess(pid)}` +
    `${calls ? " and extract_arg(s.arg_set_id, 'call') is not null" : ''})`
  )
}

/** Numbers of processes of merged ranks may have more than the 32 bits of the table `process`; the names of queues end in them. */
function ofProcess(pid: number | null): string {
  if (pid === null) return ''
  return pid <= INT32_MAX ? ` and p.pid = ${pid}` : ` and t.name like '%pid ${pid}'`
}

/** Time in which work of some classes runs, as one number of a query. */
export const unionOf = (classes: string) =>
  `(select coalesce(sum(max(0, until - max(ts, coalesce(before, ts)))), 0) from (select ts, until, max(until) over ` +
  `(order by ts, id rows between unbounded preceding and 1 preceding) as before from work where class in (${classes})))`
