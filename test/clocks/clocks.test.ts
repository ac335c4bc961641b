import { describe, expect, test } from '@jest/globals'
import type { ThreadEvent } from '../../lib/core.ts'
import {
  type ConvertOptions,
  convert,
  type EventInput,
  eventsOf,
  Names,
  type Summary,
  type TraceEvent,
} from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { inParts, someOf } from '../long.ts'
import { input, inputEvent, ORIGIN_NS, switchOf, traceOf } from '../sched/schedule.ts'

const second = 1_000_000_000n
const readings = (ns: bigint, boot: bigint, real: bigint): TraceEvent => ({
  kind: 'clocks',
  readings: [
    { clock: 'MONOTONIC', ns },
    { clock: 'BOOTTIME', ns: ns + boot },
    { clock: 'REALTIME', ns: ns + real },
  ],
})

const mark = (names: Names, atNs: number): TraceEvent => ({
  kind: 'counter',
  name: names.id('mark'),
  unit: 'count',
  atNs,
  value: atNs,
})

/** A log on MONOTONIC that lasts for 100 s, with readings at its start and, where asked for, its end. */
const log = (boot: bigint, more: TraceEvent[] = [], endDrift?: bigint): EventInput =>
  input('run.ggtrace', (names) => [
    readings(ORIGIN_NS, boot, 1000n * second),
    mark(names, 0),
    ...more,
    ...(endDrift === undefined ? [] : [readings(ORIGIN_NS + 100n * second, boot + endDrift, 1000n * second)]),
  ])

/** An input of marks at these times, counted from its origin. */
const other = (clock: string, originNs: bigint, times: number[], more: TraceEvent[] = []): EventInput =>
  input('z/trace.txt', (names) => [...more, ...times.map((ns) => mark(names, ns))], inputEvent({ clock, originNs }))

/** Where the marks of the second input are on the clock of the first, since its origin; and what is said of it. */
async function placed(inputs: EventInput[], options: ConvertOptions = {}) {
  const trace = await traceOf(inputs, options)
  const marks = trace
    .query(`select ts - ${ORIGIN_NS} from counter
      join track on track.id = track_id where track.name = 'mark' and (ts > ${ORIGIN_NS} or value != 0) order by ts`)
    .rows.flat()
  const facts = trace.query(`select substr(name, 17), coalesce(str_value, int_value) from metadata
    where name glob 'trace_attribute.input_1.clock*'`).rows
  trace.close()
  return { marks, facts: Object.fromEntries(facts.map(([key, value]) => [`${key}`.replace('input_1.', ''), value])) }
}

const refused = async (inputs: EventInput[], clocks?: Record<string, string>): Promise<string> => {
  try {
    for await (const _ of convert(inputs, { ...(clocks && { clocks }) })) {
    }
  } catch (error) {
    expect((error as Error).name).toBe('UsageError')
    return (error as Error).message
  }
  throw new Error('it was not refused')
}

describe('an input on another clock', () => {
  test('is put where readings of both clocks say', async () => {
    const { marks, facts } = await placed([log(7n * second), other('BOOTTIME', ORIGIN_NS + 10n * second, [5, 70])])
    expect(marks).toEqual([3 * 1e9 + 5, 3 * 1e9 + 70])
    expect(facts).toEqual({
      clock: 'BOOTTIME',
      clock_relation: 'CLOCK_BOOTTIME and CLOCK_MONOTONIC were read together, once: drift is not known',
      clock_offset_ns: `${-7n * second}`,
    })
  })

  test('follows the drift between two readings', async () => {
    const { marks, facts } = await placed([
      log(0n, [], 1_000_000n), // BOOTTIME gains 1 ms in 100 s
      other('BOOTTIME', ORIGIN_NS, [50_000_500_000, 100_001_000_000]),
    ])
    expect(marks).toEqual([50_000_000_000, 100_000_000_000])
    expect(facts['clock_relation']).toMatch(/, at two times$/)
  })

  test('is related by what it has recorded itself, and over a third clock', async () => {
    const own: TraceEvent = {
      kind: 'clocks',
      readings: [
        { clock: 'MONOTONIC_RAW', ns: 50n * second },
        { clock: 'REALTIME', ns: ORIGIN_NS + 1003n * second },
      ],
    }
    const { marks } = await placed([log(0n), other('MONOTONIC_RAW', 50n * second, [1], [own])])
    expect(marks).toEqual([3e9 + 1])
  })

  test('is refused where nothing tells', async () => {
    const bare = input('run.csv', (names) => [mark(names, 0)])
    expect(await refused([bare, other('REALTIME', second, [1])])).toMatch(
      /^z\/trace\.txt: runs on CLOCK_REALTIME; no known relation to run\.csv \(CLOCK_MONOTONIC\)\nhint: a \.ggtrace log contains readings .*\nhint: or give .*--clock z\/trace\.txt=\+1\.2ms\nhint: /,
    )
    const years = input('b', (names) => [mark(names, 1)], inputEvent({ originNs: ORIGIN_NS + 10_000_000n * second }))
    expect(await refused([bare, years])).toMatch(/^b: begins 116 days away from run\.csv, expected at most 100/)
  })
})

describe('an input that does not tell its clock', () => {
  const unknown = (times: number[]) => other('unknown', ORIGIN_NS, times)

  test('is drawn alone, and that is said', async () => {
    const trace = await traceOf(unknown([3, 9]))
    expect(trace.query(`select ts - ${ORIGIN_NS} from counter order by ts`).rows.flat()).toEqual([3, 9])
    const sql = "select str_value from metadata where name = 'trace_attribute.clock_relation'"
    expect(trace.query(sql).rows).toEqual([['not recorded: other logs go onto the same timeline only with --clock']])
    trace.close()
  })

  test('is refused beside a log, with what to do', async () => {
    const message = await refused([log(0n), unknown([1])])
    expect(message).toMatch(/^z\/trace\.txt: does not record its clock; no known relation to run\.ggtrace/)
    expect(message).toMatch(
      /hint: .*name it .*--clock z\/trace\.txt=mono\nhint: to record on MONOTONIC: trace-cmd record -C mono, perf record -k/,
    )
  })

  const GIVEN: readonly (readonly [given: string, expected: readonly number[], how: string | RegExp])[] = [
    ['mono', [8], 'the clock is as given'],
    ['CLOCK_BOOTTIME', [8 - 2e9], /^CLOCK_BOOTTIME and/],
    ['+1.2ms', [1_200_008], 'as given: +1.2ms'],
    ['-3s', [8 - 3e9], 'as given: -3s'],
    ['+7ns', [15], 'as given: +7ns'],
    ['@6.5s', [1_500_000_008], 'as given: begins @6.5s'],
  ]
  inParts(test).each(someOf(GIVEN, 3))('is where the user says: %s', async (given, expected, how) => {
    for (const key of ['z/trace.txt', 'trace.txt']) {
      const { marks, facts } = await placed([log(2n * second), unknown([8])], { clocks: { [key]: given } })
      expect(marks).toEqual(expected)
      expect(facts['clock_relation']).toEqual(typeof how === 'string' ? how : expect.stringMatching(how))
    }
  })

  test('what the user says has to make sense', async () => {
    expect(await refused([log(0n), unknown([1])], { 'trace.txt': 'global' })).toMatch(
      /expected the name of a clock.*\nhint: global has no fixed/,
    )
    expect(await refused([log(0n), unknown([1])], { 'trace.txt': '1.2ms' })).toMatch(/found "1\.2ms"/)
    expect(await refused([log(0n), unknown([1])], { 'trace.txt': '+1.2ns' })).toMatch(/found "\+1\.2ns"/)
    expect(await refused([log(0n), unknown([1])], { other: 'mono' })).toMatch(
      /^clock of other: no such input; there are: /,
    )
    expect(await refused([log(0n), unknown([1])], { 'run.ggtrace': 'boot' })).toMatch(
      /expected CLOCK_MONOTONIC, which it records/,
    )
    expect(await refused([log(0n)], { 'run.ggtrace': '+1s' })).toMatch(/no other input has a clock/)
  })
})

describe('an offset that is estimated', () => {
  const OFFSET = 123_456_789
  const thread = (what: ThreadEvent['what'], tid: number, atNs: number): ThreadEvent => ({
    kind: 'thread',
    what,
    atNs,
    tid,
    tgid: -1,
    comm: 0,
    parentTid: 1,
  })
  let calls = 0
  const call = (tid: number, startNs: number, endNs: number): TraceEvent => ({
    kind: 'token',
    call: calls++,
    phase: 'decode',
    tokens: 1,
    startNs,
    endNs,
    tid,
    inferred: 0,
  })
  /** Threads that live for 1 ms each, as a log sees them at work; and how a log of the scheduler sees them live. */
  const lives = [1, 2, 3, 4, 5].map((i) => ({ tid: 100 + i, bornNs: i * 10e6, diedNs: i * 10e6 + 1e6 }))
  const atWork = lives.map(({ tid, bornNs, diedNs }) => call(tid, bornNs + 100_000 + OFFSET, diedNs - 100_000 + OFFSET))
  const asLived = lives.flatMap(({ tid, bornNs, diedNs }) => [thread('fork', tid, bornNs), thread('exit', tid, diedNs)])

  test('from the lives of threads is right within its bound, which is told', async () => {
    const { marks, facts } = await placed([log(0n, atWork), other('unknown', 77n * second, [60e6], asLived)])
    // A thread may go on for 50 µs after its exit was told: the range is as much wider at that side.
    expect(facts).toEqual({
      clock: 'unknown',
      clock_relation: 'estimated from threads or tasks that both inputs record: 5 of 5 observations agree',
      clock_offset_ns: `${ORIGIN_NS + BigInt(OFFSET) - 25_000n - 77n * second}`,
      clock_error_ns: 125_000,
    })
    expect(marks).toEqual([60e6 + OFFSET - 25_000])
  })

  test('from forks that both inputs tell of is good to 50 µs', async () => {
    const forks = lives.map(({ tid, bornNs }) => thread('fork', tid, bornNs + OFFSET))
    const { facts } = await placed([log(0n, forks), other('unknown', ORIGIN_NS, [60e6], asLived)])
    expect(facts['clock_error_ns']).toBeLessThanOrEqual(50_000)
  })

  test('from the states that a log has itself is good to 20 µs, with threads that live on', async () => {
    const names = new Names()
    let [at, seed] = [0, 1]
    const times = Array.from({ length: 100 }, () => {
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
      at += 200_000 + (seed % 3_000_000)
      return at
    })
    const states = times.map(
      (ns, i): TraceEvent => ({ kind: 'state', tid: 42, cpu: 0, state: 'running', atNs: ns + OFFSET + (i % 3) * 1000 }),
    )
    const switches = times.flatMap((ns) => [
      switchOf(names, { cpu: 0, at: ns, from: 0, to: 42 }),
      switchOf(names, { cpu: 0, at: ns + 100_000, from: 42, left: 1, to: 0 }),
    ])
    const { facts } = await placed([log(0n, states), other('unknown', ORIGIN_NS, [60e6], switches)])
    expect(facts['clock_error_ns']).toBe(20_000)
    const found = Number(facts['clock_offset_ns'])
    expect(Math.abs(found - OFFSET)).toBeLessThanOrEqual(20_000)
  })

  test('from calls of llama_decode, by a probe and by the recorder, is good to 100 µs', async () => {
    const starts = [0, 9.1, 10.2, 11.9, 13.1, 14.8, 16.4, 17.5, 19.9, 21.2, 22.6, 24.4].map((ms) => ms * 1e6)
    const recorded = starts.map((ns) => call(42, ns + OFFSET, ns + OFFSET + 900_000))
    // The trap takes a while, and the first calls were missed.
    const probed = starts.slice(2).map((ns, i) => call(42, ns + 10_000 + (i % 4) * 5000, ns + 880_000))
    const { facts } = await placed([log(0n, recorded), other('unknown', ORIGIN_NS, [60e6], probed)])
    expect(facts['clock_relation']).toBe(
      'estimated from threads or tasks that both inputs record: 1 of 1 observations agree',
    )
    expect(facts['clock_error_ns']).toBe(100_000)
    expect(Math.abs(Number(facts['clock_offset_ns']) - OFFSET)).toBeLessThanOrEqual(30_000)
  })

  test('too rough to be of use is refused, and told', async () => {
    const [first] = lives
    const rough = [call(first!.tid, first!.bornNs + 50e6, first!.bornNs + 60e6)]
    const long = [thread('fork', first!.tid, first!.bornNs), thread('exit', first!.tid, first!.bornNs + 100e6)]
    expect(await refused([log(0n, rough), other('unknown', ORIGIN_NS, [1], long)])).toMatch(
      /threads that both record determine it only to ±45\.0 ms/,
    )
  })
})

describe('inputs on one clock', () => {
  test('of real logs: a second one is on the clock of the first, moved by what is given', async () => {
    const path = 'examples/moe.ggtrace.gz'
    const summaries: Summary[] = []
    const read = async function* () {
      const pieces = convert(
        [
          { ...inputOf(path), name: 'a' },
          { ...inputOf(path), name: 'b' },
        ],
        { clocks: { b: '+1ms' } },
      )
      for (let next = await pieces.next(); ; next = await pieces.next()) {
        if (next.done) return void summaries.push(...next.value)
        yield next.value
      }
    }
    const { openTrace } = await import('../../lib/node.ts')
    const trace = await openTrace(read())
    expect(trace.problems()).toEqual([])
    const sql =
      "select count(*), count(distinct ts - (select min(ts) from slice where category = 'token')) from slice where category = 'token'"
    expect(trace.query(sql).rows).toEqual([[18, 18]])
    const ofGroup = (group: string) =>
      trace
        .query(`select ts from slice join track on track_id = track.id join track parent on parent.id = track.parent_id
        where category = 'token' and parent.name like '${group}' order by ts`)
        .rows.flat() as number[]
    const [firstStarts, secondStarts] = [ofGroup('LLM %'), ofGroup('LLM % (2)')]
    expect(secondStarts).toHaveLength(9)
    expect(firstStarts.filter((ts) => !secondStarts.includes(ts))).toEqual(secondStarts.map((ts) => ts - 1_000_000))
    expect(summaries[0]!.relation).toBeUndefined()
    expect(summaries[1]!.relation).toEqual({
      to: 'MONOTONIC',
      how: 'as given: +1ms',
      offset_ns: '1000000',
      bound_ns: null,
    })
    trace.close()
  })

  test('events that a program reads are as they were', async () => {
    const names = new Names()
    const found: TraceEvent[] = []
    for await (const batch of eventsOf(other('unknown', 5n, [1, 2]), names)) found.push(...batch)
    expect(found[0]).toMatchObject({ clock: 'unknown', originNs: 5n })
  })
})
