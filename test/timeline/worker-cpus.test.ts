import { expect, test } from '@jest/globals'
import { convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { decodes, type MadeCall, madeRun } from '../analyze/findings/made-run.ts'

/** Names of workers contain the CPU where it is always the same. */

const HYBRID = {
  ...{ 'topology.online': '0-7', 'topology.cores': '0,1|2,3|4|5|6|7', 'topology.packages': '0-7' },
  ...{ 'topology.capacity': '1024:0,2|512:4-7', 'topology.nodes': '0:0-3|1:4-7' },
}
const STEP = { name: 'ffn_up-0', op: 'MUL_MAT', ns: [100_000, 90_000, 80_000] }

async function namesOf(calls: readonly MadeCall[], attributes: Record<string, string>) {
  const trace = await openTrace(convert(madeRun({ calls, attributes })))
  try {
    const query = "select distinct t.name from slice s join track t on t.id = s.track_id where s.category = 'operator'"
    return trace.query(`${query} order by 1`).rows.flat()
  } finally {
    trace.close()
  }
}

test('with the kind of core and the node where there are several', async () => {
  const calls = decodes(3, [STEP], { cpus: [0, 4, 5], allowed: ['0', '4', '4-7'] })
  expect(await namesOf(calls, HYBRID)).toEqual([
    'worker 0 · CPU 0 (P, node 0)',
    'worker 1 · CPU 4 (E, node 1)',
    'worker 2',
  ])
})

test('not where it changes, and without a topology by its number only', async () => {
  const on = (allowed: readonly string[]) => decodes(1, [STEP], { cpus: [0, 1, 2], allowed })
  const calls = [...on(['0', '1', '2']), ...on(['0', '3', ''])]
  expect(await namesOf(calls, {})).toEqual(['worker 0 · CPU 0', 'worker 1', 'worker 2'])
})
