import { readdirSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { isOwnError } from '../../lib/errors.ts'
import { Names } from '../../lib/index.ts'
import { traceOf } from '../../lib/pipeline/convert.ts'
import { withKnown } from '../../lib/read/index.ts'
import { inParts, someOf } from '../long.ts'
import { PrintingSink } from '../printing-sink.ts'
import { FIXTURES, plainBytes } from './support.ts'

/** A summary counts as drawn what is drawn: the CLI refuses a log of which that is nothing. */

/** Larger files take long, and have no other kinds of events. */
const BYTES_MAX = 1 << 20
const HEADS = 6

const fixtures = readdirSync(FIXTURES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name }) => readdirSync(`${FIXTURES}/${name}`).map((file) => `${name}/${file}`))
  .filter((path) => !path.endsWith('.md') && !path.includes('/answers.') && !/\.(?:npz|gguf)$/.test(path))

/** The input, and its beginnings of few lines: in some of them is nothing to draw. */
function* beginnings(bytes: Uint8Array): Generator<Uint8Array> {
  yield bytes
  for (let end = bytes.indexOf(0x0a) + 1, n = 0; end > 0 && n < HEADS; end = bytes.indexOf(0x0a, end) + 1, n++) {
    yield bytes.subarray(0, end)
  }
}

/** Lines that are drawn, but for issues; and what the summary counts. Undefined: the input is refused. */
async function shownAndCounted(bytes: Uint8Array) {
  const names = new Names()
  const sink = new PrintingSink(names)
  try {
    const trace = traceOf([{ name: 'log', source: bytes }], withKnown({}), names, sink)
    for (;;) {
      const { done, value } = await trace.next()
      if (!done) continue
      const [{ drawn, left_out }] = value as unknown as [{ drawn: number; left_out: readonly unknown[] }]
      const shown = sink.lines().filter((line) => line.includes(' | ') && !line.startsWith('Issues'))
      return { isShown: shown.length > 0, isCounted: drawn > 0, left_out }
    }
  } catch (error) {
    if (isOwnError(error)) return undefined
    throw error
  }
}

describe('what is counted as drawn', () => {
  inParts(test).each(someOf(fixtures, 6))('%s', async (fixture) => {
    const whole = plainBytes(fixture)
    if (whole.length > BYTES_MAX) return
    let n = 0
    for (const bytes of beginnings(whole)) {
      const found = await shownAndCounted(bytes)
      if (found) expect([bytes.length, found]).toEqual([bytes.length, { ...found, isCounted: found.isShown }])
      n++
    }
    expect(n).toBeGreaterThan(0)
  })
})
