import { describe, expect, test } from '@jest/globals'
import type { Analysis, Input } from '../../lib/index.ts'
import { plainBytes } from '../line/support.ts'
import { inParts, someOf } from '../long.ts'
import { withDatabase } from './databases.ts'
import { faultsOf, madeOf, textsOfTables } from './made.ts'
import { changed, changedEvents, headlinesOf, impossibleIn, TIMES, WAYS } from './without-times.ts'

/**
 * Inputs of each format, with their times removed, made equal, or put out of order: a duration that depends on them is null, or it is
 * one that the input states; nothing is negative, infinite, or more than its whole.
 */

/** A negative duration or share, or what is none. */
const WRONG = /NaN|Infinity|undefined|(?:^|[ :])[-−]\d[\d. ]* ?(?:ns|µs|ms|s|min|%)(?!\w)/

async function expectPossible(input: Input): Promise<Analysis | undefined> {
  const made = await madeOf(input)
  if (!made) return undefined
  const { analysis, tables } = made
  const texts = [...made.texts, ...(tables ? textsOfTables(tables) : [])]
  expect(
    [...faultsOf(made), ...impossibleIn(analysis), ...texts.filter((text) => WRONG.test(text))].slice(0, 5),
  ).toEqual([])
  return analysis
}

inParts(describe).each(
  TIMES.flatMap(([name, pattern], i) => someOf(WAYS, 4, i).map((way) => ({ name, way, pattern }))),
)('$name, times $way', ({ name, way, pattern }) => {
  test('no impossible duration', async () => {
    const input = { name: 'log', source: changed(plainBytes(name), pattern, way) }
    const analysis = await expectPossible(input)
    if (!analysis) return
    const [{ times }] = analysis.inputs as [Analysis['inputs'][0]]
    const losses = Object.keys(analysis.run.losses).length
    if (way === 'removed') expect(losses > 0 || times !== 'recorded' || analysis.run.duration_ns === null).toBe(true)
    if (way === 'equal') expect(headlinesOf(analysis).filter((value) => value === 0)).toEqual([])
  })
})

/** Of binary formats, the events are changed. */
const BINARY = [
  ...['ggtrace/tiny.ggtrace', 'session/run.ggtrace.gz', 'memory-samples/nano.ggtrace.gz', 'tensor-trace/tiny-v4.bin'],
  ...['tensor-trace/two-threads-out-of-order.bin', 'profinfer-csv/pmc.csv'],
]

describe.each(BINARY)('%s', (name) => {
  inParts(test).each(someOf(['equal', 'reversed', 'random'] as const, 3, BINARY.indexOf(name)))(
    'times %s: no impossible duration',
    async (way) => {
      const analysis = await expectPossible(await changedEvents(plainBytes(name), way))
      if (way === 'equal') expect(headlinesOf(analysis!).filter((value) => value === 0)).toEqual([])
    },
  )
})

test.each([
  ['equal', 'start = 1000, "end" = 1000'],
  ['reversed', 'start = "end", "end" = start'],
  ['removed', 'start = null, "end" = null'],
  ['random', 'start = start * 7 % 99991, "end" = "end" * 7 % 99991'],
])('a database of nsys, times %s', async (way, sets) => {
  const source = withDatabase(plainBytes('nsys/one-gpu.sqlite.gz'), (db) => {
    for (const { name } of db.all("select name from sqlite_master where type = 'table'")) {
      const columns = db.all(`pragma table_info(${name})`).map((column) => column['name'])
      if (columns.includes('start') && columns.includes('end')) db.exec(`update or ignore ${name} set ${sets}`)
    }
  })
  const input = { name: 'log', source }
  const analysis = await expectPossible(input)
  if (way === 'equal') expect(analysis!.gpu!.devices.flatMap(({ time }) => time?.busy_ns ?? 0)).toEqual([0])
})
