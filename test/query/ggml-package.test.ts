import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Inferred, type Phase } from '../../lib/core.ts'
import { analyze, convert, type EventInput, eventsOf, Names } from '../../lib/index.ts'
import { inputOf, openTrace } from '../../lib/node.ts'
import { GGML_PACKAGE, GGML_SQL } from '../../lib/sql.ts'
import { logOf, type MadeCall, span } from '../analyze/calls/made-run.ts'
import { logOfRequests } from '../analyze/requests/made-requests.ts'
import {
  type Call,
  eventsOf as eventsOfWorkers,
  logOf as logOfWorkers,
  stateOf,
  tidOf,
} from '../analyze/workers-log.ts'
import { inLong, inParts, isLong, someOf } from '../long.ts'
import { switchOf, wakingOf } from '../sched/schedule.ts'
import { failure, open } from './helpers.ts'
import {
  rowsOf,
  sameCalls,
  sameExperts,
  sameInterference,
  sameOperators,
  sameRequests,
  sameSummary,
  sameTimes,
  sameWorkers,
  traceOf,
} from './same-figures.ts'

/** The SQL package `ggml`, against the Analysis of the same logs: each computes its figures in its own way. */

const MS = 1e6
const FIXTURES = 'test/fixtures'
/** A log, and other recordings of its run. */
const PAIRS: readonly string[] = ['memory-samples', 'session']
/** Formats whose logs contain calls or operators. */
const FORMATS = /^(bpftrace|chrome-json|findings|ggtrace|profinfer-(csv|openharmony|text)|tensor-trace(-json)?)$/
const LOGS = [
  'examples/moe.csv',
  'examples/moe.ggtrace.gz',
  ...readdirSync(FIXTURES)
    .filter((format) => FORMATS.test(format))
    .flatMap((format) => readdirSync(join(FIXTURES, format)).map((name) => join(FIXTURES, format, name)))
    .filter((path) => !path.endsWith('.md')),
]

describe.each(['shapes', 'full'] as const)('--detail %s', (detail) => {
  inParts(test).each(someOf(LOGS, 20, detail === 'full' ? 2 : 0))('%s', async (log) => {
    const analysis = await analyze(inputOf(log))
    const trace = await traceOf(inputOf(log), { detail })
    try {
      sameCalls(analysis, trace)
      sameOperators(analysis, trace, detail === 'full')
      sameWorkers(analysis, trace)
      sameInterference(analysis, trace)
      sameExperts(analysis, trace)
      sameTimes(analysis, trace)
      sameSummary(trace)
    } finally {
      trace.close()
    }
  })
})

test('requests, and the sums of their parts', async () => {
  const log = logOfRequests([
    {
      ...{ startNs: 0, firstTokenNs: 14, promptTokens: 9, reusedTokens: 2, generatedTokens: 2 },
      parts: [
        ...([
          ['queued', 3],
          ['prepare', 5],
          ['prefill', 12, { tokens: 7 }],
          ['sample', 14],
          ['stalled', 40],
        ] as const),
        ...([
          ['decode', 50, { tokens: 1 }],
          ['text', 52],
          ['other', 55],
          ['send', 57],
        ] as const),
      ],
    },
    { startNs: 10, parts: [['prefill', 40, { tokens: 30 }]], outcome: 'cancelled' },
    { startNs: 20, slot: -1, launchNs: -1, parts: [['queued', 31]], outcome: 'unfinished' },
  ])
  const analysis = await analyze(log, { series: ['requests'] })
  expect(analysis.requests).toMatchObject({ count: 3, parts: { queued_ns: 14, stalled_ns: 26, prefill_ns: 37 } })
  const trace = await traceOf(log)
  sameRequests(analysis, trace)
  sameSummary(trace)
  trace.close()
})

test('activations of experts are those of the recorded choices', async () => {
  const counted = new Map<string, number>()
  const names = new Names()
  const layers = new Map<number, number>()
  for await (const batch of eventsOf(inputOf('examples/moe.ggtrace.gz'), names))
    for (const event of batch) {
      if (event.kind === 'tensor') layers.set(event.id, event.layer)
      if (event.kind !== 'experts') continue
      for (const id of event.ids) {
        const key = `${layers.get(event.tensor)} ${id}`
        counted.set(key, (counted.get(key) ?? 0) + 1)
      }
    }
  const trace = await traceOf(inputOf('examples/moe.ggtrace.gz'))
  const rows = rowsOf(trace, 'SELECT layer, expert, sum(activations) AS n FROM ggml_expert_activations GROUP BY 1, 2')
  trace.close()
  expect(counted.size).toBeGreaterThan(30)
  expect(Object.fromEntries(rows.map(({ layer, expert, n }) => [`${layer} ${expert}`, n]))).toEqual(
    Object.fromEntries(counted),
  )
})

test('a pause of a server before texts that begin with a token of a prompt is no time between calls', async () => {
  const log = inputOf('test/fixtures/bpftrace/sequences.txt')
  const analysis = await analyze(log)
  expect(analysis.calls.tpot_ns).toBeLessThan(4 * MS)
  for (const options of [{}, { tokens: [15, 40] as const }]) {
    const trace = await traceOf(log, options, ['calls'])
    if (!options.tokens) sameCalls(analysis, trace)
    // The three pauses are 0.3 s each.
    expect(rowsOf(trace, 'SELECT max(tpot) < 30e6 AS is_short, count() > 10 AS are_many FROM ggml_calls')).toEqual([
      { is_short: 1, are_many: 1 },
    ])
    trace.close()
  }
})

test('of a trace with sums of calls, sums by name are those of the full trace', async () => {
  const log = inputOf('examples/moe.ggtrace.gz')
  const analysis = await analyze(log)
  const [thin, full] = [await traceOf(log, { budget: 1 }), await traceOf(log)]
  const byName =
    'SELECT worker, what, name, sum(count), sum(dur) FROM ggml_time_by_name GROUP BY 1, 2, 3 ORDER BY 1, 2, 3'
  expect(thin.query('SELECT count() > 10 FROM ggml_sums').rows).toEqual([[1]])
  expect(thin.query(byName).rows).toEqual(full.query(byName).rows)
  sameTimes(analysis, thin)
  sameCalls(analysis, thin)
  thin.close()
  full.close()
})

test('without arguments, roles, ops, workers and phases of calls are known', async () => {
  const log = inputOf('examples/moe.ggtrace.gz')
  const { operators, calls } = await analyze(log)
  const trace = await traceOf(log, { detail: 'names' })
  const [row] = rowsOf(trace, "SELECT * FROM ggml_calls_by_phase WHERE phase = 'decode'")
  expect(row).toMatchObject(calls.by_phase.decode!)
  const roles = rowsOf(trace, 'SELECT op, role, sum(dur) AS ns FROM ggml_operators GROUP BY 1, 2')
  for (const { op, role, ns } of roles) {
    const same = operators.rows.filter((of) => of.op === op && of.role === role)
    expect([op, role, ns]).toEqual([op, role, same.reduce((sum, of) => sum + of.operator_time_ns, 0)])
  }
  expect(rowsOf(trace, 'SELECT DISTINCT phase, call FROM ggml_operators')).toEqual([{ phase: null, call: null }])
  sameSummary(trace)
  trace.close()
})

inLong(test)('the package as one text works where it is not registered, also a second time', async () => {
  const chunks: Uint8Array[] = []
  for await (const chunk of convert(inputOf('examples/moe.ggtrace.gz'))) chunks.push(chunk)
  const bare = await open(chunks)
  bare.query(GGML_SQL)
  bare.query(GGML_SQL)
  const trace = await traceOf(inputOf('examples/moe.ggtrace.gz'))
  const views = [...GGML_SQL.matchAll(/^CREATE OR REPLACE PERFETTO (?:VIEW|TABLE) (ggml_\w+)/gm)]
  expect(views.length).toBeGreaterThan(10)
  for (const [, view] of views)
    expect([view, bare.query(`SELECT * FROM ${view}`)]).toEqual([view, trace.query(`SELECT * FROM ${view}`)])
  bare.close()
  trace.close()
})

test('a package of one name is registered once; a wrong spec leaves the trace usable', async () => {
  const trace = await openTrace(convert(inputOf('examples/moe.ggtrace.gz')))
  expect((await failure(() => trace.register(GGML_PACKAGE))).name).toBe('SqlError')
  trace.register({ name: 'own', modules: { 'of.mine': 'CREATE PERFETTO VIEW mine AS SELECT 7 AS seven;' } })
  expect(trace.query('INCLUDE PERFETTO MODULE own.of.mine; SELECT * FROM mine').rows).toEqual([[7]])
  const spec = (sql: string) => `metric_spec { id: "x" value: "y" query { sql { sql: "${sql}" column_names: "y" } } }`
  expect(trace.summarize(spec('select 5 as y'))).toEqual([
    { metrics: ['x'], dimensions: [], rows: [{ dimensions: [], values: [5] }] },
  ])
  expect((await failure(() => trace.summarize(spec('select nope')))).message).toContain('no such column: nope')
  expect((await failure(() => trace.summarize('nonsense {'))).name).toBe('SqlError')
  expect(trace.summarizeAsText(spec('select 5 as y'))).toContain('double_value: 5')
  trace.close()
})

inLong(test)('formats that are left out contain neither calls nor operators', async () => {
  // Samples of memory lie next to the log of their run.
  const left = readdirSync(FIXTURES).filter((format) => !FORMATS.test(format) && !PAIRS.includes(format))
  for (const format of left)
    for (const name of readdirSync(join(FIXTURES, format)).filter((name) => !/\.(md|c|g2p)$/.test(name))) {
      const { operators, calls } = await analyze(inputOf(join(FIXTURES, format, name))).catch(() => NOTHING)
      expect([format, name, operators.executions, calls.count]).toEqual([format, name, 0, 0])
    }
})

describe('workers without a CPU', () => {
  const CALL: Call = {
    phase: 'decode',
    at: [0, 1000],
    parts: [
      { worker: 0, node: 'Qcur-0', at: [100, 300, 460], cpu: 0 },
      { worker: 1, node: 'Qcur-0', at: [100, 400, 410], cpu: 1 },
    ],
  }
  const NEXT: Call = {
    phase: 'prefill',
    at: [1100, 2000],
    parts: [
      { worker: 0, node: 'Qcur-0', at: [1200, 1300, 1460], cpu: 0 },
      { worker: 1, node: 'Qcur-0', at: [1200, 1400, 1460], cpu: 1 },
      { worker: 0, node: 'Kcur-0', at: [1500, 1600, 1700], cpu: 0 },
      { worker: 1, node: 'Kcur-0', at: [1510, 1700, 1700], cpu: 1 },
    ],
  }
  const [HOG, RCU] = [66, 17]

  const same = async (inputs: EventInput | EventInput[]) => {
    const analysis = await analyze(inputs)
    expect(analysis.scheduling!.workers.length).toBeGreaterThan(1)
    for (const detail of ['shapes', 'full'] as const) {
      const trace = await traceOf(inputs, { detail })
      sameInterference(analysis, trace)
      sameWorkers(analysis, trace)
      trace.close()
    }
  }

  const states = [
    stateOf(tidOf(0), 0, 'running', 0),
    stateOf(tidOf(1), 50, 'running', 1),
    stateOf(tidOf(0), 150, 'runnable', 0),
    stateOf(tidOf(0), 200, 'running', 0),
    stateOf(tidOf(1), 210, 'blocked', 1),
    stateOf(tidOf(1), 220, 'running', 1),
    stateOf(tidOf(0), 320, 'blocked', 0),
    stateOf(tidOf(0), 350, 'running', 0),
    stateOf(tidOf(0), 380, 'runnable', 0),
    stateOf(tidOf(0), 450, 'running', 1),
  ]

  test('by the states of the log: the last ones last', () =>
    same(logOfWorkers((names) => [...states, ...eventsOfWorkers(names, [CALL, NEXT])])))

  test('by a recording of the scheduler', () =>
    same([
      logOfWorkers((names) => eventsOfWorkers(names, [CALL, NEXT]), { attributes: { pid: '100' } }),
      logOfWorkers(
        (names) => [
          { kind: 'thread', what: 'known', atNs: 0, tid: tidOf(0), tgid: 100, comm: 0, parentTid: -1 },
          { kind: 'thread', what: 'known', atNs: 0, tid: tidOf(1), tgid: 100, comm: 0, parentTid: -1 },
          switchOf(names, { cpu: 0, at: 0, from: 5, to: tidOf(0) }),
          switchOf(names, { cpu: 1, at: 50, from: 0, to: tidOf(1) }),
          switchOf(names, { cpu: 0, at: 150, from: tidOf(0), to: RCU }),
          switchOf(names, { cpu: 0, at: 160, from: RCU, left: 1, to: HOG }),
          switchOf(names, { cpu: 0, at: 200, from: HOG, to: tidOf(0) }),
          switchOf(names, { cpu: 0, at: 320, from: tidOf(0), left: 1, to: HOG }),
          wakingOf(names, 1, 330, tidOf(1), tidOf(0), { targetCpu: 0 }),
          switchOf(names, { cpu: 0, at: 350, from: HOG, to: tidOf(0) }),
          switchOf(names, { cpu: 0, at: 380, from: tidOf(0), to: HOG }),
          switchOf(names, { cpu: 1, at: 430, from: tidOf(1), to: tidOf(0) }),
          switchOf(names, { cpu: 1, at: 950, from: tidOf(0), left: 0x10, to: tidOf(1) }),
          switchOf(names, { cpu: 0, at: 990, from: HOG, to: 0 }),
          switchOf(names, { cpu: 0, at: 1600, from: 0, to: HOG }),
        ],
        { name: 'recording' },
      ),
    ]))

  test('of another thread in each call', () =>
    same(
      logOfWorkers((names) => {
        const events = eventsOfWorkers(names, [CALL, NEXT]).map((event) =>
          event.kind === 'operator' && event.startNs > (event.worker === 0 ? 1000 : 1450)
            ? { ...event, tid: event.tid + 100 }
            : event,
        )
        const others = [
          stateOf(tidOf(0) + 100, 900, 'running', 3),
          stateOf(tidOf(0) + 100, 1250, 'runnable', 3),
          stateOf(tidOf(1) + 100, 1300, 'blocked', 2),
          stateOf(tidOf(0) + 100, 1300, 'running', 2),
          stateOf(tidOf(1) + 100, 1650, 'running', 2),
        ]
        return [...states, ...others, ...events]
      }),
    ))
})

/** A target (context 1), its draft (2), and another context, which verifies drafts of its own, on another thread. */
inParts(test)('calls of any kind, of several contexts', async () => {
  const made = fc.record({
    kind: fc.constantFrom('target', 'target', 'other', 'speculation'),
    gap: fc.nat(5 * MS),
    took: fc.integer({ min: 1, max: 50 * MS }),
    tokens: fc.constantFrom(1, 1, 1, 1, 2, 4),
    sequences: fc.integer({ min: 1, max: 3 }),
    advance: fc.integer({ min: 1, max: 4 }),
    result: fc.constantFrom(0, 0, 0, 0, 0, 1),
    inferred: fc.constantFrom(0, 0, 0, 0, 0, Inferred.NoEnd),
    phase: fc.constantFrom('prefill', 'mixed', 'decode', 'decode', 'decode', 'warm-up'),
    flag: fc.boolean(),
    cut: fc.constantFrom('none', 'none', 'one', 'each', 'all'),
    missing: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 3), // calls before it that the log does not contain
  })
  await fc.assert(
    fc.asyncProperty(fc.array(made, { minLength: 1, maxLength: 30 }), async (list) => {
      const now = { target: 0, other: 0 }
      const positions = { target: 0, other: 0 }
      const callsOf = (of: (typeof list)[0]): MadeCall[] => {
        const { kind, gap, took, tokens, sequences, advance, result, inferred, flag, phase, cut } = of
        const row = kind === 'other' ? 'other' : 'target'
        const times = (ns: number) => {
          const startNs = now[row] + gap
          now[row] = startNs + ns
          return { startNs, endNs: startNs + ns }
        }
        positions[row] += cut === 'none' ? advance : Math.max(-advance, -positions[row])
        const position = positions[row]
        if (kind !== 'speculation') {
          const spans = Array.from({ length: sequences }, (_, sequence) => span(position, tokens, sequence))
          const cuts = {
            ...{ none: [], one: [{ sequence: 0, from: position }], all: [{ sequence: -1, from: position }] },
            each: spans.map(({ sequence }) => ({ sequence, from: position })),
          }[cut]
          const thread = kind === 'other' ? { context: 3, tid: 9, areAllOutput: flag } : { context: 1 }
          return [{ ...times(took), spans, ...thread, result, inferred, phase: phase as Phase, cuts }]
        }
        const draft = (phase: Phase, at: number, count: number): MadeCall => {
          return { ...times(1 + (took >> 2)), context: 2, phase, spans: [span(at, count)] }
        }
        const prompts = flag ? [draft('prefill', 0, position)] : []
        const drafts = Array.from({ length: tokens }, (_, i) => draft('decode', position + i, 1))
        const spans = [span(position, tokens + 1)]
        const verification = {
          ...times(took),
          context: 1,
          spans,
          areAllOutput: true,
          inferred,
          phase: 'decode',
        } as const
        return [...prompts, ...drafts, verification]
      }
      let number = 0
      const calls = list.flatMap((of) => {
        number += of.missing
        return callsOf(of).map((call) => ({ ...call, call: number++ }))
      })
      const log = logOf(calls)
      const trace = await traceOf(log, {}, ['calls'])
      sameCalls(await analyze(log), trace)
      trace.close()
    }),
    { numRuns: isLong ? 100 : 4 },
  )
})

/** Of files that are no logs. */
const NOTHING = { operators: { executions: 0 }, calls: { count: 0 } }
