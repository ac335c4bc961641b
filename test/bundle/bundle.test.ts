import { describe, expect, test } from '@jest/globals'
import {
  type ConvertOptions,
  convert,
  type EventInput,
  eventsOf,
  type LogInput,
  Names,
  type Summary,
  type TraceEvent,
} from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { Cell } from '../../lib/sql.ts'
import { joined, plainBytes } from '../line/support.ts'
import { inLong, inParts, someOf } from '../long.ts'
import { input, inputEvent } from '../sched/schedule.ts'
import { unzip } from './support.ts'

const FTRACE: LogInput = { name: 'a/trace.txt', source: plainBytes('ftrace/trace.txt') }
const BOOT: LogInput = { name: 'boot.txt', source: plainBytes('ftrace/trace-boot.txt') }
const PERF: LogInput = { name: 'perf.data', source: plainBytes('perf-data/mono.data.gz') }
const OWN_CLOCK: LogInput = { name: 'perf.data', source: plainBytes('perf-data/own-clock.data.gz') }
const NO_CLOCK: LogInput = { name: 'tgid.txt', source: plainBytes('ftrace/trace-tgid.txt') }
const MONO = { 'a/trace.txt': 'mono' }

/** Some time before all of the files. */
const ORIGIN_NS = 17_480_000_000_000n
const SECOND_NS = 1_000_000_000n

const mark = (names: Names, atNs: number): TraceEvent => ({
  kind: 'counter',
  name: names.id('mark'),
  unit: 'count',
  atNs,
  value: 1,
})

/** A log of two marks, and what else it tells. */
const log = (more: TraceEvent[] = [], clock = 'MONOTONIC'): EventInput =>
  input(
    'runs/run.ggtrace.gz',
    (names) => [...more, mark(names, 5), mark(names, 60e9 + 7)],
    inputEvent({ clock, originNs: ORIGIN_NS }),
  )

/** `wall`: REALTIME less MONOTONIC. */
const readings = (ns: bigint, boot: bigint, wall = 1_700_000_000n * SECOND_NS): TraceEvent => ({
  kind: 'clocks',
  readings: [
    { clock: 'MONOTONIC', ns },
    { clock: 'BOOTTIME', ns: ns + boot },
    { clock: 'REALTIME', ns: ns + wall },
  ],
})

const READINGS = readings(ORIGIN_NS, 0n)

const EVENTS = `
  select 'cpu ' || cpu || ' ' || tid as what, ts, dur, end_state from sched join thread using (utid)
  union all select 'sample ' || cpu || ' ' || tid, ts, 0, cpu_mode from perf_sample join thread using (utid)
  order by ts, what`

/** What trace_processor shows of the file. */
async function eventsIn(trace: Uint8Array | AsyncIterable<Uint8Array>): Promise<Cell[][]> {
  const open = await openTrace(trace)
  const { rows } = open.query(EVENTS)
  open.close()
  return rows
}

async function bundled(log: EventInput | EventInput[], bundle: LogInput, clocks: Record<string, string> = {}) {
  const pieces = convert(log, { bundle, clocks })
  const all: Uint8Array[] = []
  let next = await pieces.next()
  for (; !next.done; next = await pieces.next()) all.push(next.value)
  const archive = Buffer.concat(all)
  const members = unzip(archive)
  const trace = await openTrace(archive)
  const marks = trace
    .query("select ts from counter join track on track.id = track_id where track.name = 'mark' order by ts")
    .rows.flat()
  const facts = trace.query(`select substr(name, 17), coalesce(str_value, int_value) from metadata
    where name glob 'trace_attribute.bundle' or name glob 'trace_attribute.clock*' `).rows
  const snapshots = trace.query("select ts, clock_value from clock_snapshot where clock_name = 'REALTIME'").rows
  const problems = trace.problems().filter(({ name }) => name.startsWith('clock_sync'))
  trace.close()
  const manifest = JSON.parse(members.get('perfetto_manifest.json')!.toString()).perfetto_manifest
  return {
    archive,
    members,
    marks,
    facts: Object.fromEntries(facts),
    problems,
    snapshots,
    manifest,
    summaries: next.value as Summary[],
  }
}

/** Our marks on the file's clock, which is so much behind ours. */
const marksAt = (ns: number) => [Number(ORIGIN_NS) + 5 - ns, Number(ORIGIN_NS) + 60e9 + 7 - ns]
const MARKS = marksAt(0)

describe('a file beside our trace', () => {
  test('lies untouched in a ZIP, on the clock that both are on', async () => {
    const { members, manifest, marks, facts, problems, archive, summaries } = await bundled(log(), FTRACE, MONO)
    expect([...members.keys()]).toEqual(['run.ggtrace.pftrace', 'trace.txt', 'perfetto_manifest.json'])
    expect(members.get('trace.txt')).toEqual(Buffer.from(FTRACE.source as Uint8Array))
    expect(manifest).toEqual({
      version: 1,
      trace_time: { clock: 'MONOTONIC', file: 'run.ggtrace.pftrace' },
      files: [{ path: 'run.ggtrace.pftrace' }, { path: 'trace.txt' }],
      attributes: {
        generator: 'ggml2perfetto',
        'ggml2perfetto.clock_relation': 'the same clock, by its name, not checked',
      },
    })
    const alone = await eventsIn(FTRACE.source as Uint8Array)
    expect(alone).toHaveLength(100)
    expect(await eventsIn(archive)).toEqual(alone)
    expect([marks, problems]).toEqual([MARKS, []])
    expect(facts).toEqual({ bundle: 'trace.txt' })
    expect(summaries.map(({ format }) => format)).toEqual(['test', 'ftrace'])
    expect(summaries[1]!.scheduler!.switches).toBe(100)
  })

  test('of perf record -k mono has its samples at their times', async () => {
    const { archive, marks } = await bundled(log(), PERF)
    const alone = await eventsIn(PERF.source as Uint8Array)
    expect(alone).toHaveLength(114)
    expect(await eventsIn(archive)).toEqual(alone)
    expect(marks).toEqual(MARKS)
  })

  const OFFSETS: readonly (readonly [string, number])[] = [
    ['+1.2ms', 1_200_000],
    ['-3s', -3e9],
  ]
  inParts(test).each(someOf(OFFSETS, 2))(
    'on a clock %s off keeps its times, and our trace is moved',
    async (given, ns) => {
      const clocks = { 'perf.data': given }
      const { archive, marks, snapshots, facts, problems } = await bundled(log([READINGS]), OWN_CLOCK, clocks)
      const alone = await eventsIn(OWN_CLOCK.source as Uint8Array)
      expect(alone).toHaveLength(152)
      expect(await eventsIn(archive)).toEqual(alone)
      expect([marks, problems]).toEqual([marksAt(ns), []])
      expect(facts).toEqual({
        bundle: 'perf.data',
        clock: 'MONOTONIC',
        clock_relation: `that of perf.data: as given: ${given}`,
        clock_offset_ns: `${-ns}`,
      })
      // The wall clock is told by the log, and moves with it.
      expect(snapshots).toEqual([[Number(ORIGIN_NS) - ns, ORIGIN_NS + 1_700_000_000n * SECOND_NS]])
    },
  )

  test('on BOOTTIME is related by what the log has read of both clocks', async () => {
    const boot = log([readings(ORIGIN_NS, 7n * SECOND_NS)])
    const { archive, marks, facts } = await bundled(boot, BOOT, { 'boot.txt': 'boot' })
    const alone = await eventsIn(BOOT.source as Uint8Array)
    expect(alone).toHaveLength(29)
    expect(await eventsIn(archive)).toEqual(alone)
    expect(marks).toEqual(marksAt(-7e9))
    expect(facts['clock_relation']).toMatch(/^that of boot\.txt: CLOCK_BOOTTIME and CLOCK_MONOTONIC were read together/)
  })

  inLong(test)('on a clock that drifts is followed', async () => {
    const later = readings(ORIGIN_NS + 100n * SECOND_NS, 1_000_000n) // 10 µs a second
    const { archive, marks } = await bundled(log([READINGS, later]), BOOT, { 'boot.txt': 'boot' })
    expect(await eventsIn(archive)).toEqual(await eventsIn(BOOT.source as Uint8Array))
    expect(marks).toEqual([Number(ORIGIN_NS) + 5, Number(ORIGIN_NS) + 60e9 + 7 + 600_000])
  })

  inLong(test)('goes with a log on another clock, too', async () => {
    const wall = 1_795_261_102_928_035_000n // that of the perf.data
    const boot = log([readings(ORIGIN_NS - 9n * SECOND_NS, 9n * SECOND_NS, wall)], 'BOOTTIME')
    const { archive, marks } = await bundled(boot, PERF)
    expect(await eventsIn(archive)).toEqual(await eventsIn(PERF.source as Uint8Array))
    expect(marks).toEqual(marksAt(9e9))
  })

  test('of another boot is refused', async () => {
    const refused = bundled(log([READINGS]), PERF)
    await expect(refused).rejects.toThrow(
      /^perf\.data: is of another boot or machine, .* at the same CLOCK_MONOTONIC, /,
    )
  })

  test('goes with several logs: each is related to the first', async () => {
    const second = input('b.csv', (names) => [mark(names, 1)], inputEvent({ originNs: 100n, clock: 'MONOTONIC_RAW' }))
    const clocks = { 'perf.data': '+1ms', 'b.csv': '@17480.5s' }
    const { marks } = await bundled([log(), second], OWN_CLOCK, clocks)
    const [first, last] = marksAt(1e6)
    expect(marks).toEqual([first, Number(ORIGIN_NS) + 500_000_001 - 1e6, last])
  })

  test('that does not tell its clock is put where threads that both show say', async () => {
    const { archive, marks, facts } = await bundled(await sightsOf(NO_CLOCK, 5_000_000), NO_CLOCK)
    expect(facts['clock_relation']).toMatch(
      /^that of tgid\.txt: estimated from threads or tasks that both inputs record/,
    )
    const boundNs = Number(facts['clock_error_ns'])
    expect(boundNs).toBeLessThan(50_000)
    expect(Math.abs(Number(facts['clock_offset_ns']) + 5_000_000)).toBeLessThanOrEqual(boundNs)
    const alone = await eventsIn(NO_CLOCK.source as Uint8Array)
    expect(await eventsIn(archive)).toEqual(alone)
    expect(marks).toHaveLength(1)
  })
})

/** A log that has seen the threads of a file take CPUs, `ns` later than the file has. */
async function sightsOf(file: LogInput, ns: number): Promise<EventInput> {
  const seen: TraceEvent[] = []
  let originNs = 0n
  for await (const batch of eventsOf(file, new Names())) {
    for (const event of batch) {
      if (event.kind === 'input') originNs = event.originNs
      if (event.kind !== 'switch') continue
      const { cpu, atNs, nextTid, prevTid } = event
      if (prevTid > 0) seen.push({ kind: 'state', tid: prevTid, cpu, state: 'off', atNs: atNs + ns })
      if (nextTid > 0) seen.push({ kind: 'state', tid: nextTid, cpu, state: 'running', atNs: atNs + ns })
    }
  }
  return input('run.ggtrace', (names) => [mark(names, 0), ...seen], inputEvent({ originNs }))
}

describe('is refused', () => {
  const refusal = async (options: ConvertOptions, inputs: Parameters<typeof convert>[0] = log()): Promise<string> => {
    try {
      await joined(convert(inputs, options))
    } catch (error) {
      expect((error as Error).name).toBe('UsageError')
      return (error as Error).message
    }
    throw new Error('it was not refused')
  }

  test('an unknown clock, with what to do', async () => {
    const message = await refusal({ bundle: OWN_CLOCK })
    expect(message).toMatch(/^perf\.data: does not record its clock; no known relation to runs\/run\.ggtrace\.gz/)
    expect(message).toMatch(/hint: .*--clock perf\.data=mono/)
    expect(await refusal({ bundle: PERF, clocks: { 'perf.data': 'boot' } })).toMatch(/expected CLOCK_MONOTONIC/)
    expect(await refusal({ bundle: PERF, clocks: { 'other.data': 'boot' } })).toMatch(/there are: .*, perf\.data$/)
  })

  test('what Perfetto cannot put beside ours', async () => {
    const of = (name: string, source: LogInput['source']) => refusal({ bundle: { name, source } })
    expect(await of('t.dat', plainBytes('trace-dat/mono-v6.dat.gz'))).toMatch(
      /^t\.dat: cannot be bundled: Perfetto does not read trace-dat files\nhint: .*give it as an input/,
    )
    expect(await of('p.gz', Uint8Array.of(0x1f, 0x8b, 8))).toMatch(/compressed by gzip\nhint: gunzip p\.gz/)
    expect(await of('x', new Uint8Array(9))).toMatch(/neither perf\.data nor ftrace's text/)
    expect(await of('x', new Uint8Array(0))).toMatch(/neither perf\.data nor ftrace's text/)
    expect(await of('s', new Blob([new Uint8Array(PERF.source as Uint8Array)]).stream())).toMatch(/must be read twice/)
  })

  test('what goes with a log that cannot be read, and is let go of', async () => {
    let open = 0
    const source = {
      async *[Symbol.asyncIterator]() {
        open++
        try {
          yield* [PERF.source as Uint8Array]
        } finally {
          open--
        }
      },
    }
    const bundle = { name: 'perf.data', source }
    expect(await refusal({ bundle }, { name: 'x', source: Uint8Array.of(1, 2) })).toMatch(/^x: not a known format/)
    expect(open).toBe(0)
  })

  test('two tales of the scheduler, and Chrome JSON', async () => {
    expect(await refusal({ bundle: FTRACE, clocks: { 'run.dat': 'mono' } }, { ...BOOT, name: 'run.dat' })).toMatch(
      /^a\/trace\.txt: cannot be bundled: .* so does run\.dat: each would appear twice\nhint: omit/,
    )
    expect(await refusal({ bundle: PERF, to: 'json' })).toMatch(/not json/)
  })
})
