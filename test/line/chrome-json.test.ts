import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { type ConvertOptions, convert, type Input } from '../../lib/index.ts'
import { convertFile, openTrace } from '../../lib/node.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { type Content, jsonContent, perfettoContent } from './same.ts'
import {
  cut,
  FIXTURE_NAMES,
  joined,
  LARGE_FIXTURES,
  pathOf,
  plainBytes,
  SMALL_FIXTURES,
  storedBytes,
} from './support.ts'

/** Chrome's JSON beside Perfetto's protobuf: the same log as both, through trace_processor, compared by SQL. */

interface ChromeTrace {
  readonly displayTimeUnit: string
  readonly traceEvents: readonly Record<string, unknown>[]
  readonly metadata: Record<string, unknown>
}

const parsed = (bytes: Uint8Array): ChromeTrace => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))

const zeroOf = ({ metadata }: ChromeTrace) =>
  BigInt(metadata['origin_ns'] as string) - BigInt(metadata['origin_ts'] as number) * 1000n

async function contentsOf(inputs: readonly Input[], options: ConvertOptions = {}): Promise<[Content, Content]> {
  const bytes = await joined(convert(inputs, { ...options, to: 'json' }))
  const json = await openTrace(bytes)
  const perfetto = await openTrace(await joined(convert(inputs, { ...options, to: 'perfetto' })))
  try {
    expect(json.problems()).toEqual([])
    return [perfettoContent(perfetto), jsonContent(json, zeroOf(parsed(bytes)))]
  } finally {
    json.close()
    perfetto.close()
  }
}

const inputOf = (fixture: string): Input => ({ name: fixture, source: storedBytes(fixture) })

describe('the same slices, counters, rows, arguments and order as in the protobuf', () => {
  inParts(test).each(someOf(FIXTURE_NAMES, 12))('%s', async (fixture) => {
    const [perfetto, json] = await contentsOf([inputOf(fixture)], { detail: 'full' })
    expect(perfetto.slices.length).toBeGreaterThan(3)
    expect(json).toEqual(perfetto)
  })

  inParts(test).each(someOf(['names', 'shapes'] as const, 2))('at --detail %s', async (detail) => {
    const [perfetto, json] = await contentsOf([inputOf(LARGE_FIXTURES[0]!)], { detail, opName: 'tensor' })
    expect(json).toEqual(perfetto)
  })

  test('of two logs, on one clock', async () => {
    const [perfetto, json] = await contentsOf(LARGE_FIXTURES.map(inputOf))
    expect(json).toEqual(perfetto)
    expect(new Set(json.rows.map((row) => /LLM run( \(\d\))?/.exec(row)![0]))).toEqual(
      new Set(['LLM run', 'LLM run (2)']),
    )
  })

  inLong(test)('and the other way round: the second one began earlier', async () => {
    const [perfetto, json] = await contentsOf([...LARGE_FIXTURES].reverse().map(inputOf))
    expect(json).toEqual(perfetto)
  })
})

describe('the file', () => {
  inParts(test).each(someOf(SMALL_FIXTURES, 9))('%s is the same however the log is cut', async (fixture) => {
    const bytes = plainBytes(fixture)
    const whole = await joined(convert({ name: fixture, source: bytes }, { to: 'json' }))
    for (const size of [1, 333, 4096]) {
      expect(await joined(convert({ name: fixture, source: cut(bytes, size) }, { to: 'json' }))).toEqual(whole)
    }
  })

  test('is valid JSON with one event per line, says its clock, and what rows are', async () => {
    const bytes = await joined(convert(inputOf('profinfer-csv/moe-2threads.csv.gz'), { to: 'json' }))
    const { displayTimeUnit, traceEvents, metadata } = parsed(bytes)
    expect(displayTimeUnit).toBe('ns')
    expect(new TextDecoder().decode(bytes).split('\n')).toHaveLength(traceEvents.length + 3)
    expect(metadata).toMatchObject({
      generator: 'ggml2perfetto',
      format: 'profinfer-csv',
      clock: 'CLOCK_MONOTONIC',
      origin_ns: '3917038898440',
      origin_ts: 86_400_000_000,
      operators: 2664,
    })
    expect(metadata['tracks']).toMatchObject({
      'LLM run': {
        '': expect.stringMatching(/^input: profinfer-csv\n/),
        Tokens: expect.any(String),
        'worker 1': expect.stringMatching(/^Operators that worker 1/),
      },
    })
  })

  test('every time has three decimals, and there are no complete events, which would change the order', async () => {
    const bytes = await joined(convert(inputOf('profinfer-csv/moe-2threads.csv.gz'), { to: 'json' }))
    const lines = new TextDecoder().decode(bytes).split('\n')
    const times = lines.filter((line) => line.includes('"ts":'))
    expect(times.length).toBeGreaterThan(5000)
    expect(times.filter((line) => !/"ts":\d+\.\d{3}[,}]/.test(line))).toEqual([])
    expect(new Set(parsed(bytes).traceEvents.map(({ ph }) => ph))).toEqual(new Set(['M', 'B', 'E', 'C', 's', 't']))
  })

  inLong(test)('comes in pieces that do not grow with the log', async () => {
    const [header, ...rows] = new TextDecoder()
      .decode(plainBytes('profinfer-csv/moe-2threads.csv.gz'))
      .trim()
      .split('\n')
    async function* log(rounds: number) {
      yield Buffer.from(`${header}\n`)
      for (let i = 0; i < rounds; i++) {
        const later = (_: string, index: string, ts: string) => `${index}${Number(ts) + i * 40e6}`
        yield* cut(Buffer.from(`${rows.join('\n')}\n`.replace(/^(\d+,)(\d+)/gm, later)), 64 << 10)
      }
    }
    const sizesOf = async (rounds: number) => {
      const sizes: number[] = []
      const source = log(rounds)
      for await (const { length } of convert({ name: 'log', source }, { to: 'json' })) sizes.push(length)
      return { count: sizes.length, largest: Math.max(...sizes), total: sizes.reduce((sum, size) => sum + size, 0) }
    }
    const [short, long] = [await sizesOf(24), await sizesOf(48)]
    expect(long.total / short.total).toBeCloseTo(2, 1)
    expect(long.count).toBeGreaterThan(short.count * 1.5)
    expect(long.largest).toBeLessThan(short.largest * 1.1) // what a reader looks ahead over, mostly
  })

  test('an input that began more than a day before the first one is refused, with a hint', async () => {
    const rows = new TextDecoder().decode(plainBytes('profinfer-csv/tiny.csv'))
    const late = rows.replace(/^(\d+,)(\d{6,})/gm, (_, index, ts) => `${index}${BigInt(ts) + 86_401_000_000_000n}`)
    const inputs = [late, rows].map((text, i) => ({ name: `log ${i}`, source: new TextEncoder().encode(text) }))
    const moved = { 'log 0': '-172803s' }
    await expect(joined(convert(inputs, { to: 'json', clocks: moved }))).rejects.toThrow(
      /^json: this input began \d+ s before the first one, expected at most a day\nhint: convert them one by one/,
    )
    const [perfetto, json] = await contentsOf(inputs)
    expect(json).toEqual(perfetto)
  })

  test('convertFile takes the kind from the name, unless it is told', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chrome-json-'))
    const firstByteOf = async (name: string, options?: ConvertOptions) => {
      await convertFile(pathOf('profinfer-csv/tiny.csv'), join(folder, name), options)
      return readFileSync(join(folder, name))[0]
    }
    expect(await firstByteOf('a.json', { to: undefined })).toBe(0x7b)
    expect(await firstByteOf('a.pftrace')).toBe(0x0a)
    expect(await firstByteOf('b.json', { to: 'perfetto' })).toBe(0x0a)
    expect(await firstByteOf('b.pftrace', { to: 'json' })).toBe(0x7b)
    rmSync(folder, { recursive: true })
  })

  test('an unknown kind of trace is refused', async () => {
    const options = { to: 'xml' as 'json' }
    await expect(joined(convert(inputOf('profinfer-csv/tiny.csv'), options))).rejects.toThrow(
      'to: expected one of perfetto, json, found "xml"',
    )
  })
})
