import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { analyze, convert } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'

/** A stored recording of CUDA: its trace and its statistics. cuda.long.test.ts records anew, and holds the log against the bed's list. */

const LOG = fileURLToPath(new URL('logs/nano.ggtrace.gz', import.meta.url))

test('a log of CUDA: each kernel, copy and fill is on the row of its stream, with the operator that it is of', async () => {
  const { gpu } = await analyze(inputOf(LOG))
  const { work, kinds } = gpu!.devices[0]!
  const counts = new Map(kinds.map(({ kind, count }) => [kind, count]))
  expect(work).toBe([...counts.values()].reduce((sum, count) => sum + count, 0))
  const trace = await openTrace(convert(inputOf(LOG)))
  const numbers = (sql: string) => trace.query(sql).rows.map((row) => row.map(Number))
  try {
    expect(numbers("select count(*) from stats where severity = 'error' and value > 0")).toEqual([[0]])
    expect(numbers('select count(*) from gpu_slice')).toEqual([[work]])
    // Copies between device memory are operators (CONT); of weights, inputs and results they are not.
    const ofNodes = counts.get('kernel')! + counts.get('memcpy DtoD')!
    expect(numbers("select count(*) from gpu_slice where extract_arg(arg_set_id, 'tensor') is not null")).toEqual([
      [ofNodes],
    ])
    const overlapping = `select count(*) from (
      select ts + dur as finish, lead(ts) over (partition by track_id order by ts) as next from gpu_slice) where next < finish`
    expect(numbers(overlapping)).toEqual([[0]])
    // An arrow from each launch to its work, or to the works of its graph.
    const arrows = 'select count(distinct slice_in) from flow join gpu_slice on gpu_slice.id = slice_in'
    expect(numbers(arrows)).toEqual([[work]])
  } finally {
    trace.close()
  }
})
