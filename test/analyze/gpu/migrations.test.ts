import { describe, expect, test } from '@jest/globals'
import { analyze, eventsOf, Names } from '../../../lib/index.ts'
import { openTrace } from '../../../lib/node.ts'
import { converted, plainBytes } from '../../line/support.ts'
import { COPIES } from '../../read/nsys-figures.ts'

/** Copies of all kinds of CUPTI, and migrations of unified memory. */

const report = () => plainBytes('nsys/unified-memory.sqlite.gz')
const log = () => ({ name: 'um.sqlite', source: report() })

describe('a report of Nsight Systems with migrations', () => {
  test('first sentence and advice are of unified memory, none of copies', async () => {
    const { verdict, findings } = await analyze(log())
    expect(verdict.sentence).toBe(
      'GPU 0 busy 97 % of 80 ms: moves 960 MiB of unified memory in 57 % of the time, and does nothing else meanwhile: most of it to the host',
    )
    expect(findings.map(({ rule }) => rule)).toEqual(['gpu-migrations'])
    expect(findings[0]!.advice).toMatch(/cudaMemPrefetchAsync.*cudaMemAdvise/)
    expect(findings[0]!.advice).not.toContain('pinned')
  })

  test('its figures: a direction and a kind of their own', async () => {
    const [device] = (await analyze(log())).gpu!.devices
    expect(device!.kinds.map(({ kind }) => kind)).toEqual(['migration DtoH', 'kernel'])
    expect(device!.transfers).toMatchObject([{ direction: 'migration DtoH', count: 80, bytes: 80 * 12 * 2 ** 20 }])
    const { copy_ns, migration_ns, exposed_copy_ns, exposed_migration_ns } = device!.time!
    expect([migration_ns, exposed_migration_ns]).toEqual([copy_ns, exposed_copy_ns])
  })

  test('the driver moves pages: no call launched them', async () => {
    const correlations = new Set<number>()
    for await (const batch of eventsOf(log(), new Names()))
      for (const event of batch)
        if (event.kind === 'gpu' && event.what === 'migration') correlations.add(event.correlation)
    expect([...correlations]).toEqual([-1])
  })

  test('its trace: a kind of their own; the check of the finding has its figure', async () => {
    const trace = await openTrace(await converted(report()))
    try {
      const sql = "select extract_arg(arg_set_id, 'kind') kind, count(*) n from gpu_slice group by 1 order by 1"
      expect((await trace.query(sql)).rows).toEqual([
        ['kernel', 80],
        ['migration', 80],
      ])
      const [finding] = (await analyze(log())).findings
      const check = finding!.check as { readonly sql: string }
      expect((await trace.query(check.sql)).rows).toEqual([[finding!.evidence['exposed_migration_ns']]])
    } finally {
      trace.close()
    }
  })
})

/** Direction by copyKind: CUpti_ActivityMemcpyKind, and those of Nsight Systems above 10. */
const DIRECTIONS = [
  ...['unknown', 'HtoD', 'DtoH', 'HtoA', 'AtoH', 'AtoA', 'AtoD', 'DtoA', 'DtoD', 'HtoH', 'PtoP'],
  ...['migration HtoD', 'migration DtoH', 'migration DtoD'],
]

test.each(DIRECTIONS.map((direction, kind) => [COPIES[kind]!, direction]))('%s is %s', async (name, direction) => {
  const rows = [
    'Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name',
    `1000,500,1,,,,,,,,,,0.5,100,Pageable,Device,A GPU (0),1,7,[CUDA memcpy ${name}]`,
    '',
  ]
  const { gpu } = await analyze({ name: 'gpu.csv', source: new TextEncoder().encode(rows.join('\n')) })
  expect(gpu!.devices[0]!.transfers.map((of) => of.direction)).toEqual([direction])
})
