import { readdirSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { nextQuery } from '../../bin/commands/convert.ts'
import { type ConvertOptions, convert, type Summary, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { pathOf, plainBytes } from '../line/support.ts'
import { inParts, someOf } from '../long.ts'

/** The query that the command proposes after a conversion has an answer: for each fixture, and each kind of trace. */

const FIXTURES = readdirSync(pathOf(''), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name }) => readdirSync(pathOf(name)).map((file) => `${name}/${file}`))
  .filter(
    (name) =>
      !/(\.md|answers\.json|\.py)$/.test(name) && !/\.c$|^ncu\/|^analysis\/|^(perf-data|trace-dat)\/.*\.txt/.test(name),
  )

/** Rows of the proposed query, or undefined where nothing is drawn: such a log is refused. */
async function rowsOf(names: readonly string[], options: ConvertOptions): Promise<number | undefined> {
  let summaries: readonly Summary[] = []
  async function* trace() {
    const inputs = names.map((name) => ({ name, source: plainBytes(name) }))
    summaries = yield* convert(inputs, options)
  }
  const open = await openTrace(trace())
  try {
    const isDrawn = summaries.some(({ drawn }) => drawn > 0)
    return isDrawn ? open.query(nextQuery(summaries, options)).rows.length : undefined
  } finally {
    open.close()
  }
}

describe.each([
  ['perfetto', someOf(FIXTURES, 24)],
  ['json', someOf(FIXTURES, 24, 6)],
] as const)('in a %s trace', (to, fixtures) => {
  inParts(test).each(fixtures)('of %s', async (name) => {
    expect(await rowsOf([name], { to })).not.toBe(0)
  })

  test('of several kernels without copies', async () => {
    const summary = await summarize({ name: 'log', source: plainBytes('opencl-csv/real.csv') })
    expect(nextQuery([summary], { to }).includes('gpu_slice')).toBe(to === 'perfetto')
  })

  test('of one call, of which no operator was recorded, and of two logs', async () => {
    expect(await rowsOf(['profinfer-csv/tiny.csv'], { to, tokens: [0, 0] })).toBeGreaterThan(0)
    const both = ['profinfer-csv/moe-2threads.csv.gz', 'profinfer-ktrace/real.txt']
    expect(await rowsOf(both, { to })).toBeGreaterThan(0)
  })
})
