import { describe, expect, test } from '@jest/globals'
import { analyze, convert, type Input } from '../../lib/index.ts'
import { FORMATS } from '../../lib/read/index.ts'
import { corpusOf } from '../fuzz/corpus.ts'
import { withDatabase } from '../read/databases.ts'
import { type Doubling, doublingsOfJson, doublingsOfLines } from './doublings.ts'
import { plainBytes } from './support.ts'
import { workDone } from './work.ts' // before all that it counts

/**
 * Twice as much of anything is some twice the work, for each format that can be read: lines, numbers, names, elements, keys, levels, the
 * length of a line. Work is counted, not timed; what single formats can have more of is in complexity.long.test.ts.
 */

/** Twice of something may cost this many times the work. */
const RATIO_MAX = 2.5
/** How many of it: those whose work is that of the rest of the input, twice these, and, to be sure, more. */
const [FEW, COUNT, MORE] = [4, 80, [640, 2560, 5120]]
/** What is read, not refused, is at least this many times the work of a few. */
const GROWTH_MIN = 1.1
/** Counts are lost where code is thrown away and made again: some 3 in 2 800 to 76 in 57 000. What is within this part is not growth. */
const LOST_MAX = 0.02

type Grown = readonly [what: string, make: (count: number) => Uint8Array | string]

const CORPUS = corpusOf()

const repeated = (bytes: Uint8Array, count: number) => Buffer.concat(Array.from({ length: count }, () => bytes))

/** A perf.data whose records are repeated; what lies behind them is left out. */
function perfData(count: number): Uint8Array {
  const file = Buffer.from(plainBytes('perf-data/own-switches.data.gz'))
  const [offset, size] = [40, 48].map((at) => Number(file.readBigUInt64LE(at))) as [number, number]
  const records = file.subarray(offset, offset + size)
  file.writeBigUInt64LE(BigInt(size * count), 48)
  file.fill(0, 72, 104) // the list of what lies behind
  return Buffer.concat([file.subarray(0, offset), repeated(records, count)])
}

/** A trace.dat whose last CPU has its pages again and again. */
function traceDat(count: number): Uint8Array {
  const file = Buffer.from(plainBytes('trace-dat/local-v6.dat.gz'))
  const word = Buffer.from('flyrecord\0')
  const table = file.indexOf(word) + word.length
  const cpus: { at: number; offset: number; size: number }[] = []
  for (let at = table; at + 16 <= file.length; at += 16) {
    const [offset, size] = [at, at + 8].map((at) => Number(file.readBigUInt64LE(at))) as [number, number]
    if (offset <= table || offset > file.length) break
    cpus.push({ at, offset, size })
  }
  const { at, offset, size } = cpus
    .filter(({ size }) => size > 0)
    .sort((a, b) => a.offset - b.offset)
    .at(-1)!
  file.writeBigUInt64LE(BigInt(size * count), at + 8)
  return Buffer.concat([file.subarray(0, offset), repeated(file.subarray(offset, offset + size), count)])
}

/** A report of nsys whose kernels are repeated. */
function nsys(count: number): Uint8Array {
  return withDatabase(plainBytes('nsys/one-gpu.sqlite.gz'), (db) => {
    const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`
    db.exec(`CREATE TABLE more AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1`)
    db.exec(`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL ${numbers} SELECT more.* FROM more, n`)
  })
}

/** The parts of a binary file that can be repeated. */
const BINARY: Readonly<Record<string, readonly Grown[]>> = {
  'perf-data': [['the records', (count) => perfData(count / 4)]],
  'trace-dat': [['the pages', (count) => traceDat(count / 4)]],
  nsys: [['kernels', nsys]],
  ggtrace: [['the blocks', (count) => repeated(plainBytes('ggtrace/tiny.ggtrace'), count / 4)]],
  'tensor-trace': [
    ['the records', (count) => repeated(plainBytes('tensor-trace/tiny-256.bin').subarray(0, 2560), count / 4)],
  ],
}

function jsonOf(text: string): object | undefined {
  try {
    const value = JSON.parse(text)
    return typeof value === 'object' ? value : undefined
  } catch {
    return undefined
  }
}

/** What can grow in the inputs of a format. */
function grownOf(format: string): readonly Grown[] {
  if (BINARY[format]) return BINARY[format]
  const texts = (CORPUS.get(format) ?? []).map((bytes) => new TextDecoder().decode(bytes))
  const document = texts.map(jsonOf).find((value) => value !== undefined)
  const lines = texts.find((text) => !jsonOf(text) && text.split('\n').length > 2)
  const grown: [string, Doubling][] = []
  if (document) grown.push(...doublingsOfJson(document as never))
  if (lines !== undefined) grown.push(...doublingsOfLines(lines))
  return grown
}

const LOG = plainBytes('tensor-trace/tiny-256.bin')

/** What an input is made into; a companion beside a log. */
function waysOf(isCompanion: boolean) {
  const inputs = (source: Uint8Array): Input[] => [
    ...(isCompanion ? [{ name: 'log', source: LOG }] : []),
    { name: 'more', source },
  ]
  /** Is it read? */
  const run = async (make: () => Promise<unknown>): Promise<boolean> => {
    try {
      await make()
      return true
    } catch (error) {
      const { name } = error as Error
      if (name !== 'FormatError' && name !== 'UsageError') throw error
      return false
    }
  }
  return {
    trace: (source: Uint8Array) =>
      run(async () => {
        for await (const _ of convert(inputs(source), { findings: true }));
      }),
    figures: (source: Uint8Array) => run(() => analyze(inputs(source))),
  }
}

type Run = (source: Uint8Array) => Promise<boolean>

/**
 * The work of an input with `count` of something, and of one with twice as many, beside that of one with a few. Each look at the counts takes
 * longer than most inputs: once for each input. Making inputs is no work of lib, so each look is the start of the next.
 */
async function worksOf(make: Grown[1], run: Run, count: number) {
  const works: number[] = []
  let isRead = false
  for (const each of [FEW, count, 2 * count]) {
    isRead = await run(new Uint8Array(Buffer.from(make(each) as string)))
    works.push(workDone())
  }
  const [few, once, twice] = works as [number, number, number]
  const lost = LOST_MAX * few
  return {
    isRead,
    ratio: twice - few <= lost ? 1 : (twice - few) / Math.max(once - few, lost),
    grows: twice > GROWTH_MIN * few,
  }
}

describe('twice as much of anything is some twice the work', () => {
  test.each(FORMATS.map(({ name, isCompanion = false }) => ({ name, isCompanion })))('$name', async (format) => {
    const grown = grownOf(format.name)
    expect(grown).not.toEqual([])
    const found: string[] = []
    let isAnyRead = false
    const ways = Object.entries(waysOf(format.isCompanion))
    for (const [, run] of ways) await worksOf(grown[0]![1], run, COUNT) // what is made once is made from here on; and a look
    for (const [what, make] of grown) {
      for (const [way, run] of ways) {
        let { isRead, grows, ratio } = await worksOf(make, run, COUNT)
        isAnyRead ||= isRead && grows
        // What is in the first bytes may cost nothing more, all once more in the next piece, or be read twice from a size on; and counts
        // may be lost: at one count, not at each.
        for (const count of MORE) if (!(ratio < RATIO_MAX)) ratio = (await worksOf(make, run, count)).ratio
        if (!(ratio < RATIO_MAX)) found.push(`${way} of ${what}: ${ratio.toFixed(2)}`)
      }
    }
    expect({ found, isAnyRead }).toEqual({ found: [], isAnyRead: true })
  })
})
