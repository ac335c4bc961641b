import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { findView } from '../../lib/sql.ts'
import { argsOf, inPieces, pathsIn, traceOf, view, withTrace } from './opened.ts'

describe('of a trace without a run, each row of its group is shown, and no row twice', () => {
  test.each([
    'nsys/one-gpu.sqlite.gz',
    'chrome-json/h100.json.gz',
    'profinfer-ktrace/real.txt',
    'power/nvidia-smi.csv',
  ])('%s, opened as a log, and as a trace', async (name) => {
    const bytes = readFileSync(`test/fixtures/${name}`)
    const log = name.endsWith('.gz') ? gunzipSync(bytes) : bytes
    for (const grouped of [true, false]) {
      const found = await view(log, { grouped, findings: true })
      await withTrace(await traceOf(log, { grouped, findings: true }), (trace) => {
        const [pattern] = argsOf(found, 'CopyTracksToWorkspaceByRegexWithAncestors')
        const copied = new Set(pathsIn(trace).filter((path) => new RegExp(pattern!).test(path)))
        const works = trace.query("select distinct track_id from slice where category = 'gpu_busy'").rows.flat()
        const rows =
          trace.query(`select row.id, ifnull(root.name || ' > ', '') || row.name from track row left join track root on root.id = row.parent_id
          where row.type glob 'global*' and row.name != 'at the top' and root.parent_id is null
            and (root.name is not null or row.id in (select parent_id from track where name = 'at the top'))`).rows
        const wanted = rows.filter(([id]) => !works.includes(id!)).map(([, path]) => `${path}`)
        expect(wanted.length).toBeGreaterThan(1)
        expect(wanted.filter((path) => !copied.has(path))).toEqual([])
        const ofWorks = rows.filter(([id]) => works.includes(id!)).map(([, path]) => `${path}`)
        expect(ofWorks.filter((path) => copied.has(path))).toEqual([])
        const findings = trace.query("select count(*) from slice where category = 'finding'").rows[0]![0]
        const tabs = found.commands.filter(({ id }) => id.endsWith('RunQueryAndShowTab'))
        expect(tabs.length).toBe(findings === 0 ? 0 : 1)
      })
    }
  })

  test('of a recording of the scheduler alone: CPUs, and the processes that ran longest', async () => {
    const log = gunzipSync(readFileSync('test/fixtures/perf-data/switches.data.gz'))
    const [pattern] = argsOf(await view(log), 'CopyTracksToWorkspaceByRegexWithAncestors')
    const shown = new RegExp(pattern!)
    await withTrace(await traceOf(log), (trace) => {
      const processes =
        trace.query(`select ifnull(process.name, 'Process') || ' ' || pid, sum(dur) from thread_state join thread using (utid)
        join process using (upid) where state = 'Running' and pid != 0 group by upid order by 2 desc`).rows
      expect(processes.length).toBeGreaterThan(14)
      expect(processes.map(([name]) => shown.test(`${name}`))).toEqual(processes.map((_, i) => i < 14))
    })
    expect(shown.test('CPU > Scheduling')).toBe(true)
  })
})

test('of several runs, calls of the first one are in view', async () => {
  const logs = ['examples/moe.csv', 'test/recorded/outside-graphs.ggtrace.gz'].map(inputOf)
  const pieces: Uint8Array[] = []
  for await (const piece of convert(logs, { grouped: true })) pieces.push(piece)
  const bytes = Buffer.concat(pieces)
  const { span } = await findView(inPieces(bytes))
  await withTrace(bytes, (trace) => {
    const runs =
      trace.query(`select root.name, sum(slice.ts >= ${span![0]} and slice.ts + slice.dur <= ${span![1]}) from slice
      join track on track.id = track_id join track root on root.id = track.parent_id where category = 'token'
      group by 1 order by extract_arg(root.source_arg_set_id, 'sibling_order_rank')`).rows
    expect(runs.map(([, calls]) => calls)).toEqual([3, 0])
  })
})
