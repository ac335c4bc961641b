import { describe, expect, test } from '@jest/globals'
import { TaskState } from '../../lib/core.ts'
import { convert, type EventInput, type TraceEvent } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { plainBytes, storedBytes } from '../line/support.ts'
import { inParts, someOf } from '../long.ts'
import { ORIGIN_TS, ZERO_NS } from '../origin.ts'
import { input, inputEvent, switchOf } from '../sched/schedule.ts'

const rows = (trace: OpenTrace, sql: string) => trace.query(sql).rows

/** Groups of ours at the top. Perfetto itself draws GPU work, processes and threads in groups of its own. */
const GROUPS = `SELECT id, name FROM track WHERE parent_id IS NULL AND type = 'global_track_event'
  AND extract_arg(source_arg_set_id, 'child_ordering') = 'explicit'`
/** Other rows of ours at the top, and the rows below them that keep the viewer from putting them into a closed group. */
const AT_TOP = `SELECT t.name, count(*), min(c.type), min(extract_arg(c.source_arg_set_id, 'builtin_counter_type')), sum(
    (SELECT count(*) FROM counter WHERE track_id = c.id))
  FROM track t LEFT JOIN track c ON c.parent_id = t.id WHERE t.parent_id IS NULL AND t.type GLOB 'global*_track_event'
  AND extract_arg(t.source_arg_set_id, 'child_ordering') IS NULL GROUP BY t.id ORDER BY t.name`
const anchored = (...names: string[]) => names.map((name) => [name, 1, 'global_counter_track_event', 'thread_time', 1])

/** An input without events: with it, a trace has several inputs, and its times count from another point. */
const nothing = (first: TraceEvent): EventInput => input('nothing', () => [], first)

const sample = (atNs: number): TraceEvent => ({ kind: 'counter', name: 0, unit: 'count', atNs, value: 1 })

describe('a trace of one log', () => {
  const LOGS = [
    ['ggtrace/tiny.ggtrace', 'MONOTONIC'],
    ['tensor-trace/tiny-256.bin', 'MONOTONIC'],
    ['profinfer-csv/tiny.csv', 'MONOTONIC'],
    ['profinfer-ktrace/real.txt', 'MONOTONIC'],
    ['nsys/one-gpu.sqlite.gz', 'REALTIME'],
    ['chrome-json/vllm.json.gz', 'REALTIME'],
  ] as const
  inParts(test).each(someOf(LOGS, 4))(
    '%s has one root, no clock snapshots, and the same times beside another input',
    async (name, clock) => {
      const log = { name, source: storedBytes(name) }
      const alone = await openTrace(convert(log))
      expect(alone.problems()).toEqual([])
      expect(rows(alone, 'SELECT count(*) FROM clock_snapshot')).toEqual([[0]])
      expect(rows(alone, GROUPS).length).toBeLessThanOrEqual(1) // none where all rows are at the top
      // Alone, what a thread of a profile did is a row of the run, and names the thread. Beside another input its operators are the thread's own row, without a name.
      const named = "iif(t.name GLOB 'thread [0-9]*: *', substr(t.name, instr(t.name, ': ') + 2), t.name)"
      const ofThread = `nullif(${named}, 'operators')`
      const SLICES = `SELECT s.name, s.ts + ${ZERO_NS} AS at, s.dur, ${ofThread} AS row FROM slice s JOIN track t ON t.id = track_id
      ORDER BY at, row, s.name, dur`
      const SAMPLES = `SELECT t.name, c.ts + ${ZERO_NS} AS at, value FROM counter c JOIN track t ON t.id = track_id
      WHERE t.name != 'at the top' ORDER BY at, t.name, value`
      const found = [SLICES, SAMPLES].map((sql) => rows(alone, sql))
      const [[originNs]] = rows(alone, `SELECT ${ZERO_NS} + ${ORIGIN_TS}`) as [[number | bigint]]
      alone.close()
      expect([originNs > 0, found[0]!.length > 0]).toEqual([true, true])

      const together = await openTrace(convert([log, nothing(inputEvent({ clock, originNs: BigInt(originNs) }))]))
      expect(rows(together, 'SELECT count(*) FROM clock_snapshot')).toEqual([[0]])
      expect(rows(together, GROUPS).length).toBeLessThanOrEqual(1)
      expect([SLICES, SAMPLES].map((sql) => rows(together, sql))).toEqual(found)
      together.close()
    },
  )

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

describe('beside groups of the viewer, which closes all groups then, rows of a log are at the top', () => {
  test('of a recording with GPU work; views have its calls and workers', async () => {
    const trace = await openTrace(convert({ name: 'log', source: storedBytes('../gpu/logs/h100.ggtrace.gz') }))
    const ofRun = [
      'GB/s',
      'GPU',
      'GPU 0: stream 14',
      'Graphs',
      'KV cache: cells used (inferred)',
      'Loading',
      'Phase',
      'Tokens',
    ]
    const ofMemory = ['bytes touched per operator', 'compute buffer (CUDA_Host): live']
    const ofOffsets = ['weights: offset read']
    const ofThread = ['thread 1198: CUDA API', 'thread 1198: functions']
    const rowsAtTop = [...ofRun, ...ofMemory, ...ofThread, 'tok/s', ...ofOffsets, 'worker 0', 'worker 0: state']
    expect(rows(trace, AT_TOP)).toEqual(anchored(...rowsAtTop))
    const [[run, name]] = rows(trace, GROUPS) as [[number, string]]
    expect(name).toMatch(/^LLM .*CUDA0$/)
    const inGroup = rows(trace, `SELECT name FROM track WHERE parent_id = ${run} ORDER BY name`).flat()
    expect(inGroup).toEqual(['Copies', 'Memory'])
    const log = { name: 'log', source: storedBytes('../gpu/logs/h100.ggtrace.gz') }
    const grouped = await openTrace(convert(log, { grouped: true }))
    expect(rows(grouped, AT_TOP)).toEqual([])
    grouped.close()
    trace.query('INCLUDE PERFETTO MODULE ggml.operators; INCLUDE PERFETTO MODULE ggml.interference')
    expect(rows(trace, 'SELECT run_id, count(*) FROM ggml_calls GROUP BY 1')).toEqual([[run, 7]])
    for (const view of ['ggml_operators', 'ggml_thread_states'])
      expect(rows(trace, `SELECT DISTINCT run_id FROM ${view}`)).toEqual([[run]])
    expect(trace.problems()).toEqual([])
    trace.close()
  })

  test('with switches of CPUs; not where several runs have rows of one name, and not in Chrome JSON', async () => {
    const log = { name: 'log', source: storedBytes('ggtrace/tiny.ggtrace') }
    const switches = input('switches', (names) => [switchOf(names, { cpu: 0, at: 0, from: 0, to: 500 })])
    const atTop = async (...[inputs, options]: Parameters<typeof convert>) => {
      const trace = await openTrace(convert(inputs, options))
      const found = rows(trace, AT_TOP)
      trace.close()
      return found
    }
    const alone = await atTop([log, switches])
    expect(alone).toEqual(anchored(...alone.map(([name]) => `${name}`)))
    expect(alone.flat()).toEqual(expect.arrayContaining(['Phase', 'Tokens', 'worker 0']))
    expect(await atTop(log)).toEqual([])
    expect(await atTop([log, { ...log, name: 'log 2' }, switches])).toEqual([])
  })
})

test.each([
  ['tensor-trace/moe-2threads.bin.gz', 13],
  ['server/v0.7.0-lv4.log', 13],
  ['profinfer-ktrace/real.txt', 2],
  ['nsys/one-gpu.sqlite.gz', 13],
])('all rows of %s are seen at once, %i: none is in a group that the viewer closes', async (name, count) => {
  const trace = await openTrace(convert({ name, source: storedBytes(name) }))
  const drawn = `SELECT id, name, parent_id FROM track WHERE name != 'at the top'
    AND id IN (SELECT track_id FROM slice UNION SELECT track_id FROM counter)`
  expect(rows(trace, drawn)).toHaveLength(count)
  // With rows at the top, the group of the run is closed, too.
  const closed = `SELECT t.name FROM (${drawn}) t JOIN track p ON p.id = t.parent_id
    WHERE p.parent_id IS NOT NULL OR EXISTS (SELECT 1 FROM track WHERE name = 'at the top')`
  expect(rows(trace, closed)).toEqual([])
  trace.close()
})

describe('a log and the scheduler of a busy machine', () => {
  const log: EventInput = {
    name: 'log',
    events: () => [[inputEvent({ attributes: { pid: 500, command: '/usr/bin/llama-cli' } }), sample(5)]],
  }
  /** 900 threads, each of ten of one process, but 90 of which the process is not known. */
  const STRANGERS = Array.from({ length: 900 }, (_, i) => 1000 + i)
  const processOf = (tid: number) => (tid % 10 === 9 ? undefined : 10_000 + Math.floor((tid - 1000) / 10))
  /** The traced thread waits for these, longest for the first ones; it sleeps while the others run. */
  const TAKERS = STRANGERS.filter((tid) => tid < 1300)
  const waitNs = (tid: number) => 20_000 - 10 * (tid - 1000)
  const busy = input('busy', (names) => [
    ...STRANGERS.flatMap((tid): TraceEvent[] => {
      const tgid = processOf(tid)
      return tgid === undefined ? [] : [{ kind: 'thread', what: 'known', atNs: 0, tid, tgid, comm: 0, parentTid: -1 }]
    }),
    switchOf(names, { cpu: 0, at: 0, from: 0, to: 500 }),
    ...STRANGERS.flatMap((tid, i) => {
      const [at, left] = [40_000 * i + 100, TAKERS.includes(tid) ? 0 : TaskState.S]
      return [
        switchOf(names, { cpu: 0, at, from: 500, left, to: tid }),
        switchOf(names, { cpu: 0, at: at + waitNs(tid), from: tid, to: 500 }),
      ]
    }),
    switchOf(names, { cpu: 0, at: 40_000_000, from: 500, to: 0 }),
  ])
  const PROCESSES = `SELECT pid, p.name, count(*) FROM process p JOIN thread t USING (upid) WHERE tid IN (
    SELECT tid FROM sched JOIN thread USING (utid)) AND tid != 0 GROUP BY pid ORDER BY pid`

  test('has at most 25 groups at the top, and no thread of the traced process, or of one that it waited for, is missing', async () => {
    const trace = await openTrace(convert([log, busy]))
    expect(trace.problems()).toEqual([])
    expect(rows(trace, 'SELECT tid FROM thread WHERE upid IS NULL')).toEqual([])
    expect(rows(trace, 'SELECT count(distinct utid) FROM sched JOIN thread USING (utid) WHERE tid != 0')).toEqual([
      [901],
    ])
    const processes = rows(trace, PROCESSES)
    expect(processes).toHaveLength(19)
    expect(processes.slice(0, 17)).toEqual([
      [500, 'llama-cli', 1],
      ...Array.from({ length: 16 }, (_, i) => [10_000 + i, null, 9]),
    ])
    expect(processes.slice(17)).toEqual([
      [2 ** 22, 'threads of unknown processes', 30],
      [2 ** 22 + 1, 'other programs', 900 - 16 * 9 - 30],
    ])
    // The UI adds CPU Scheduling, Ftrace Events and Scheduler, and one group for each process.
    expect([rows(trace, GROUPS), rows(trace, 'SELECT count(*) FROM clock_snapshot')]).toEqual([[], [[0]]]) // its only row is at the top
    trace.close()
  })

  test('has each process by itself with allThreads', async () => {
    const trace = await openTrace(convert([log, busy], { allThreads: true }))
    const processes = rows(trace, PROCESSES)
    expect(processes).toHaveLength(1 + 90 + 1)
    expect(processes.at(-1)).toEqual([2 ** 22, 'threads of unknown processes', 90])
    trace.close()
  })

  test('has one group of ours: what is wrong with the recording is in it', async () => {
    const lossy = input('lossy', (names) => [
      switchOf(names, { cpu: 0, at: 0, from: 0, to: 500 }),
      switchOf(names, { cpu: 0, at: 50, from: 7, to: 500 }),
    ])
    const trace = await openTrace(convert([log, lossy]))
    const issues = `SELECT root.name, track.name, s.name FROM slice s JOIN track ON track.id = track_id
      JOIN track root ON root.id = track.parent_id WHERE s.category = 'issue'`
    expect(rows(trace, issues)).toEqual([['LLM llama-cli', 'Issues', 'lost switches']])
    trace.close()
  })
})
