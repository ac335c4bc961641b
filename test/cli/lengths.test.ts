import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { FIXTURES, plainBytes } from '../line/support.ts'
import { inParts, isLong, someOf } from '../long.ts'
import { ROOT } from '../tables/of-logs.ts'
import { run, useFolder } from './helpers.ts'

/** How much the first look, an issue's text and `why` print, of all fixtures and examples. */

/** Larger ones are of the same kinds, and take longer. */
const BYTES_MAX = 2 << 20
/** Files that complete others. */
const NO_LOG = /\.(md|c|answers\.json)$|^analysis\//

const LOGS = someOf(
  [
    ...readdirSync(FIXTURES, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap(({ name }) => readdirSync(join(FIXTURES, name)).map((file) => `${name}/${file}`))
      .filter((name) => !NO_LOG.test(name) && plainBytes(name).length <= BYTES_MAX)
      .map((name) => join(FIXTURES, name)),
    ...['llama', 'moe', 'qwen2'].map((name) => join(ROOT, `examples/${name}.ggtrace.gz`)),
  ],
  16,
)

const linesOf = (text: string) => text.replace(/\n$/, '').split('\n')
/** A path or a name that is longer remains whole, on a line of its own. */
const longer = (lines: readonly string[], columns: number) =>
  lines.filter((line) => line.length > columns && line.trim().includes(' '))

useFolder()

/** The lines of a command; none where there is nothing to analyse. */
function printed(args: readonly string[], columns?: number): string[] {
  const { code, stdout } = run(args, { columns, env: { NO_COLOR: '1' } })
  return code === 0 ? linesOf(stdout) : []
}

inParts(describe)('of all fixtures', () => {
  let looked = 0

  test('stats: at most 25 lines of 80 columns', () => {
    for (const log of LOGS) {
      const lines = printed(['stats', log])
      expect([log, lines.length <= 25, longer(lines, 80)]).toEqual([log, true, []])
      if (lines.length > 0) looked++
    }
    expect(looked).toBeGreaterThan(isLong ? 50 : 3)
  }, 300_000)

  test('stats --markdown: at most 20 lines of 80 columns before the details', () => {
    for (const log of LOGS) {
      const lines = printed(['stats', '--markdown', log])
      const details = lines.findIndex((line) => line.includes('<details>'))
      const shown = details < 0 ? lines : lines.slice(0, details)
      // In a browser, each is as many lines as it fills.
      const filled = shown.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / 80)), 0)
      expect([log, filled <= 20]).toEqual([log, true])
    }
  }, 300_000)

  test.each([40, 80, 200])(
    'why wraps at %d columns',
    (columns) => {
      for (const log of LOGS) expect([log, longer(printed(['why', log], columns), columns)]).toEqual([log, []])
    },
    300_000,
  )
})
