import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Arg } from '../../lib/model/args.ts'
import { Names } from '../../lib/model/names.ts'
import { openTrace } from '../../lib/node.ts'
import type { Label } from '../../lib/sink/label.ts'
import type { Track } from '../../lib/sink/track.ts'
import type { Writer } from '../../lib/sink/writer.ts'
import { JsonWriter } from '../../lib/write/chrome-json/json-writer.ts'
import { TRACE_KINDS, traceKindOf, writerOf } from '../../lib/write/index.ts'
import { inParts, isLong } from '../long.ts'
import { type Content, jsonContent, perfettoContent } from './same.ts'

/** The JSON writer against JSON.parse, and against the protobuf writer with whatever names and nestings there may be. */

const decode = (bytes: Uint8Array) => new TextDecoder('utf-8', { fatal: true }).decode(bytes)
const wellFormed = (text: string) => Buffer.from(text).toString()

/** Any UTF-16, halves of pairs and control characters included. */
const anyText = fc.oneof(
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '\u0000',
    '</script>',
    '\u2028\u2029',
    '\ud800',
    '\udc00\ud800',
    'x'.repeat(70_000),
  ),
)

describe('JsonWriter', () => {
  const written = (write: (writer: JsonWriter) => void) => {
    const writer = new JsonWriter()
    write(writer)
    expect(writer.size).toBeGreaterThan(0)
    const text = decode(writer.take())
    expect(writer.size).toBe(0)
    return text
  }

  inParts(test)('any text comes back, halves of pairs as U+FFFD', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(JSON.parse(written((writer) => writer.text(text)))).toBe(wellFormed(text))
      }),
      { numRuns: isLong ? 1000 : 200 },
    )
  })

  inParts(test)('any finite number comes back; the others as texts', () => {
    const number = fc.oneof(fc.double(), fc.maxSafeInteger(), fc.nat(), fc.constantFrom(0, -0, 2 ** 32 - 1, 2 ** 32))
    fc.assert(
      fc.property(number, (value) => {
        const expected = Number.isFinite(value) ? value + 0 : String(value)
        for (const kind of ['number', 'double'] as const) {
          const text = written((writer) => writer[kind](value))
          expect(JSON.parse(text)).toBe(expected)
          if (kind === 'double' && Number.isFinite(value)) expect(text).toMatch(/[.e]/)
        }
      }),
      { numRuns: isLong ? 1000 : 200 },
    )
  })

  inParts(test)('nanoseconds survive as microseconds', () => {
    const edges = [0, 1, 999, 1000, 999_999_999, 1e9, 86_400e9, 86_400e9 + 1, 2 ** 53 - 1]
    fc.assert(
      fc.property(fc.oneof(fc.constantFrom(...edges), fc.maxSafeInteger()), (ns) => {
        const text = written((writer) => writer.micros(ns))
        expect(text).toMatch(/^-?(0|[1-9]\d*)\.\d{3}$/)
        expect(BigInt(text.replace('.', ''))).toBe(BigInt(ns))
        expect(JSON.parse(text)).toBeCloseTo(ns / 1000, -1)
      }),
      { numRuns: isLong ? 1000 : 200 },
    )
  })

  test('a kind goes by the ending', () => {
    const names = ['a.json', 'a.JSON', 'a.json.gz', 'a.pftrace', 'json', 'a.json.pftrace', '-', '']
    const json = ['a.json', 'a.JSON', 'a.json.gz']
    expect(names.filter((name) => traceKindOf(name) === 'json')).toEqual(json)
  })
})

const ORIGIN_NS = 1_700_000_000_123_456_789n
const ZERO_NS = ORIGIN_NS - 86_400_000_000_000n

/** What is done to both writers. */
type Step =
  | { readonly do: 'begin' | 'instant'; readonly row: number; readonly afterNs: number; readonly say: Say }
  | { readonly do: 'end'; readonly row: number; readonly afterNs: number }
  | { readonly do: 'count'; readonly afterNs: number; readonly value: number }

interface Say {
  readonly name: string
  readonly isInterned: boolean
  readonly args: readonly { readonly key: string; readonly value: string | number; readonly isPointer: boolean }[]
  readonly flows: readonly number[]
}

const ROWS = 3
/** Tables show texts up to a NUL only, and no name at all as one of two words. */
const sqlText = anyText.filter((text) => text.length < 1000).map((text) => `${text.replaceAll('\0', '0')}.`)
const key = fc.string({ unit: fc.constantFrom(...'abcxyz_"\\ é'), minLength: 1, maxLength: 8 })
const say: fc.Arbitrary<Say> = fc.record({
  name: sqlText,
  isInterned: fc.boolean(),
  args: fc.uniqueArray(
    fc.record({
      key,
      value: fc.oneof(
        sqlText,
        fc.maxSafeInteger(),
        fc.integer({ min: -500, max: 500 }).map((value) => value / 8),
      ),
      isPointer: fc.boolean(),
    }),
    { maxLength: 3, selector: ({ key }) => key },
  ),
  flows: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 2 }),
})
const row = fc.nat(ROWS - 1)
/** Often none: what begins and ends at once is where readers differ. */
const afterNs = fc.oneof(fc.constant(0), fc.nat(2000))
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constantFrom('begin' as const, 'instant' as const), row, afterNs, say }),
    fc.record({ do: fc.constant('end' as const), row, afterNs }),
    fc.record({ do: fc.constant('count' as const), afterNs, value: fc.maxSafeInteger() }),
  ),
  { maxLength: 60 },
)

function labelOf(names: Names, { name, isInterned, args, flows }: Say, id: number): Label {
  const extra = args.map(({ key, value, isPointer }): Arg => {
    const common = { key: names.id(key) }
    if (typeof value === 'string') return isInterned ? { ...common, name: names.id(value) } : { ...common, text: value }
    if (!Number.isInteger(value)) return { ...common, double: value }
    return isPointer && value >= 0 ? { ...common, pointer: value } : { ...common, int: value }
  })
  const half = extra.length >> 1
  return {
    name: isInterned ? names.id(name) : name,
    category: 'range',
    args: half > 0 ? { id, args: extra.slice(0, half) } : undefined,
    extra: extra.slice(half),
    flows: flows.length > 0 ? flows : undefined,
  }
}

/** Groups in groups, a row at the top, two counters of one name. */
function define(writer: Writer, names: readonly string[]): void {
  const [top, inner, ...rows] = names
  const common = { description: names.join(), unit: 'bytes' as const }
  const tracks: (Omit<Track, 'description' | 'uuid'> & { uuid: number })[] = [
    { uuid: 11, parent: 0, name: top!, rank: 1, kind: 'group' },
    { uuid: 12, parent: 11, name: inner!, rank: 7, kind: 'group' },
    { uuid: 1, parent: 11, name: rows[0]!, rank: 2, kind: 'slices' },
    { uuid: 2, parent: 12, name: rows[1]!, rank: 5, kind: 'slices' },
    { uuid: 3, parent: 12, name: rows[2]!, rank: 3, kind: 'slices' },
    { uuid: 4, parent: 12, name: rows[3]!, rank: 9, kind: 'counter' },
  ]
  for (const track of tracks) writer.track({ ...common, ...track })
}

function play(writer: Writer, names: Names, rowNames: readonly string[], script: readonly Step[]): void {
  writer.origin('REALTIME', ORIGIN_NS)
  define(writer, rowNames)
  const depths = new Array<number>(ROWS).fill(0)
  let atNs = -5000
  for (const [i, step] of script.entries()) {
    atNs += step.afterNs
    if (step.do === 'count') writer.counter(4, atNs, step.value)
    else if (step.do === 'instant') writer.instant(step.row + 1, atNs, labelOf(names, step.say, i))
    else if (step.do === 'begin') {
      depths[step.row]!++
      writer.begin(step.row + 1, atNs, labelOf(names, step.say, i))
    } else if (depths[step.row]! > 0) {
      depths[step.row]!--
      writer.end(step.row + 1, atNs)
    }
  }
  for (const [row, depth] of depths.entries()) for (let open = depth; open > 0; open--) writer.end(row + 1, atNs)
  writer.attributes({ generator: 'test', __proto__: 'x', ['"']: 5 })
  writer.finish()
}

describe('ChromeJsonWriter', () => {
  inParts(test)('whatever is written is in trace_processor as from the protobuf', async () => {
    const rowNames = fc.uniqueArray(sqlText, { minLength: 6, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(rowNames, steps, async (rows, script) => {
        const [perfetto, json] = await Promise.all(TRACE_KINDS.map((kind) => contentOf(kind, rows, script)))
        expect(json).toEqual(perfetto)
      }),
      { numRuns: isLong ? 25 : 6 },
    )
  })

  const contentOf = async (kind: (typeof TRACE_KINDS)[number], rows: string[], script: Step[]): Promise<Content> => {
    const names = new Names()
    const writer = new (await writerOf(kind))(names)
    play(writer, names, rows, script)
    const bytes = writer.take()
    if (kind === 'json') JSON.parse(decode(bytes))
    const trace = await openTrace(bytes)
    try {
      expect(trace.problems()).toEqual([])
      return kind === 'json' ? jsonContent(trace, ZERO_NS) : perfettoContent(trace)
    } finally {
      trace.close()
    }
  }

  test('counters of one name in one group stay apart, and rows below rows or at the top have a process', async () => {
    const names = new Names()
    const writer = new (await writerOf('json'))(names)
    writer.origin('MONOTONIC', 5n)
    const common = { description: '', rank: 0, unit: 'count' as const }
    writer.track({ ...common, uuid: 1, parent: 0, name: 'alone', kind: 'slices' })
    writer.track({ ...common, uuid: 2, parent: 1, name: 'below', kind: 'slices' })
    for (const uuid of [3, 4, 5]) writer.track({ ...common, uuid, parent: 1, name: 'same', kind: 'counter' })
    writer.instant(2, 7, { name: 'here', category: 'issue' })
    for (const uuid of [3, 4, 5]) writer.counter(uuid, 7, uuid === 4 ? NaN : uuid)
    writer.finish()
    const trace = await openTrace(writer.take())
    expect(trace.problems()).toEqual([])
    const { slices, samples } = jsonContent(trace, 0n)
    trace.close()
    expect(slices).toEqual([`["alone: below","here","issue",0,0,"86400000000007",""] in the row`])
    expect(samples).toEqual([
      '["alone: same (2) count","86400000000007","null"]',
      '["alone: same (3) count","86400000000007","5"]',
      '["alone: same count","86400000000007","3"]',
    ])
  })
})
