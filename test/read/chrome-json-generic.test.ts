import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { OwnSliceEvent } from '../../lib/core.ts'
import { summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { attempt, importFaults } from '../line/hostile.ts'
import { converted, cut, eventsIn, plainBytes, randomOf } from '../line/support.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { ZERO_NS } from '../origin.ts'
import { drawn } from '../printing-sink.ts'
import { nanosecondsOf } from './chrome-json/figures.ts'

/** Chrome JSON that PyTorch's profiler did not write: all kinds of events, all forms of the document; and damage. */

const encode = (text: string) => new TextEncoder().encode(text)
const list = (...events: object[]) => encode(JSON.stringify({ traceEvents: events }))
const X = (name: string, ts: number, dur: number, more = {}) => ({ ph: 'X', pid: 1, tid: 2, name, ts, dur, ...more })

async function rowsOf(bytes: Uint8Array, ...queries: string[]): Promise<(readonly unknown[])[][]> {
  const trace = await openTrace(await converted(bytes))
  try {
    expect(trace.problems()).toEqual([])
    return queries.map((sql) => [...trace.query(sql).rows])
  } finally {
    trace.close()
  }
}
const linesOf = (bytes: Uint8Array) => drawn({ name: 'trace', source: bytes }, {}, { isAbsolute: true })
/** Name of a row: that of its thread, or its own. */
const ROW = `coalesce(t.name, (SELECT ifnull(thread.name, 'thread') || ' ' || tid FROM thread_track JOIN thread USING (utid)
  WHERE thread_track.id = t.id))`
const SLICES = `SELECT s.name, ts, dur, depth, category, ${ROW} FROM slice s JOIN track t ON t.id = s.track_id
  WHERE ifnull(category, '') != 'issue' ORDER BY ts, depth, s.name`
const titles = async (bytes: Uint8Array) =>
  (await summarize({ name: 'trace', source: bytes })).issues.map(({ title, count }) => `${count} × ${title}`)

describe('events', () => {
  test('slices nest whether they are written when they begin, when they end, or in any order', async () => {
    const events = [X('outer', 10, 100), X('same', 10, 100), X('inner', 20, 5), X('next', 25, 5), X('empty', 30, 0)]
    const expected = [
      ['outer', 10_000, 100_000, 0],
      ['same', 10_000, 100_000, 1],
      ['inner', 20_000, 5000, 2],
      ['next', 25_000, 5000, 2],
      ['empty', 30_000, 0, 2],
    ]
    for (const order of [events, [...events.slice(2).reverse(), ...events.slice(0, 2)]]) {
      const [rows] = await rowsOf(list(...order), SLICES)
      expect(rows!.map((row) => row.slice(0, 4))).toEqual(expected)
    }
    const pairs = [
      { ph: 'B', pid: 1, tid: 2, name: 'outer', ts: 10, cat: 'c', args: { a: 1 } },
      { ph: 'B', pid: 1, tid: 2, name: 'inner', ts: 10 },
      { ph: 'E', pid: 1, tid: 2, ts: 15 },
      { ph: 'E', pid: 1, tid: 2, ts: 15, args: { b: 2 } },
    ]
    expect(
      await rowsOf(list(...pairs), SLICES, `SELECT key, display_value FROM args WHERE key LIKE 'debug.%'`),
    ).toEqual([
      [
        ['outer', 10_000, 5000, 0, 'c', 'thread 2'],
        ['inner', 10_000, 5000, 1, null, 'thread 2'],
      ],
      [
        ['debug.a', '1'],
        ['debug.b', '2'],
      ],
    ])
  })

  test('events are read alike whatever the ones before them were laid out as', async () => {
    const random = randomOf(11)
    const any = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)]!
    const written = Array.from({ length: 600 }, (_, i) => {
      const [k, blank] = [any(['k', 'long key of an argument', 'args', 'ph']), any(['', ' ', '\n    '])]
      const args = any([`{}`, `"${i}"`, 'null', `{"${k}":${blank}${i}}`, `{"l":[${i}, "}"],${blank}"${k}":${i}}`])
      const rest = ['"pid":1', '"tid": 2', '"dur" :1', `"args":${blank}${args}`, `"other":{"args":{"k":${i}}}`]
      const order = rest.map((field) => [random(), field] as const).sort(([a], [b]) => a - b)
      const members = ['"ph":"X"', ...order.map(([, field]) => field), `"name":"e${i}"`, `"ts":${i + 1}`]
      const told = any([members, [...members].reverse()]).join(`,${blank}`)
      return {
        text: `{${blank}${told}${blank}}`,
        expected: [`e${i}`, i * 1000, args.startsWith('{"') ? `${k} ${i}` : ''],
      }
    })
    const bytes = encode(`[${written.map(({ text }) => text).join(',\n')}]`)
    for (const size of [1 << 20, 977, 64]) {
      const { names, events } = await eventsIn(cut(bytes, size))
      const slices = events.filter((event): event is OwnSliceEvent => event.kind === 'own-slice')
      const found = slices.map(({ name, startNs, args }) => {
        const last = (args as readonly { key: number; int?: number }[] | undefined)?.at(-1)
        return [names.text(name), startNs, last ? `${names.text(last.key)} ${last.int}` : '']
      })
      expect(found).toEqual(written.map(({ expected }) => expected))
      expect(events.filter(({ kind }) => kind === 'issue')).toEqual([])
    }
  })

  test('slices that cross each other go to further rows, uncut', async () => {
    expect(await linesOf(list(X('a', 10, 10), X('b', 15, 10)))).toEqual([
      'process 1/thread 2 | 10000–20000 a',
      'process 1/thread 2/thread 2 (2) | 15000–25000 b',
    ])
  })

  test('names of processes and threads, counters, instants, asynchronous operations, arrows', async () => {
    const bytes = list(
      { ph: 'M', pid: 1, name: 'process_name', args: { name: 'server' } },
      { ph: 'C', pid: 1, name: 'queue', ts: 5, args: { waiting: 3 } },
      { ph: 'C', pid: 1, name: 'two', ts: 5, args: { a: 1.5, b: -2 } },
      { ph: 'i', pid: 1, tid: 2, name: 'mark', ts: 7, s: 't', args: { why: 'so' } },
      { ph: 'b', cat: 'request', id: '0x1', pid: 1, name: 'r1', ts: 10 },
      { ph: 'b', cat: 'request', id: '0x2', pid: 1, name: 'r2', ts: 11 },
      { ph: 'b', cat: 'request', id: '0x1', pid: 1, name: 'part', ts: 12 },
      { ph: 'e', cat: 'request', id: '0x1', pid: 1, name: 'part', ts: 13 },
      { ph: 'e', cat: 'request', id: '0x1', pid: 1, name: 'r1', ts: 20 },
      { ph: 'e', cat: 'request', id: '0x2', pid: 1, name: 'r2', ts: 30 },
      X('from', 40, 5),
      X('to', 50, 5, { tid: 3 }),
      X('again', 60, 5),
      X('other', 70, 5, { tid: 3 }),
      ...[40, 60].map((ts) => ({ ph: 's', cat: 'go', id: 'abc', pid: 1, tid: 2, name: 'go', ts })),
      ...[49, 69].map((ts) => ({ ph: 'f', cat: 'go', id: 'abc', pid: 1, tid: 3, name: 'go', ts })),
      { ph: 'O', pid: 1, id: 4, name: 'snapshot', ts: 50, args: { snapshot: {} } },
      { ph: 'M', pid: 1, tid: 2, name: 'thread_name', args: { name: 'main' } },
    )
    const [slices, counters, flows, groups] = await rowsOf(
      bytes,
      SLICES,
      `SELECT t.name, value FROM counter c JOIN track t ON t.id = c.track_id ORDER BY t.name`,
      `SELECT a.name, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in ORDER BY a.ts`,
      `SELECT pid, name FROM process WHERE pid > 0`,
    )
    expect(slices).toEqual([
      ['mark', 7000, 0, 0, null, 'main 2'],
      ['r1', 10_000, 10_000, 0, 'request', 'request'],
      ['r2', 11_000, 19_000, 0, 'request', 'request (2)'],
      ['part', 12_000, 1000, 1, 'request', 'request'],
      ['from', 40_000, 5000, 0, null, 'main 2'],
      ['to', 50_000, 5000, 0, null, 'thread 3'],
      ['again', 60_000, 5000, 0, null, 'main 2'],
      ['other', 70_000, 5000, 0, null, 'thread 3'],
    ])
    expect(counters).toEqual([
      ['queue', 3],
      ['two: a', 1.5],
      ['two: b', -2],
    ])
    expect(flows).toEqual([
      ['from', 'to'],
      ['again', 'other'],
    ])
    expect(groups).toEqual([[1, 'server']])
    const { left_out, clock } = await summarize({ name: 'trace', source: bytes })
    expect(left_out).toMatchObject([{ what: 'object events (N, O, D)', count: 1 }])
    expect(clock).toBe('unknown')
  })

  test('names of processes and threads are whole, whatever characters they have', async () => {
    const names = [
      'CompositorRasterWorker1/21775',
      'kworker/u8:1',
      '/job:worker/task:3/gpu:0',
      '/v1/completions',
      'C:\\a',
    ]
    const name = (what: string, of: string, more: object) => ({
      ph: 'M',
      name: `${what}_name`,
      args: { name: of },
      ...more,
    })
    const numbered = names.flatMap((of, i) => [
      X('s', 10, 5, { pid: 10 + i, tid: 20 + i }),
      name('process', of, { pid: 10 + i }),
      name('thread', of, { pid: 10 + i, tid: 20 + i }),
    ])
    const called = [
      X('s', 10, 5, { pid: 'Spans', tid: 'Host' }),
      name('process', 'all/spans', { pid: 'Spans' }),
      name('thread', 'host/main', { pid: 'Spans', tid: 'Host' }),
    ]
    expect(await linesOf(list(...numbered, ...called))).toEqual([
      ...names.map((of, i) => `${of} ${10 + i}/${of} ${20 + i} | 10000–15000 s`),
      'all/spans Spans/host/main Host | 10000–15000 s',
    ])
  })

  test('threads that are named after thousands of slices are called by that name', async () => {
    const many = Array.from({ length: 5000 }, (_, i) => X('s', i * 10, 5))
    const name = { ph: 'M', pid: 1, tid: 2, name: 'thread_name', args: { name: 'late' } }
    const lines = await linesOf(list(...many, name))
    expect(lines).toEqual(many.map(({ ts }) => `process 1/late 2 | ${ts * 1000}–${ts * 1000 + 5000} s`))
  })

  test('what has no end, no start, or no time is told', async () => {
    const bytes = list(
      X('good', 10, 5),
      { ph: 'B', pid: 1, tid: 2, name: 'open', ts: 12 },
      { ph: 'E', pid: 1, tid: 9, ts: 13 },
      { ph: 'X', pid: 1, tid: 2, name: 'timeless', dur: 1 },
      { ph: 'X', pid: 1, tid: 2, name: 'endless', ts: 14 },
      { pid: 1, name: 'what', ts: 14 },
      X('far', 1e14, 5),
    )
    expect(await titles(bytes)).toEqual([
      '1 × event without a time',
      '1 × event without an end',
      '1 × event without a phase',
      '1 × impossible time',
      '1 × end without a start',
      '1 × range without an end',
    ])
    expect((await linesOf(bytes)).filter((line) => !/Issues/.test(line))).toEqual([
      'process 1/thread 2 | 10000–15000 good',
      'process 1/thread 2 | 12000–15000 good > open',
      'process 1/thread 2 | 14000–14000 good > open > endless',
    ])
  })

  test.each([
    ['slices', 'B', {}, 'too many slices open at once'],
    ['operations', 'b', { id: 7, cat: 'c' }, 'too many slices open at once'],
  ])('%s that never end do not fill the memory', async (_, ph, more, title) => {
    const bytes = list(...Array.from({ length: 5000 }, (_, i) => ({ ph, pid: 1, tid: 2, name: 's', ts: i, ...more })))
    expect(await titles(bytes)).toEqual([`${5000 - 4096} × ${title}`, '1 × range without an end'])
  })
})

describe('documents', () => {
  const events = [X('a', 1, 2), X('b', 4, 2)].map((event) => JSON.stringify(event)).join(',\n')

  test.each([
    ['a list', `[${events}]`],
    ['a list without its end', `[${events}`],
    ['a list with a comma at its end', `[\n${events},\n]`],
    ['a list that ends in a comma', `[${events},\n`],
    ['an object with a comma after its list', `{"traceEvents": [${events},],}`],
    ['a byte order mark before it', `\ufeff{"traceEvents":[${events}]}`],
    ['times in quotes', `[${events.replaceAll(/"(ts|dur)":(\d+)/g, '"$1":"$2"')}]`],
    ['other members before and behind', `{"a":{"traceEvents":[1]},"traceEvents":[${events}],"z":[{"ph":"X"}]}`],
  ])('%s', async (_, text) => {
    expect(await titles(encode(text))).toEqual([])
    expect(await linesOf(encode(text))).toEqual([
      'process 1/thread 2 | 1000–3000 a',
      'process 1/thread 2 | 4000–6000 b',
    ])
  })

  test('an object that is cut is told of, and damage costs one event', async () => {
    expect(await titles(encode(`{"traceEvents":[${events}`))).toEqual(['1 × document without an end'])
    expect(await titles(encode(`{"traceEvents":[${events.slice(0, -5)}`))).toEqual(['1 × torn record'])
    const damaged = `[${JSON.stringify(X('lost', 0, 1)).replace('"ts":0', '"ts":@')},${events}]`
    const { issues } = await summarize({ name: 'trace', source: encode(damaged) })
    expect(issues.map(({ title, first }) => [title, first.at.byte, first.detail])).toEqual([
      [
        'damaged document',
        damaged.indexOf('@'),
        'expected the rest of an event, found "@"; reading continues at the next event',
      ],
    ])
    expect((await linesOf(encode(damaged))).filter((line) => !/Issues/.test(line))).toEqual([
      'process 1/thread 2 | 1000–3000 a',
      'process 1/thread 2 | 4000–6000 b',
    ])
  })

  test('something else is refused, with the place', async () => {
    const read = (text: string) => converted(encode(text), {}).catch(({ message }) => message)
    expect(await read('{"traceEvents": 7}')).toContain(
      'chrome-json: byte 17 (0x11): expected a list called "traceEvents", found the end of the object',
    )
    await expect(summarize({ name: 'x', source: encode(' 7') }, { from: 'chrome-json' })).rejects.toThrow(
      'x: chrome-json: byte 1 (0x1): expected an object or a list of events, found "7"',
    )
  })

  test('our own Chrome JSON comes back: slices, counters, clock and times', async () => {
    const log = plainBytes('ggtrace/tiny.ggtrace')
    const json = await converted(log, { to: 'json' })
    const [own, read] = [
      await summarize({ name: 'log', source: log }),
      await summarize({ name: 'log.json', source: json }),
    ]
    expect([read.clock, read.issues]).toEqual([own.clock, []])
    const sql = [
      `SELECT ts + ${ZERO_NS}, dur, name, category FROM slice WHERE category != 'issue' ORDER BY ts, dur DESC, name, category`,
      `SELECT ts + ${ZERO_NS}, value FROM counter ORDER BY ts, value`,
    ]
    expect(await rowsOf(json, ...sql)).toEqual(await rowsOf(log, ...sql))
  })
})

describe('times', () => {
  const startsOf = async (digits: readonly string[]) => {
    const events = digits.map((ts) => `{"ph":"X","pid":1,"tid":1,"name":"x","ts":${ts},"dur":0.001}`).join(',')
    const { events: all } = await eventsIn(encode(`{"traceEvents":[${events}]}`))
    const [input] = all
    const origin = input?.kind === 'input' ? input.originNs : 0n
    const slices = all.filter((event): event is OwnSliceEvent => event.kind === 'own-slice')
    return slices.map(({ startNs, endNs }) => [origin + BigInt(startNs), endNs - startNs])
  }

  test('are exact to the nanosecond, by their digits', async () => {
    const whole = fc.oneof(
      fc.nat(86_000_000),
      fc.nat(86_000_000_000).map((n) => n + 1_712_195_495_505_582),
    )
    const fraction = fc.option(
      fc.integer({ min: 0, max: 999 }).map((n) => String(n).padStart(3, '0').replace(/0+$/, '')),
    )
    const time = fc.record({ whole, fraction })
    await fc.assert(
      fc.asyncProperty(fc.array(time, { minLength: 1, maxLength: 20 }), async (times) => {
        const since = times[0]!.whole < 1e15 ? 0 : 1_712_195_495_505_582
        const digits = times.map(({ whole, fraction }) => {
          const micros = (whole < 1e15 ? whole : whole - 1_712_195_495_505_582) + since
          return fraction ? `${micros}.${fraction}` : `${micros}`
        })
        const expected = digits.map(nanosecondsOf).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
        expect(await startsOf(digits)).toEqual(expected.map((ns) => [ns, 1]))
      }),
      { numRuns: 60 },
    )
  })

  test('with exponents, with more digits than nanoseconds have', async () => {
    const digits = ['1.5e3', '150.00049', '1712e-1', '1600.0006', '00017.25']
    expect((await startsOf(digits)).map(([ns]) => ns)).toEqual([17_250n, 150_000n, 171_200n, 1_500_000n, 1_600_001n])
  })
})

describe('damage', () => {
  const cases = ['h100.json.gz', 'absolute.json', 'vllm.json.gz'].map((name) => plainBytes(`chrome-json/${name}`))
  const own = list(
    { ph: 'B', pid: 1, tid: 2, name: 'outer', ts: 10, cat: 'c', args: { a: [1, { b: 'c' }] } },
    { ph: 'E', pid: 1, tid: 2, ts: 15 },
    { ph: 'C', pid: 1, name: 'queue', ts: 5, args: { waiting: 3 } },
    { ph: 'b', cat: 'r', id: '0x1', pid: 1, name: 'r1', ts: 10 },
    { ph: 'e', cat: 'r', id: '0x1', pid: 1, name: 'r1', ts: 20 },
    { ph: 's', cat: 'go', id: 7, pid: 1, tid: 2, name: 'go', ts: 12 },
    X('a\\"\u00e4', 12, 1),
  )

  inLong(test)('cut anywhere, any byte changed: a sound trace or a message', async () => {
    let traces = 0
    for (let at = 0; at < own.length; at++) {
      const flipped = own.slice()
      flipped[at]! ^= at % 3 === 0 ? 0xff : 1 << (at % 8)
      for (const bytes of at % 5 === 0 ? [own.subarray(0, at), flipped] : [flipped]) {
        const outcome = await attempt(bytes, `byte ${at}`, { from: 'chrome-json' })
        if (outcome.trace && traces++ % 150 === 0) expect(await importFaults(outcome.trace, true)).toEqual([])
      }
    }
    expect(traces).toBeGreaterThan(0.6 * own.length)
  })

  inParts(test).each(someOf([0, 1, 2], 3, 2))(
    'of the recording %i: places at random, in pieces of any size the same',
    async (nth) => {
      const bytes = cases[nth]!.slice(0, 40_000)
      const random = randomOf(nth)
      for (let i = 0; i < 60; i++) {
        const at = Math.floor(random() * bytes.length)
        const damaged = i % 3 === 0 ? bytes.slice(0, at) : bytes.slice()
        if (i % 3 !== 0) damaged[at]! ^= i % 3 === 1 ? 0xff : 1 << Math.floor(random() * 8)
        const outcome = await attempt(damaged, `byte ${at}`, { from: 'chrome-json' })
        if (i % 10 !== 0 || !outcome.trace) continue
        // Bytes can be read at any place, a stream cannot: both as streams.
        const [whole, pieces] = [1 << 30, 1 + Math.floor(random() * 900)].map((size) => converted(cut(damaged, size)))
        expect(Buffer.compare((await whole)!, (await pieces)!)).toBe(0)
        if (i % 50 === 0) expect(await importFaults(outcome.trace, true)).toEqual([])
      }
    },
  )

  test('one damaged byte loses one event at most', async () => {
    const bytes = cases[1]!
    const sound = (await summarize({ name: 'trace', source: bytes })).attributes['holds']
    const countOf = (holds: unknown) => [...String(holds).matchAll(/\d+/g)].reduce((sum, [n]) => sum + Number(n), 0)
    const random = randomOf(5)
    for (let i = 0; i < 60; i++) {
      const damaged = bytes.slice()
      const at = 300 + Math.floor(random() * (bytes.length - 800))
      damaged[at] = 0x01
      const { attributes } = await summarize({ name: 'trace', source: damaged })
      expect(countOf(sound) - countOf(attributes['holds'])).toBeLessThanOrEqual(2)
    }
  })
})
