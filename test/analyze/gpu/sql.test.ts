import { describe, expect, test } from '@jest/globals'
import { analyze } from '../../../lib/index.ts'
import { openTrace } from '../../../lib/node.ts'
import type { Cell, OpenTrace } from '../../../lib/sql.ts'
import { converted, GPU_FIXTURES, plainBytes } from '../../line/support.ts'

/** The figures of GPUs, computed again in SQL from the converted trace. */

const NCCL = "(name like '%nccl%' or name like '%rccl%' or name like '%cross_device_reduce%')"
const KIND = "extract_arg(s.arg_set_id, 'kind')"
const work = (pid: number | null) =>
  `work as materialized (select s.ts, s.ts + s.dur as until, s.name, s.dur, ${KIND} as kind, s.submission_id as launch from gpu_slice s
    left join process p using (upid) where ${pid === null ? 'true' : `p.pid = ${pid}`}),
  classed as materialized (select *, case when kind in ('memcpy', 'memset', 'migration') then 2 when ${NCCL} then 1 else 0 end as class from work)`
/** The time between all starts and ends, by what is active: computation, communication, copies. */
const SEGMENTS = `edge as (select ts as at from work union select until from work),
  segment as materialized (select at, lead(at) over (order by at) as next from edge),
  active as (select next - at as dur, ${[0, 1, 2]
    .map((of) => `exists (select 1 from classed where class = ${of} and ts <= at and until >= next) as active${of}`)
    .join(', ')} from segment where next is not null)`
const sum = (condition: string) => `coalesce(sum(dur * (${condition})), 0)`

async function opened<T>(
  bytes: Uint8Array,
  use: (rows: (sql: string) => readonly (readonly Cell[])[]) => T,
): Promise<T> {
  const trace: OpenTrace = await openTrace(await converted(bytes, { detail: 'full' }))
  try {
    return use((sql) => trace.query(sql).rows)
  } finally {
    trace.close()
  }
}
const numbers = (row: readonly Cell[]) => row.map(Number)
const byName = (rows: readonly (readonly (Cell | undefined)[])[]) =>
  rows
    .map((row) => row.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell)))
    .sort((a, b) => (`${a[0]}` < `${b[0]}` ? -1 : 1))

describe('as in the trace', () => {
  test.each(GPU_FIXTURES)('%s', async (name) => {
    const bytes = plainBytes(name)
    const { gpu } = await analyze({ name, source: bytes })
    await opened(bytes, (rows) => {
      for (const { pid, time, kernels, launch_latency, transfers } of gpu!.devices) {
        const [parts] = rows(`with ${work(pid)}, ${SEGMENTS} select sum(dur), ${sum('active0')},
          ${sum('active1 and not active0')}, ${sum('active2 and not active1 and not active0')},
          ${sum('not (active0 or active1 or active2)')}, ${sum('active1')}, ${sum('active2')} from active`)
        const { total_ns, computation_ns, exposed_communication_ns, exposed_copy_ns, ...of } = time!
        expect(numbers(parts!)).toEqual([
          ...[total_ns, computation_ns, exposed_communication_ns, exposed_copy_ns],
          ...[of.idle_ns, of.communication_ns, of.copy_ns],
        ])
        expect(byName(kernels.map((kernel) => [kernel.name, kernel.count, kernel.time_ns]))).toEqual(
          byName(
            rows(`with ${work(pid)} select name, count(), sum(dur) from work where kind = 'kernel' group by name`),
          ),
        )
        const [copied] =
          rows(`select count(), sum(dur), coalesce(sum(extract_arg(s.arg_set_id, 'bytes')), 0) from gpu_slice s
          left join process p using (upid) where p.pid is ${pid} and ${KIND} in ('memcpy', 'memset', 'migration')`)
        const total = (key: 'count' | 'time_ns' | 'bytes') => transfers.reduce((sum, of) => sum + of[key], 0)
        expect([total('count'), total('time_ns'), total('bytes')]).toEqual(numbers(copied!))
        // Correlation ids are of a process; the trace's slices of calls have none.
        if (gpu!.devices.length > 1) continue
        const [latency] = rows(`with ${work(pid)}, call as (select extract_arg(arg_set_id, 'debug.correlation') as id,
          min(ts) as ts from slice where category = 'api' group by 1), first as (select launch, min(ts) as ts from work group by 1)
          select count(), avg(first.ts - call.ts), max(first.ts - call.ts) from call join first on id = launch`)
        if (launch_latency === null) expect(Number(latency![0])).toBe(0)
        else {
          const { count, mean_ns, max_ns } = launch_latency
          expect([count, max_ns]).toEqual([Number(latency![0]), Number(latency![2])])
          expect(mean_ns).toBeCloseTo(Number(latency![1]), 3)
        }
      }
      const calls = new Map<string, number[]>()
      for (const { name, count, time_ns } of gpu!.processes.flatMap(({ calls }) => calls)) {
        const [counts = 0, times = 0] = calls.get(name) ?? []
        calls.set(name, [counts + count, times + time_ns])
      }
      const inTrace = "select name, count(), sum(dur) from slice where category = 'api' group by name"
      expect(byName([...calls].map(([name, sums]) => [name, ...sums]))).toEqual(byName(rows(inTrace)))
      const ranges = gpu!.ranges.filter(({ kind }) => kind === 'nvtx')
      const [inRanges] = rows(`select coalesce(sum(dur), 0), coalesce(sum(extract_arg(arg_set_id, 'debug.busy_ns')), 0),
        count() from slice where category = 'nvtx_gpu'`)
      const all = (key: 'time_ns' | 'busy_ns' | 'count') => ranges.reduce((sum, of) => sum + (of[key] ?? 0), 0)
      expect([all('time_ns'), all('busy_ns'), all('count')]).toEqual(numbers(inRanges!))
    })
  })
})
