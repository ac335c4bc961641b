import { describe, expect, test } from '@jest/globals'
import { type SliceTrack, type Span, type Time, TraceWriter } from '../../lib/perfetto.ts'
import { asked } from './asked.ts'

/** The writer for anyone's traces: what is written is read back by trace_processor. */

const ARGS = `SELECT s.name, replace(key, 'debug.', ''), value_type, coalesce(string_value, real_value, int_value)
  FROM slice s JOIN args USING (arg_set_id) ORDER BY s.ts, args.id`

test('processes, threads and tracks are where they were made, in the order that was asked for', async () => {
  const trace = new TraceWriter()
  const server = trace.process('server', { pid: 17, order: 2 })
  const client = trace.process('client', { description: 'who asks' })
  const main = server.thread('main', { tid: 17 })
  const second = server.thread('second', { tid: 18, order: -1 })
  const other = client.thread('other')
  const queue = server.track('queue', { description: 'jobs that wait', order: 7 })
  const inside = queue.track('details')
  const top = trace.track('top')
  for (const [i, track] of [main, second, other, queue, inside, top].entries())
    track.slice(i, i + 10, `on ${track.name}`)
  const [processes, threads, slices, tracks] = await asked(
    trace,
    'SELECT pid, name FROM process WHERE pid > 0 ORDER BY pid',
    'SELECT pid, tid, thread.name, is_main_thread FROM thread JOIN process USING (upid) WHERE tid > 0 ORDER BY tid',
    `SELECT s.name, s.ts, s.dur, process.name FROM slice s LEFT JOIN thread_track t ON t.id = track_id LEFT JOIN thread USING (utid)
      LEFT JOIN process_track p ON p.id = track_id LEFT JOIN process ON process.upid = coalesce(thread.upid, p.upid) ORDER BY ts`,
    `SELECT t.name, parent.name, extract_arg(t.source_arg_set_id, 'description'), extract_arg(t.source_arg_set_id, 'sibling_order_rank')
      FROM track t LEFT JOIN track parent ON parent.id = t.parent_id WHERE t.name IN ('queue', 'details', 'top') ORDER BY t.name`,
  )
  expect(processes).toEqual([
    [1, 'client'],
    [17, 'server'],
  ])
  expect(threads).toEqual([
    [1, 1, 'other', 1],
    [17, 17, 'main', 1],
    [17, 18, 'second', 0],
  ])
  expect(slices).toEqual([
    ['on main', 0, 10, 'server'],
    ['on second', 1, 10, 'server'],
    ['on other', 2, 10, 'client'],
    ['on queue', 3, 10, 'server'],
    ['on details', 4, 10, 'server'],
    ['on top', 5, 10, null],
  ])
  expect(tracks).toEqual([
    ['details', 'queue', null, 0],
    ['queue', null, 'jobs that wait', 7],
    ['top', null, null, 2],
  ])
})

test('slices have a category each, and nested arguments; an end adds some', async () => {
  const trace = new TraceWriter()
  const track = trace.track('jobs')
  const args = {
    id: 7,
    ratio: 0.5,
    big: 2n ** 62n,
    name: 'photo.jpg',
    isUrgent: true,
    nothing: null,
    size: { width: 640, height: 480, layers: ['red', { alpha: 0.25 }] },
    none: { of: [], in: {} },
    at: new Date(0),
  }
  track.begin(10, 'resize', { category: 'job', args })
  track.instant(15, 'retry', { category: 'problem' })
  track.end(20, { result: 'ok', bytes: 123 })
  track.slice(30, 40, 'plain')
  track.begin(50, 'never ends')
  const [slices, found] = await asked(trace, 'SELECT name, category, ts, dur FROM slice ORDER BY ts', ARGS)
  expect(slices).toEqual([
    ['resize', 'job', 10, 10],
    ['retry', 'problem', 15, 0],
    ['plain', null, 30, 10],
    ['never ends', null, 50, -1],
  ])
  expect(found!.map(([, ...arg]) => arg)).toEqual([
    ['id', 'int', 7],
    ['ratio', 'real', 0.5],
    ['big', 'int', 2n ** 62n],
    ['name', 'string', 'photo.jpg'],
    ['isUrgent', 'bool', 1],
    ['size.width', 'int', 640],
    ['size.height', 'int', 480],
    ['size.layers[0]', 'string', 'red'],
    ['size.layers[1].alpha', 'real', 0.25],
    ['none.of', 'string', '[]'],
    ['none.in', 'string', '{}'],
    ['at', 'string', '1970-01-01T00:00:00.000Z'],
    ['result', 'string', 'ok'],
    ['bytes', 'int', 123],
  ])
})

test('counters have units, belong to a process or a thread, and may come in any order', async () => {
  const trace = new TraceWriter()
  const app = trace.process('app', { pid: 5 })
  const counters = [
    app.counter('heap', { unit: 'bytes' }),
    app.thread('main').counter('depth'),
    trace.counter('power', { unit: 'W' }),
  ]
  for (const at of [20, 10, 30])
    for (const counter of counters) counter.sample(at, counter.name === 'power' ? -at / 4 : at)
  const [units, values] = await asked(
    trace,
    `SELECT name, unit, type FROM counter_track ORDER BY name`,
    `SELECT t.name, c.ts, c.value FROM counter c JOIN counter_track t ON t.id = track_id WHERE t.name IN ('heap', 'power') ORDER BY 1, 2`,
  )
  expect(units!.map((row) => row.slice(0, 2))).toEqual([
    ['depth', 'count'],
    ['heap', 'bytes'],
    ['power', 'W'],
  ])
  expect(values).toEqual([
    ...[10, 20, 30].map((at) => ['heap', at, at]),
    ...[10, 20, 30].map((at) => ['power', at, -at / 4]),
  ])
})

test('flows join slices of different tracks in order of time', async () => {
  const trace = new TraceWriter()
  const [enqueued, worker] = [trace.track('enqueued'), trace.process('p').thread('worker')]
  enqueued.instant(10, 'job 1', { flows: [1] })
  enqueued.instant(11, 'job 2', { flows: [2] })
  worker.slice(20, 30, 'work 1', { flows: [1] })
  worker.slice(40, 50, 'reply 1', { flowEnds: [1] })
  worker.slice(60, 70, 'other', { flows: [1] })
  const [flows] = await asked(
    trace,
    'SELECT o.name, i.name FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in ORDER BY o.ts',
  )
  expect(flows).toEqual([
    ['job 1', 'work 1'],
    ['work 1', 'reply 1'],
  ])
})

test('spans that overlap are rows of one track, and contain others', async () => {
  const trace = new TraceWriter()
  const jobs = trace.spans('jobs', { description: 'one for each' })
  const first = jobs.begin(0, 'first')
  const second = jobs.begin(5, 'second')
  first.slice(6, 8, 'step of first')
  first.end(10, { code: 1 })
  const third = jobs.begin(10, 'third')
  third.instant(11, 'mark')
  jobs.slice(3, 20, 'late, complete')
  second.end(30)
  third.end(12)
  const [slices, rows] = await asked(
    trace,
    'SELECT s.name, s.ts, s.dur, p.name FROM slice s LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.ts',
    `SELECT count(DISTINCT t.id), count(DISTINCT t.name) FROM slice JOIN track t ON t.id = track_id`,
  )
  expect(slices).toEqual([
    ['first', 0, 10, null],
    ['late, complete', 3, 17, null],
    ['second', 5, 25, null],
    ['step of first', 6, 2, 'first'],
    ['third', 10, 2, null],
    ['mark', 11, 0, 'third'],
  ])
  expect(rows).toEqual([[3, 1]])
})

describe('clocks', () => {
  const REALTIME = 1_700_000_000_123.5 // ms

  test('times of a named clock are absolute, as numbers or bigints; earlier ones than the first, too', async () => {
    const trace = new TraceWriter({ clock: 'REALTIME', unit: 'ms' })
    const track = trace.track('t')
    track.slice(REALTIME, REALTIME + 0.25, 'milliseconds')
    track.slice(1_700_000_000_200_000_001n, 1_700_000_000_200_000_003n, 'nanoseconds')
    trace.track('earlier').slice(REALTIME - 1000, REALTIME, 'earlier')
    const [slices] = await asked(trace, 'SELECT name, ts, dur FROM slice ORDER BY ts')
    expect(slices).toEqual([
      ['earlier', 1_699_999_999_123_500_000n, 1_000_000_000],
      ['milliseconds', 1_700_000_000_123_500_000n, 250_000],
      ['nanoseconds', 1_700_000_000_200_000_001n, 2],
    ])
  })

  test('readings relate them', async () => {
    const trace = new TraceWriter({ clock: 'MONOTONIC' })
    trace.clocks({ MONOTONIC: 5_000n, REALTIME: 1_700_000_000_000_000_000n })
    trace.track('t').slice(6_000n, 7_000n, 'a')
    const [[times]] = (await asked(trace, 'SELECT ts, to_realtime(ts) FROM slice')) as [unknown[][]]
    expect(times).toEqual([6_000, 1_700_000_000_000_001_000n])
  })
})

describe('wrong use', () => {
  const inTrace = (use: (track: SliceTrack, trace: TraceWriter) => unknown) => () => {
    const trace = new TraceWriter()
    use(trace.track('t'), trace)
  }
  test.each<[string, () => unknown, RegExp]>([
    ['an end without a begin', inTrace((t) => t.end(1)), /^track "t": an end at 1 without a begin\nhint: each end/],
    ['a second end', inTrace((t) => [t.begin(1, 'a'), t.end(2), t.end(3)]), /an end at 3 without a begin\nhint: /],
    ['an end of a complete slice', inTrace((t) => [t.slice(1, 9, 'a'), t.end(3)]), /before a slice in it ends\nhint: /],
    [
      'time backwards',
      inTrace((t) => [t.begin(5, 'a'), t.end(4)]),
      /an event at 4, before the last one\nhint: .*spans/,
    ],
    [
      'a slice that crosses',
      inTrace((t) => [t.slice(1, 5, 'a'), t.slice(3, 7, 'b')]),
      /to 7, after .* ends\nhint: .*spans/,
    ],
    [
      'an unknown option of a track',
      inTrace((t) => t.track('x', { descripton: '' } as object)),
      /"descripton"\nhint: did you mean description/,
    ],
    [
      'an unknown option of a counter',
      inTrace((t) => t.counter('x', { units: 'W' } as object)),
      /"units"\nhint: did you mean unit\?/,
    ],
    ['an unknown option of spans', inTrace((t) => t.spans('x', { place: 1 } as object)), /"place"\nhint: known ones/],
    [
      'an unknown option of a process',
      () => new TraceWriter().process('x', { id: 1 } as object),
      /"id"\nhint: did you mean pid/,
    ],
    [
      'an unknown option of a thread',
      () => new TraceWriter().process('x').thread('y', { pid: 1 } as object),
      /"pid"\nhint: did you mean tid/,
    ],
    [
      'an unknown detail',
      inTrace((t) => t.slice(1, 2, 'a', { arg: {} } as object)),
      /"arg"\nhint: did you mean args\?/,
    ],
    ['a slice backwards', inTrace((t) => t.slice(5, 4, 'a')), /a slice from 5 to 4\nhint: /],
    [
      '513 slices in one another',
      inTrace((t) => {
        for (let i = 0; i < 513; i++) t.begin(i, 'a')
      }),
      /513 slices in one another\nhint: /,
    ],
    ['no time', inTrace((t) => t.instant(NaN, 'a')), /expected a time, found NaN/],
    ['a text as a time', inTrace((t) => t.instant('5' as unknown as Time, 'a')), /expected a time, found 5/],
    ['a time before 0', inTrace((t) => t.instant(-1, 'a')), /time -1: expected 0 or later\nhint: .*clock/],
    [
      'Date.now() without a clock',
      inTrace((t) => t.instant(1.7e18, 'a')),
      /expected at most 104 days from 0\nhint: .*clock/,
    ],
    [
      'a sample that is no number',
      inTrace((_, trace) => trace.counter('c').sample(1, NaN)),
      /counter "c": expected a finite number, found NaN\nhint: /,
    ],
    [
      'a second process of a number',
      inTrace((_, trace) => [trace.process('a', { pid: 3 }), trace.process('b', { pid: 3 })]),
      /pid 3 exists already\nhint: /,
    ],
    [
      'a pid that is none',
      inTrace((_, trace) => trace.process('a', { pid: -3 })),
      /pid: expected a whole number from 1/,
    ],
    [
      'an order that is none',
      inTrace((_, trace) => trace.track('a', { order: 0.5 })),
      /track "a": expected a whole number of 32 bits/,
    ],
    [
      'a flow that is none',
      inTrace((t) => t.instant(1, 'a', { flows: [-1] })),
      /slice "a": expected whole numbers of flows/,
    ],
    [
      'arguments that contain themselves',
      inTrace((t) => {
        const circle: Record<string, unknown> = {}
        circle['self'] = circle
        t.instant(1, 'a', { args: { circle } })
      }),
      /argument circle: expected at most 32 .*\nhint: does the value contain itself/,
    ],
    [
      'a span that ends twice',
      inTrace((_, trace) => {
        const span: Span = trace.spans('s').begin(1, 'a')
        span.end(2)
        span.end(3)
      }),
      /span "a": it has ended\nhint: /,
    ],
    ['an event after the end', inTrace((t, trace) => [trace.finish(), t.begin(1, 'a')]), /the trace is finished/],
    ['another unit', () => new TraceWriter({ unit: 'minutes' as 'ms' }), /unit: expected s, ms, us, ns, found minutes/],
    [
      'readings without the clock',
      inTrace((_, trace) => trace.clocks({ REALTIME: 1n })),
      /expected a reading of the trace's clock \(not named\)/,
    ],
  ])('%s is a UsageError', (_, use, message) => {
    let error: unknown
    try {
      use()
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ name: 'UsageError', message: expect.stringMatching(message) })
  })

  test('waiting for a reader that is not there', async () => {
    const trace = new TraceWriter()
    const track = trace.track('t')
    for (let i = 0; i < 60_000; i++) track.instant(i, `event ${i}`)
    await expect(trace.drained()).rejects.toThrow(/nobody takes the bytes\nhint: /)
    trace.take()
    await trace.drained()
  })
})
