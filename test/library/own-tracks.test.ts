import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { OwnEvent } from '../../lib/core.ts'
import { convert, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { pathOf, storedBytes } from '../line/support.ts'
import { zeroOf } from '../origin.ts'

/** Tracks that users bring along, read back by SQL. */

const ORIGIN_NS = 1_000_000n
const INPUT = { kind: 'input', format: 'server', title: 'Server', clock: 'MONOTONIC', attributes: {} } as const
const TRACKS: readonly OwnEvent[] = [
  { kind: 'own-track', id: 7, name: 'Clients', description: 'By client.', holds: 'group' },
  { kind: 'own-track', id: 8, name: 'Nobody', description: 'Stays empty.', holds: 'group' },
  { kind: 'own-track', id: 1, name: 'requests', description: 'From arrival to answer.', group: 7 },
  { kind: 'own-track', id: 2, name: 'queue', description: 'Waiting.', holds: 'counter', unit: 'count' },
  { kind: 'own-track', id: 3, name: 'unused', description: 'Stays empty.' },
]

type Unnamed = Record<string, unknown> & { readonly kind: string; readonly name?: string }

/** An input of own events; their names as texts. */
const server = (...events: Unnamed[]): EventInput => ({
  name: 'server',
  *events(names) {
    yield [{ ...INPUT, originNs: ORIGIN_NS }, ...TRACKS] as TraceEvent[]
    for (const event of events) {
      const name = event.kind !== 'own-track' && event.name !== undefined ? { name: names.id(event.name) } : {}
      yield [{ ...event, ...name } as unknown as TraceEvent]
    }
  },
})

const slice = (name: string, startNs: number, endNs: number, more = {}) => ({
  kind: 'own-slice',
  track: 1,
  name,
  startNs,
  endNs,
  ...more,
})

async function query(input: EventInput, ...queries: string[]): Promise<unknown[][][]> {
  const trace = await openTrace(convert(input))
  try {
    expect(trace.problems()).toEqual([])
    return queries.map((sql) => trace.query(sql).rows as unknown[][])
  } finally {
    trace.close()
  }
}

const SLICES = `select ts - ${ORIGIN_NS}, dur, slice.name, category, depth, track.name
  from slice join track on slice.track_id = track.id order by ts, dur`

describe('own tracks', () => {
  test('slices, instants and samples stand where they were put, below groups of their own', async () => {
    const [slices, counters, tree] = await query(
      server(
        slice('a', 10, 40),
        { kind: 'own-instant', track: 1, name: 'first token', atNs: 25 },
        { kind: 'own-sample', track: 2, atNs: 10, value: 1 },
        { kind: 'own-sample', track: 2, atNs: 40, value: 0.5 },
        { kind: 'own-sample', track: 2, atNs: 30, value: -2 },
      ),
      SLICES,
      `select ts - ${ORIGIN_NS}, value, name, unit from counter join counter_track on track_id = counter_track.id order by ts`,
      'select t.name, p.name from track t left join track p on t.parent_id = p.id order by 1',
    )
    expect(slices).toEqual([
      [10, 30, 'a', 'own', 0, 'requests'],
      [25, 0, 'first token', 'own', 1, 'requests'],
    ])
    expect(counters).toEqual([
      [10, 1, 'queue', 'count'],
      [30, -2, 'queue', 'count'],
      [40, 0.5, 'queue', 'count'],
    ])
    expect(tree).toEqual([
      ['Clients', 'Server'],
      ['Server', null],
      ['queue', 'Server'],
      ['requests', 'Clients'],
    ])
  })

  test('arguments are integers, other numbers and texts', async () => {
    const args = { n: 3, share: 0.25, far: 2 ** 60, client: 'ü' }
    const [rows] = await query(
      server(slice('a', 1, 2, { args })),
      `select key, int_value, real_value, string_value from args where key glob 'debug.*' order by key`,
    )
    expect(rows).toEqual([
      ['debug.client', null, null, 'ü'],
      ['debug.far', null, 2 ** 60, null],
      ['debug.n', 3, null, null],
      ['debug.share', null, 0.25, null],
    ])
  })

  test('a slice that comes late and ends where another begins is not mixed up with it', async () => {
    const [slices] = await query(server(slice('a', 0, 10), slice('c', 20, 30), slice('b', 10, 20)), SLICES)
    expect(slices!.map(([ts, dur, name, , depth]) => [ts, dur, name, depth])).toEqual([
      [0, 10, 'a', 0],
      [10, 10, 'b', 0],
      [20, 10, 'c', 0],
    ])
  })

  test('slices in any order, overlapping or not, keep their times and are never nested', async () => {
    const stretch = fc.tuple(fc.nat(150), fc.nat(12))
    await fc.assert(
      fc.asyncProperty(fc.array(stretch, { minLength: 1, maxLength: 60 }), async (stretches) => {
        const [rows] = await query(
          server(...stretches.map(([start, length], i) => slice(`s${i}`, start, start + length))),
          `select slice.name, ts - ${ORIGIN_NS}, dur, depth from slice`,
        )
        const expected = stretches.map(([start, length], i) => [`s${i}`, start, length])
        const byName = (a: unknown[], b: unknown[]) => (String(a[0]) < String(b[0]) ? -1 : 1)
        expect(rows!.map((row) => row.slice(0, 3)).sort(byName)).toEqual(expected.sort(byName))
        // What takes no time may lie at the border of another; nothing else is drawn within one.
        expect(rows!.filter(([, , dur, depth]) => depth !== 0 && dur !== 0)).toEqual([])
      }),
      { numRuns: 8 },
    )
  })

  test("stand beside a log's tracks, on one clock, and change nothing on those", async () => {
    const log = { name: 'log', source: storedBytes('tensor-trace/moe-2threads.bin.gz') }
    const operators = (zeroNs = 0n) =>
      `select count(*), sum(ts + ${zeroNs}), sum(dur) from slice where category = 'operator'`
    const alone = await openTrace(convert(log))
    const zeroNs = zeroOf(alone)
    const [[count, sum, dur]] = alone.query(operators(zeroNs)).rows as [number[]]
    const [[firstNs]] = alone.query(`select min(ts) + ${zeroNs} from slice where category = 'operator'`).rows as [
      [number],
    ]
    alone.close()
    const beside = server(slice('all', firstNs! - Number(ORIGIN_NS), firstNs! - Number(ORIGIN_NS) + 5))
    const trace = await openTrace(convert([log, beside]))
    expect(trace.query(operators()).rows).toEqual([[count, sum, dur]])
    expect(trace.query(`select name, ts, dur from slice where category = 'own'`).rows).toEqual([['all', firstNs, 5]])
    const roots = trace.query('select name from track where parent_id is null order by name').rows
    expect(roots.map(([name]) => String(name).slice(0, 6))).toEqual(['LLM ru', 'Server'])
    trace.close()
  })

  test('can be drawn within the group of a log, from its own events', async () => {
    const { convert: run, eventsOf } = await import('../../lib/index.ts')
    const { inputOf } = await import('../../lib/node.ts')
    const withRates: EventInput = {
      name: 'log',
      async *events(names) {
        for await (const batch of eventsOf(inputOf(pathOf('tensor-trace/moe-2threads.bin.gz')), names)) {
          yield batch
          if (batch[0]?.kind === 'input') {
            yield [{ kind: 'own-track', id: 0, name: 'batch size', description: 'Tokens.', holds: 'counter' }]
          }
          for (const event of batch) {
            if (event.kind !== 'token') continue
            yield [{ kind: 'own-sample', track: 0, atNs: event.startNs, value: event.tokens }]
          }
        }
      },
    }
    const trace = await openTrace(run(withRates))
    const { rows } =
      trace.query(`select p.name glob 'LLM*', count(c.id) = (select count(*) from slice where category = 'token')
      from track t join track p on t.parent_id = p.id join counter c on c.track_id = t.id where t.name = 'batch size' group by 1`)
    expect(rows).toEqual([[1, 1]])
    trace.close()
  })
})

describe('what is wrong with own events is an error that says what is right', () => {
  test.each<[string, Unnamed, string]>([
    [
      'an unknown track',
      slice('a', 1, 2, { track: 99 }),
      'own-slice: expected the id of an earlier own-track event, found 99',
    ],
    [
      'a slice on a counter',
      slice('a', 1, 2, { track: 2 }),
      'own-slice: expected a track of slices, found "queue" (counter)',
    ],
    [
      'a sample on slices',
      { kind: 'own-sample', track: 1, atNs: 1, value: 1 },
      'own-sample: expected a track of counter, found "requests" (slices)',
    ],
    [
      'milliseconds',
      slice('a', 1.5, 2),
      'own-slice on track "requests": expected startNs in whole nanoseconds since the origin, found 1.5',
    ],
    [
      'no end',
      slice('a', 1, Number.NaN),
      'own-slice on track "requests": expected endNs in whole nanoseconds since the origin, found NaN',
    ],
    [
      'an end before the start',
      slice('a', 5, 4),
      'own-slice on track "requests": expected endNs at or after startNs (5), found 4',
    ],
    [
      'a value that is none',
      { kind: 'own-sample', track: 2, atNs: 1, value: Number.NaN },
      'own-sample on track "queue": expected a finite value, found NaN',
    ],
    [
      'an id twice',
      { kind: 'own-track', id: 1, name: 'x', description: '' },
      'own-track 1 ("x"): this id is defined already',
    ],
    [
      'a group that is none',
      { kind: 'own-track', id: 9, name: 'x', description: '', group: 2 },
      'own-track: expected a group or a track of slices, found "queue" (counter)',
    ],
  ])('%s', async (_, event, message) => {
    const run = async () => {
      for await (const _piece of convert(server(event)));
    }
    await expect(run()).rejects.toThrow(new Error(message))
  })
})
