import { expect, test } from '@jest/globals'
import { lookedAt } from '../../../lib/analysis.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'
import { inputOf } from '../../../lib/node.ts'
import { STORED_LOGS } from '../stored-logs.ts'

/** What `why` lists as checked and not reported, of all stored logs: nothing that takes more than a fifth of the time is left to the reader. */

const FIFTH = 20

/** Shares in the figures without a finding, in percent. */
const sharesIn = (analysis: Analysis) =>
  lookedAt(analysis).flatMap(({ figures }) =>
    figures
      .filter(({ finding }) => !finding)
      .flatMap(({ figure }) =>
        [...figure.matchAll(/([\d.]+) %/g)].map(([, share]) => ({ figure, share: Number(share) })),
      ),
  )

test('no share above a fifth is among what was checked and not reported', async () => {
  const found: string[] = []
  let [analysed, shares] = [0, 0]
  for (const log of STORED_LOGS) {
    const analysis = await analyze(inputOf(log)).catch(({ name }) => {
      // Companions, and files that are no log.
      expect([log, name]).toEqual([log, expect.stringMatching(/^(?:UsageError|FormatError)$/)])
    })
    if (!analysis) continue
    analysed++
    const all = sharesIn(analysis)
    shares += all.length
    for (const { figure, share } of all) if (share > FIFTH) found.push(`${log}: ${figure}`)
  }
  expect(found).toEqual([])
  expect(analysed).toBeGreaterThan(150)
  expect(shares).toBeGreaterThan(100)
})
