import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from '@jest/globals'
import { type ByteSource, type ConvertOptions, convert } from '../../lib/index.ts'
import { checkTrace, convertFile, openTrace } from '../../lib/node.ts'
import { sniffFormat } from '../../lib/read/index.ts'
import { inParts, someOf } from '../long.ts'
import { differences, rowsOf } from './comparer.ts'
import { expectedOfAll, expectedRows } from './expected.ts'
import {
  converted,
  cut,
  FIXTURE_NAMES,
  formatOf,
  joined,
  LARGE_FIXTURES,
  pathOf,
  plainBytes,
  SMALL_FIXTURES,
  storedBytes,
} from './support.ts'

/** Every fixture through the whole line: what the reader told is what trace_processor finds in the trace. */

const DETAILS = ['names', 'shapes', 'full'] as const
const OP_NAMES = ['role', 'op', 'tensor'] as const
const EVERY_OPTION = DETAILS.flatMap((detail) => OP_NAMES.map((opName) => ({ detail, opName })))

/** Each detail and each naming once, in turn for the fixtures of a format; its `tiny` ones get them all. */
const EACH_OPTION = DETAILS.map((detail, i) => ({ detail, opName: OP_NAMES[i]! }))

const folder = mkdtempSync(join(tmpdir(), 'line-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function rowsIn(trace: Uint8Array): Promise<string[]> {
  const open = await openTrace(trace)
  try {
    expect(open.problems()).toEqual([])
    return rowsOf(open)
  } finally {
    open.close()
  }
}

async function compare(fixture: string, options: ConvertOptions): Promise<number> {
  const bytes = plainBytes(fixture)
  const expected = await expectedRows(bytes, options)
  expect(differences(expected, await rowsIn(await converted(bytes, options)))).toEqual([])
  return expected.length
}

test('there are fixtures of every kind, and the script makes the same bytes again', () => {
  expect(SMALL_FIXTURES.length).toBeGreaterThanOrEqual(17)
  expect(LARGE_FIXTURES).toEqual(['profinfer-csv/moe-2threads.csv.gz', 'tensor-trace/moe-2threads.bin.gz'])
  execFileSync(process.execPath, [
    fileURLToPath(new URL('../../scripts/make-fixtures.mjs', import.meta.url)),
    '--check',
  ])
})

test.each(FIXTURE_NAMES)('%s is of the format that its folder names', (fixture) => {
  expect(sniffFormat(plainBytes(fixture).subarray(0, 4096))?.name).toBe(formatOf(fixture))
})

describe('the trace holds what the reader told, and nothing else', () => {
  const isTiny = (fixture: string) => fixture.includes('/tiny')

  inParts(test).each(SMALL_FIXTURES.filter(isTiny))('%s, with every detail and every naming', async (fixture) => {
    for (const options of someOf(EVERY_OPTION, 5, SMALL_FIXTURES.indexOf(fixture)))
      expect(await compare(fixture, options)).toBeGreaterThan(10)
  })

  const others = SMALL_FIXTURES.filter((fixture) => !isTiny(fixture))
  inParts(test).each(someOf(others, 4))('%s, with one detail and naming', async (fixture) => {
    const options = EACH_OPTION[SMALL_FIXTURES.indexOf(fixture) % EACH_OPTION.length]!
    expect(await compare(fixture, options)).toBeGreaterThan(10)
  })

  test.each(LARGE_FIXTURES)('%s', async (fixture) => {
    for (const options of [{}, { detail: 'full', opName: 'tensor' }] as const) {
      expect(await compare(fixture, options)).toBeGreaterThan(1500)
    }
  })

  inParts(test).each(someOf(LARGE_FIXTURES, 2, 1))('%s, of some calls only', async (fixture) => {
    const all = await compare(fixture, {})
    const some = await compare(fixture, { tokens: [1, 3] })
    expect(some).toBeLessThan(all / 2)
  })

  test('two logs in one trace', async () => {
    const sources = LARGE_FIXTURES.map(storedBytes)
    const inputs = sources.map((source, i) => ({ name: `log ${i}`, source }))
    const expected = await expectedOfAll(sources)
    expect(differences(expected, await rowsIn(await joined(convert(inputs))))).toEqual([])
  })

  test('the comparison notices what is missing, superfluous or altered', async () => {
    const bytes = plainBytes('tensor-trace/tiny-v4.bin')
    const expected = await expectedRows(bytes)
    const found = await rowsIn(await converted(bytes))
    expect(differences(expected, found)).toEqual([])
    expect(differences(expected, found.slice(1))).toEqual([expect.stringMatching(/^missing 1 × /)])
    expect(differences(expected, [...found, found[3]!])).toEqual([expect.stringMatching(/^unexpected 1 × /)])
    for (const options of EVERY_OPTION) {
      if (options.detail === 'shapes' && options.opName === 'role') continue
      expect(differences(expected, await rowsIn(await converted(bytes, options)))).not.toEqual([])
    }
    bytes[3 * 1024 + 1]! ^= 1 // 256 ns
    expect(differences(expected, await rowsIn(await converted(bytes)))).not.toEqual([])
  })
})

describe('the same bytes, however the log is fed', () => {
  inParts(test).each(someOf(FIXTURE_NAMES, 6))('%s', async (fixture) => {
    const options = { detail: 'full' } as const
    const stored = storedBytes(fixture)
    const target = join(folder, 'trace.pftrace')
    const { bytes } = await convertFile(pathOf(fixture), target, options)
    const trace = new Uint8Array(readFileSync(target))
    expect(bytes).toBe(trace.length)
    // A recording has each kind of boundary often enough in pieces of a hundred bytes, and each piece is a batch of its own.
    const sizes = LARGE_FIXTURES.includes(fixture) ? [4096, 101] : [4096, 7, 1]
    const plain = plainBytes(fixture)
    const feeds: [string, ByteSource][] = [
      ['as one array', stored],
      ['as one array again', stored],
      ['as an iterable', [stored.subarray(0, 11), new Uint8Array(0), stored.subarray(11)]],
      ...sizes.map((size): [string, ByteSource] => [`in pieces of ${size}`, cut(stored, size)]),
      ...(plain.length === stored.length
        ? []
        : sizes.slice(1).map((size): [string, ByteSource] => [`decompressed, in pieces of ${size}`, cut(plain, size)])),
    ]
    for (const [how, feed] of feeds) {
      const same = Buffer.compare(trace, await converted(feed, options)) === 0
      expect(`${how}: ${same}`).toBe(`${how}: true`)
    }
  })
})

inParts(test).each(
  someOf(
    FIXTURE_NAMES.filter((name) => /\/(tiny|moe)/.test(name)),
    4,
  ),
)('%s: check finds nothing wrong with the trace', async (fixture) => {
  const { walk, problems } = await checkTrace(await converted(storedBytes(fixture)))
  expect(walk.problem).toBeUndefined()
  expect(walk.packets).toBeGreaterThan(10)
  expect(problems).toEqual([])
})
