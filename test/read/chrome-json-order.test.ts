import { describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { randomOf } from '../line/support.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { documentOf, type JsonEvent, linesOf, rowsOf, SLICES, toldOf } from './chrome-json/documents.ts'

/** Begins and ends of Chrome JSON in any order: they pair in order of time. */

const at = (ph: string, name: string | undefined, ts: number, more: JsonEvent = {}) => ({
  ph,
  pid: 1,
  tid: 2,
  ...(name !== undefined && { name }),
  ts,
  ...more,
})

describe('order of time, not of the file', () => {
  test('a begin and an end of a thread', async () => {
    const events = [at('E', 'late', 50), at('B', 'early', 1), at('E', 'early', 2), at('B', 'late', 40)]
    expect(await toldOf(events)).toMatchObject({ issues: [] })
    expect(await linesOf(events)).toEqual([
      'process 1/thread 2 | 1000–2000 early',
      'process 1/thread 2 | 40000–50000 late',
    ])
  })

  test('asynchronous slices that one process begins and another one, whose events are first, ends; ids are reused', async () => {
    const ends: JsonEvent[] = []
    const begins: JsonEvent[] = []
    const expected: unknown[] = []
    for (let i = 0; i < 300; i++) {
      const [ts, dur] = [10 + i * 100, 3 + (i % 70)]
      const common = { cat: 'benchmark', id: `0x${(i % 7).toString(16)}`, name: 'InputLatency' }
      begins.push(at('S', 'InputLatency', ts, { ...common, pid: 1 }))
      begins.push(at('T', 'InputLatency', ts + 1, { ...common, pid: 1, args: { step: 'Touch' } }))
      ends.push(at('F', 'InputLatency', ts + dur, { ...common, pid: 2 }))
      expected.push([ts * 1000, dur * 1000])
    }
    const events = [...ends, ...begins]
    expect(await toldOf(events)).toMatchObject({ issues: [] })
    const [rows] = await rowsOf(events, 'SELECT ts, dur FROM slice WHERE dur > 0 ORDER BY ts')
    expect(rows).toEqual(expected)
  })

  inParts(test)('any order of nested ranges of threads and operations is the same', async () => {
    for (const seed of someOf([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 4)) {
      const random = randomOf(seed)
      const { events, expected } = nested(random)
      const keyed = events.map((event) => [random(), event] as const).sort(([a], [b]) => a - b)
      const shuffled = keyed.map(([, event]) => event)
      const [rows] = await rowsOf(shuffled, SLICES)
      expect(rows!.map(([name, ts, dur, depth]) => [name, ts, dur, depth])).toEqual(expected)
      expect((await toldOf(shuffled)).issues).toEqual([])
    }
  })
})

/** Ranges of a thread, of nested and of old asynchronous operations, none at the time of another; and their slices. */
function nested(random: () => number): { events: JsonEvent[]; expected: unknown[][] } {
  const events: JsonEvent[] = []
  const expected: unknown[][] = []
  let clock = 10
  const write = (depth: number, begin: string, end: string, more: JsonEvent) => {
    const name = `${begin}${Math.floor(random() * 3)}`
    const start = clock++
    const slice: unknown[] = [name, start * 1000]
    expected.push(slice)
    for (let left = Math.floor(random() * (4 - depth)); left > 0; left--) write(depth + 1, begin, end, more)
    events.push(at(begin, name, start, more), at(end, random() < 0.5 ? name : undefined, clock, more))
    slice.push((clock - start) * 1000, depth)
    clock += 1 + Math.floor(random() * 4)
  }
  for (let round = 0; round < 5; round++) {
    write(0, 'B', 'E', {})
    write(0, 'b', 'e', { cat: 'request', id: 7 })
    write(0, 'S', 'F', { cat: 'old', id: '0x7' })
  }
  return { events, expected }
}

describe('names', () => {
  test('an end with a name ends the range of that name, and slices that cross each other stay whole', async () => {
    const events = [
      at('B', 'a', 10),
      at('B', 'b', 20),
      at('E', 'a', 30),
      at('E', 'b', 40),
      ...['S', 'F'].flatMap((ph, i) =>
        ['x', 'y'].map((name, j) => at(ph, name, 50 + 10 * (2 * i + j), { cat: 'c', id: 1 })),
      ),
    ]
    expect(await linesOf(events)).toEqual([
      'process 1/thread 2 | 10000–30000 a',
      'process 1/thread 2/thread 2 (2) | 20000–40000 b',
      'process 1/c | 50000–70000 x',
      'process 1/c (2) | 60000–80000 y',
    ])
  })

  test('an end of another name ends nothing', async () => {
    const events = [at('B', 'a', 10), at('E', 'lost', 20), at('E', 'a', 30)]
    expect(await linesOf(events)).toEqual(['process 1/thread 2 | 10000–30000 a'])
    expect((await toldOf(events)).issues).toEqual(['1 × end without a start'])
  })

  test('what never ends is drawn up to the last event, of whatever kind', async () => {
    const events = [at('B', 'open', 10), at('B', 'b', 20), at('E', 'b', 70)]
    expect(await linesOf(events)).toEqual([
      'process 1/thread 2 | 10000–70000 open',
      'process 1/thread 2 | 20000–70000 open > b',
    ])
  })
})

describe('files larger than what is held back', () => {
  const steps = (count: number) =>
    Array.from({ length: count }, (_, i) => [
      at('B', 'step', i * 10 + 10),
      at('B', 'part', i * 10 + 11),
      at('E', undefined, i * 10 + 14),
      { ...at('X', 'whole', i * 10 + 15), dur: 2 },
      at('E', undefined, i * 10 + 19),
    ]).flat()

  inLong(test)('nest as the others', async () => {
    const [rows] = await rowsOf(
      steps(40_000),
      `SELECT s.name, depth, tid, count(*), sum(dur) FROM slice s JOIN thread_track t ON t.id = s.track_id JOIN thread USING (utid)
        GROUP BY 1, 2, 3`,
    )
    expect(rows).toEqual([
      ['part', 1, 2, 40_000, 120_000_000],
      ['step', 0, 2, 40_000, 360_000_000],
      ['whole', 1, 2, 40_000, 80_000_000],
    ])
  })

  test('an issue says that begins and ends come too late to be paired in order of time', async () => {
    const events = [...steps(40_000), at('B', 'late', 12), at('E', 'late', 13)]
    const { issues } = await summarize({ name: 'trace', source: documentOf(events) })
    expect(issues.map(({ code, count, first }) => [code, count, first.atNs, first.detail])).toEqual([
      ['late-begin-or-end', 1, 2000, '2 come after later ones that are paired already; the first one is here'],
    ])
    const [rows] = await rowsOf(events, `SELECT ts, dur FROM slice WHERE name = 'late'`)
    expect(rows).toEqual([[12_000, 1000]])
  })
})
