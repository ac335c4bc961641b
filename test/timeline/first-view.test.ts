import { describe, expect, test } from '@jest/globals'
import { convert, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { plainBytes, storedBytes } from '../line/support.ts'
import { ORIGIN_TS, ZERO_NS } from '../origin.ts'
import { input, inputEvent, switchOf, wakingOf } from '../sched/schedule.ts'

const rows = (trace: OpenTrace, sql: string) => trace.query(sql).rows

/** An input without events: with it, a trace has several inputs. */
const nothing = (first: TraceEvent): EventInput => input('nothing', () => [], first)

const sample = (atNs: number): TraceEvent => ({ kind: 'counter', name: 0, unit: 'count', atNs, value: 1 })

describe('a trace of one log', () => {
  test.each([
    ['ggtrace/tiny.ggtrace', 'MONOTONIC'],
    ['tensor-trace/tiny-256.bin', 'MONOTONIC'],
    ['profinfer-csv/tiny.csv', 'MONOTONIC'],
    ['profinfer-ktrace/real.txt', 'MONOTONIC'],
    ['nsys/one-gpu.sqlite.gz', 'REALTIME'],
    ['chrome-json/vllm.json.gz', 'REALTIME'],
  ] as const)('%s has one root, no clock snapshots, and the same times as with snapshots', async (name, clock) => {
    const log = { name, source: storedBytes(name) }
    const alone = await openTrace(convert(log))
    expect(alone.problems()).toEqual([])
    expect(rows(alone, 'SELECT count(*) FROM clock_snapshot')).toEqual([[0]])
    // Perfetto itself draws GPU work, processes and threads in groups of its own.
    const roots = `SELECT count(*) FROM track WHERE parent_id IS NULL AND type GLOB 'global_*'`
    expect(rows(alone, roots)).toEqual([[1]])
    const SLICES = `SELECT s.name, s.ts + ${ZERO_NS} AS at, s.dur, t.name FROM slice s JOIN track t ON t.id = track_id
      ORDER BY at, t.name, s.name, dur`
    const SAMPLES = `SELECT t.name, c.ts + ${ZERO_NS} AS at, value FROM counter c JOIN track t ON t.id = track_id
      ORDER BY at, t.name, value`
    const found = [SLICES, SAMPLES].map((sql) => rows(alone, sql))
    const [[originNs]] = rows(alone, `SELECT ${ZERO_NS} + ${ORIGIN_TS}`) as [[number | bigint]]
    alone.close()
    expect([originNs > 0, found[0]!.length > 0]).toEqual([true, true])

    const together = await openTrace(convert([log, nothing(inputEvent({ clock, originNs: BigInt(originNs) }))]))
    expect(rows(together, 'SELECT count(*) > 0 FROM clock_snapshot')).toEqual([[1]])
    expect(rows(together, `SELECT ${ORIGIN_TS}`)).toEqual([[null]])
    expect([SLICES, SAMPLES].map((sql) => rows(together, sql))).toEqual(found)
    together.close()
  })

  test('may have events long before its origin; those before 0 are drawn at 0 and counted', async () => {
    const early: EventInput = {
      name: 'early',
      events: () => [
        [inputEvent({ originNs: 10n ** 18n }), sample(-3_600_000_000_000)],
        [sample(0), sample(-3_605_000_000_000), sample(-7_200_000_000_000)],
      ],
    }
    const trace = await openTrace(convert(early))
    expect(rows(trace, `SELECT ts - ${ORIGIN_TS}, ts FROM counter ORDER BY ts`)).toEqual([
      [-3_610_000_000_000, 0],
      [-3_605_000_000_000, 5_000_000_000],
      [-3_600_000_000_000, 10_000_000_000],
      [0, 3_610_000_000_000],
    ])
    const left = `SELECT int_value FROM metadata WHERE name = 'trace_attribute.drawn_at_0'`
    expect([rows(trace, left), trace.problems()]).toEqual([[[1]], []])
    trace.close()
  })

  test('is found on the system page: kernel, CPUs and their model', async () => {
    const attributes = { kernel: '5.15.0-91', cpus: 3, cpu: 'Some CPU' }
    const trace = await openTrace(convert({ name: 'log', events: () => [[inputEvent({ attributes }), sample(5)]] }))
    expect(rows(trace, 'SELECT sysname, release, num_cpus FROM machine')).toEqual([['Linux', '5.15.0-91', 3]])
    expect(rows(trace, 'SELECT cpu, processor FROM cpu')).toEqual([0, 1, 2].map((cpu) => [cpu, 'Some CPU']))
    const facts = `SELECT str_value FROM metadata WHERE name IN ('system_release', 'trace_attribute.kernel')`
    expect(rows(trace, facts)).toEqual([['5.15.0-91'], ['5.15.0-91']])
    trace.close()
    const unknown = await openTrace(convert({ name: 'log', source: plainBytes('profinfer-csv/tiny.csv') }))
    expect(rows(unknown, 'SELECT release, num_cpus FROM machine')).toEqual([[null, null]])
    unknown.close()
  })
})

describe('a log and the scheduler of a busy machine', () => {
  const STRANGERS = 100
  const log: EventInput = {
    name: 'log',
    events: () => [[inputEvent({ attributes: { pid: 500, command: '/usr/bin/llama-cli' } }), sample(5)]],
  }
  /** Threads take turns with the traced one; every tenth is known to be of process 9000. */
  const busy = input('busy', (names) => {
    const tids = Array.from({ length: STRANGERS }, (_, i) => 1000 + i)
    const known = tids
      .filter((tid) => tid % 10 === 0)
      .map((tid) => ({ kind: 'thread', what: 'known', atNs: 0, tid, tgid: 9000, comm: 0, parentTid: -1 }) as TraceEvent)
    return [
      ...known,
      ...tids.flatMap((tid, i) => [
        switchOf(names, { cpu: 0, at: 40 * i, from: i === 0 ? 0 : 500, to: tid }),
        wakingOf(names, 0, 40 * i + 5, tid, 9000),
        switchOf(names, { cpu: 0, at: 40 * i + 20, from: tid, to: 500 }),
      ]),
    ]
  })

  test('has no thread without a process: those of no known process share one', async () => {
    const bytes: Uint8Array[] = []
    for await (const piece of convert([log, busy])) bytes.push(piece)
    const trace = await openTrace(Buffer.concat(bytes))
    expect(trace.problems()).toEqual([])
    expect(rows(trace, 'SELECT tid FROM thread WHERE upid IS NULL')).toEqual([])
    const processes = `SELECT pid, p.name, count(*) FROM process p JOIN thread t USING (upid) WHERE tid IN (
      SELECT tid FROM sched JOIN thread USING (utid)) AND tid != 0 GROUP BY pid ORDER BY pid`
    expect(rows(trace, processes)).toEqual([
      [500, 'llama-cli', 1],
      [9000, 'task 9000', 10],
      [2 ** 22, 'threads of unknown processes', 90],
    ])
    expect(rows(trace, 'SELECT count(*) FROM track WHERE parent_id IS NULL AND type = "global_track_event"')).toEqual([
      [1],
    ])
    trace.close()
    const text = Buffer.concat(bytes).toString('latin1')
    expect([text.includes('LLM llama-cli'), text.includes('LLM run')]).toEqual([true, false])
  })
})
