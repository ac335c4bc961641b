import { expect, test } from '@jest/globals'
import { Inferred, UNKNOWN } from '../../lib/core.ts'
import { type Analysis, analyze, convert, type EventInput } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { inParts, someOf } from '../long.ts'
import { opOf } from '../operators-sql.ts'
import { scenario } from './scenario.ts'

/** Figures of operators and of calls, against SQL over the trace of the same log, and against small runs that were computed by hand. */

const LOGS = ['examples/moe.ggtrace.gz', 'test/fixtures/profinfer-csv/moe-2threads.csv.gz']

const rowsOf = async (log: string, sql: string) => {
  const trace = await openTrace(convert(inputOf(log), { detail: 'full' }))
  try {
    return trace.query(sql).rows
  } finally {
    trace.close()
  }
}

const total = <T>(rows: readonly T[], of: (row: T) => number) => rows.reduce((sum, row) => sum + of(row), 0)

/** Sums of the rows with the same key, as SQL gives groups. */
function grouped<T>(rows: readonly T[], key: (row: T) => string, of: (row: T) => number[]): Record<string, number[]> {
  const sums: Record<string, number[]> = {}
  for (const row of rows) sums[key(row)] = of(row).map((value, i) => value + (sums[key(row)]?.[i] ?? 0))
  return sums
}

inParts(test).each(someOf(LOGS, 2, 1))(
  '%s: operators and waits by op, worker and phase are those of the trace',
  async (log) => {
    const { operators, workers } = await analyze(inputOf(log))
    const sql = `with calls as (select ts, ts + dur as end_ts, extract_arg(arg_set_id, 'debug.phase') as phase,
      extract_arg(arg_set_id, 'debug.call') as call from slice where category = 'token')
    select ${opOf('s')} || ' ' || ifnull(c.phase, 'none'), count(*), sum(s.dur) from slice s
      left join calls c on c.call = extract_arg(s.arg_set_id, 'debug.call')
    where s.category = 'operator' and s.name not glob '*+*' group by 1`
    const expected = Object.fromEntries((await rowsOf(log, sql)).map(([key, ...sums]) => [key, sums.map(Number)]))
    const plain = operators.rows.filter(({ op }) => !op.includes('+'))
    expect(
      grouped(
        plain,
        ({ op, phase }) => `${op} ${phase}`,
        (row) => [row.executions, row.operator_time_ns],
      ),
    ).toEqual(expected)
    const [[count, time, waits]] = (await rowsOf(
      log,
      `select sum(category = 'operator'), sum(iif(category = 'operator', dur, 0)), sum(iif(category = 'barrier', dur, 0)) from slice`,
    )) as [[number, number, number]]
    expect([operators.executions, operators.operator_time_ns, operators.wait_ns].map(Number)).toEqual(
      [count, time, waits].map(Number),
    )
    const byWorker = await rowsOf(
      log,
      `select t.name, sum(iif(category = 'operator', dur, 0)), sum(iif(category = 'barrier', dur, 0)) from slice join track t
      on track_id = t.id where category in ('operator', 'barrier') group by 1 order by 1`,
    )
    expect(workers.map((of) => [`worker ${of.worker}`, of.operator_time_ns, of.wait_ns])).toEqual(
      byWorker.map(([name, ...sums]) => [name, ...sums.map(Number)]),
    )
  },
)

test('wall time of a node: from its first start to the end of its last barrier', async () => {
  const log = LOGS[0]!
  const { operators } = await analyze(inputOf(log))
  // In this log no call computes a node twice.
  const sql = `with of as (select s.name, extract_arg(s.arg_set_id, 'debug.call') as call, extract_arg(s.arg_set_id, 'debug.tensor') as node,
      s.ts, ifnull((select max(b.ts + b.dur) from slice b where b.track_id = s.track_id and b.category = 'barrier' and (b.ts = s.ts + s.dur or b.ts = (select a.ts + a.dur from slice a
        where a.track_id = s.track_id and a.category = 'barrier' and a.ts = s.ts + s.dur))),
        s.ts + s.dur) as end_ts
    from slice s where s.category = 'operator' and s.name not glob '*+*'),
    steps as (select name, call, node, max(end_ts) - min(ts) as wall, count(*) as workers from of where node is not null group by 2, 3, 1)
    select name, count(*), sum(wall) from steps where name glob 'ffn_*' group by 1`
  const expected = Object.fromEntries((await rowsOf(log, sql)).map(([key, ...sums]) => [key, sums.map(Number)]))
  const rows = operators.rows.filter(({ op, role }) => !op.includes('+') && role.startsWith('ffn_'))
  expect(Object.keys(expected).length).toBeGreaterThan(3)
  expect(
    grouped(
      rows,
      ({ role, op }) => `${role} ${op}`,
      (row) => [row.steps, row.wall_ns],
    ),
  ).toEqual(expected)
})

test('quantiles of durations are within 1 % of those of the slices', async () => {
  const log = LOGS[0]!
  const { operators } = await analyze(inputOf(log))
  const ofCalls = `select s.name, extract_arg(s.arg_set_id, 'debug.layer'), extract_arg(c.arg_set_id, 'debug.phase'),
      extract_arg(s.arg_set_id, 'debug.shape'), s.dur from slice s
    join slice c on c.category = 'token' and extract_arg(c.arg_set_id, 'debug.call') = extract_arg(s.arg_set_id, 'debug.call')
    where s.category = 'operator' and s.name glob 'ffn_moe_* MUL_MAT_ID' order by s.dur`
  const durations = new Map<string, number[]>()
  for (const [name, layer, phase, , dur] of await rowsOf(log, ofCalls)) {
    const key = `${name} ${layer} ${phase}`
    durations.set(key, [...(durations.get(key) ?? []), Number(dur)])
  }
  const rows = operators.rows.filter(({ op, role }) => op === 'MUL_MAT_ID' && role.startsWith('ffn_moe_'))
  expect(rows.length).toBe(durations.size)
  for (const { role, op, layer, phase, duration, buckets, operator_time_ns } of rows) {
    const all = durations.get(`${role} ${op} ${layer} ${phase}`)!
    const { p50_ns, p90_ns, p99_ns, ...exact } = duration!
    expect(exact).toEqual({
      count: all.length,
      mean_ns: operator_time_ns / all.length,
      min_ns: all[0],
      max_ns: all.at(-1),
    })
    for (const [share, found] of [
      [0.5, p50_ns],
      [0.9, p90_ns],
      [0.99, p99_ns],
    ] as const) {
      const at = all[Math.ceil(share * all.length) - 1]! // nearest rank
      expect(Math.abs(found - at)).toBeLessThanOrEqual(0.01 * at + 1) // rounded to ns
    }
    expect(total(buckets!.counts, (n) => n)).toBe(all.length)
  }
})

const sumsToWhole = ({ call_time }: Analysis) => {
  for (const { parts, time_ns } of call_time) {
    expect(total(parts, ({ time_ns }) => time_ns)).toBe(time_ns)
    expect(total(parts, ({ share }) => share)).toBeCloseTo(1, 9)
    for (const part of parts) expect(part.time_ns).toBeGreaterThan(0)
  }
}

inParts(test).each(someOf(LOGS, 2, 1))(
  '%s: the parts of the time of calls sum to it, and are those of the trace',
  async (log) => {
    const analysis = await analyze(inputOf(log))
    sumsToWhole(analysis)
    const calls = await rowsOf(
      log,
      `select extract_arg(arg_set_id, 'debug.phase'), count(*), sum(dur) from slice where category = 'token' group by 1 order by 3 desc`,
    )
    expect(
      analysis.call_time
        .map(({ phase, calls, time_ns }) => [phase, calls, time_ns])
        .sort((a, b) => Number(b[2]) - Number(a[2])),
    ).toEqual(calls.map(([phase, ...sums]) => [phase, ...sums.map(Number)]))
    const [waits] = await rowsOf(
      log,
      `select sum(iif(slice.name glob 'wait for *', dur, 0)), sum(iif(slice.name glob 'wait for *', 0, dur)) from slice join track t on track_id = t.id
    where category = 'barrier' and t.name = 'worker 0'`,
    )
    const ofPart = (name: string) =>
      total(analysis.call_time, ({ parts }) => parts.find(({ what }) => what === name)?.time_ns ?? 0)
    expect([ofPart('barrier wait'), ofPart('barrier open')]).toEqual(waits!.map(Number))
  },
)

test('a small run that was computed by hand', async () => {
  const analysis = await analyze(scenario())
  sumsToWhole(analysis)
  expect(analysis.call_time).toEqual([
    {
      phase: 'prefill',
      calls: 1,
      time_ns: 1000,
      parts: [
        { what: 'FFN', time_ns: 300, share: 0.3 },
        { what: 'outside graphs', time_ns: 260, share: 0.26 },
        { what: 'attention', time_ns: 200, share: 0.2 },
        { what: 'waiting for a backend', time_ns: 100, share: 0.1 },
        { what: 'barrier wait', time_ns: 50, share: 0.05 },
        { what: 'allocate', time_ns: 40, share: 0.04 },
        { what: 'barrier open', time_ns: 30, share: 0.03 },
        { what: 'rest', time_ns: 20, share: 0.02 },
      ],
      resources: null,
    },
  ])
  const rows = analysis.operators.rows.map((row) => [
    row.role,
    row.type,
    row.shape,
    row.steps,
    row.wall_ns,
    row.operator_time_ns,
    row.wait_ns,
  ])
  expect(rows).toEqual([
    ['ffn_up', 'q4_0', '8×4×32', 1, 350, 650, 50],
    ['Qcur', 'q8_0', '16×4×32', 1, 230, 400, 60],
  ])
  const [ffn, q] = analysis.operators.rows
  // 2·M·N·K; weights of q4_0: 18 bytes for 32 elements; q8_0: 34; activations f32
  expect([ffn!.flop, ffn!.weight_bytes, ffn!.bytes_read, ffn!.bytes_written]).toEqual([
    2 * 8 * 4 * 32,
    8 * 18,
    8 * 18 + 4 * 32 * 4,
    8 * 4 * 4,
  ])
  expect([q!.flop, q!.weight_bytes, q!.bytes_read, q!.bytes_written]).toEqual([
    2 * 16 * 4 * 32,
    16 * 34,
    16 * 34 + 4 * 32 * 4,
    16 * 4 * 4,
  ])
  expect(ffn!.workers.map(({ worker, last }) => [worker, last])).toEqual([
    [0, 0],
    [1, 1],
  ])
})

test('a call of more operators than are held is counted once, and its operators have its phase', async () => {
  const [nodes, runs, workers] = [100, 50, 240]
  const log: EventInput = {
    name: 'a very long call',
    *events(names) {
      const tensors = Array.from({ length: nodes }, (_, id) => ({
        ...UNKNOWN.tensor,
        id,
        name: names.id(`ffn_up-${id}`),
        op: names.id('MUL_MAT'),
      }))
      const backend = names.id('CPU')
      yield [{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes: {} }, ...tensors]
      for (let worker = 0; worker < workers; worker++) {
        // Without a spread of UNKNOWN.operator: a million of them take seconds with one.
        yield Array.from({ length: nodes * runs }, (_, i) => ({
          kind: 'operator' as const,
          tensor: i % nodes,
          worker,
          tid: -1,
          cpu: -1,
          call: 0,
          startNs: 100 + i * 10,
          endNs: 107 + i * 10,
          waitEndNs: 109 + i * 10,
          experts: undefined,
          inferred: 0,
        }))
      }
      const endNs = 100 + nodes * runs * 10
      yield [
        { kind: 'graph', backend, nodes, call: 0, startNs: 100, endNs, inferred: 0 },
        { kind: 'token', call: 0, phase: 'prefill', tokens: 512, startNs: 0, endNs: endNs + 100, tid: 1, inferred: 0 },
      ]
      yield [
        { ...UNKNOWN.operator, tensor: 0, worker: 1, call: 0, startNs: endNs, endNs: endNs + 5, waitEndNs: endNs + 5 },
      ]
    },
  }
  const analysis = await analyze(log)
  sumsToWhole(analysis)
  const all = nodes * runs
  expect(analysis.call_time.map(({ calls, time_ns }) => [calls, time_ns])).toEqual([[1, all * 10 + 200]])
  const known = total(
    analysis.operators.rows.filter(({ phase }) => phase === 'prefill'),
    ({ executions }) => executions,
  )
  expect(analysis.operators.executions).toBe(all * workers + 1)
  expect(known).toBeGreaterThan(0.1 * all * workers)
})

test('calls without operators have the parts of their graphs; those without graphs are listed, and what is inferred', async () => {
  const log: EventInput = {
    name: 'graphs only',
    *events(names) {
      const graph = (backend: string, call: number, startNs: number, endNs: number) =>
        ({ kind: 'graph', backend: names.id(backend), nodes: 1, call, startNs, endNs, inferred: 0 }) as const
      const call = (call: number, startNs: number) =>
        ({
          kind: 'token',
          call,
          phase: 'decode',
          tokens: 1,
          startNs,
          endNs: startNs + 100,
          tid: 1,
          inferred: 0,
        }) as const
      const tensor = { ...UNKNOWN.tensor, id: 0, name: names.id('ffn_up-0'), op: names.id('MUL_MAT') }
      const operator = {
        ...UNKNOWN.operator,
        tensor: 0,
        worker: 0,
        call: 3,
        startNs: 310,
        endNs: 350,
        waitEndNs: 350,
        inferred: Inferred.End,
      }
      yield [{ kind: 'input', format: 'test', clock: 'MONOTONIC', originNs: 0n, attributes: {} }, tensor]
      yield [
        graph('CPU', 0, 10, 60),
        graph('CUDA0', 0, 60, 70),
        call(0, 0),
        call(1, 100),
        graph('CPU', 2, 220, 290),
        call(2, 200),
      ]
      yield [operator, call(3, 300)]
    },
  }
  const analysis = await analyze(log)
  sumsToWhole(analysis)
  expect(analysis.call_time.map(({ phase, calls, time_ns }) => [phase, calls, time_ns])).toEqual([['decode', 3, 300]])
  const parts = analysis.call_time[0]!.parts.map(({ what, time_ns }) => [what, time_ns])
  // 50 and 70 in graphs of the CPU; 60 of the call with an operator, of which no graph is known.
  expect(parts).toEqual([
    ['rest', 50 + 70 + 60],
    ['outside graphs', 40 + 30],
    ['FFN', 40],
    ['waiting for a backend', 10],
  ])
  const why = (of: string) => analysis.undetermined.find(({ what }) => what === of)?.why
  expect(why('call_time')).toBe('neither graphs nor operators of 1 call were recorded: their time is not in it')
  expect(why('operators.operator_time_ns')).toMatch(/^inferred: ends of operators were not recorded/)
})
