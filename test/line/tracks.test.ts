import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parseTensorName } from '../../lib/core.ts'
import { type Summary, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { Cell, OpenTrace } from '../../lib/sql.ts'
import { opOf } from '../operators-sql.ts'
import { pathsOf } from './comparer.ts'
import { converted, storedBytes } from './support.ts'

/**
 * What the two recordings of one real run look like, in numbers from the recording's own notes (llama.cpp v0.5.0
 * on two workers, a prefill of 16 tokens and eight decodes) and from the recordings themselves.
 */

const RECORDED = {
  'tensor-trace': 'tensor-trace/moe-2threads.bin.gz',
  'profinfer-csv': 'profinfer-csv/moe-2threads.csv.gz',
} as const
const WORKERS = { 'tensor-trace': 1, 'profinfer-csv': 2 } as const
type Format = keyof typeof RECORDED
const FORMATS = Object.keys(RECORDED) as Format[]

const PER_WORKER = {
  ...{ MUL_MAT: 279, ADD: 162, MUL_MAT_ID: 162, ROPE: 108, SET_ROWS: 108, GET_ROWS: 81, FLASH_ATTN_EXT: 54 },
  ...{ SOFT_MAX: 54, ARGSORT: 54, SUM_ROWS: 54, CLAMP: 54, DIV: 54, GLU: 54, MUL: 54 },
}

/** Rank and name, from the root on. Rows of one group are ranked by their places. */
const TREES: Record<Format, string[]> = {
  'tensor-trace': [
    '0 LLM run',
    '0 LLM run/1 Phase',
    '0 LLM run/768 Tokens',
    '0 LLM run/1280 tok/s',
    '0 LLM run/1536 Graphs',
    '0 LLM run/1792 worker 0',
    ...[0, 1, 2, 3, 4, 5].map((layer) => `0 LLM run/${2368 + 8 * layer} layer ${layer}: experts`),
    '0 LLM run/2432 bytes touched per operator',
    '0 LLM run/2438 weights: offset read',
  ],
  'profinfer-csv': [
    '0 LLM run',
    '0 LLM run/1 Phase',
    '0 LLM run/768 Tokens',
    '0 LLM run/1280 tok/s',
    '0 LLM run/1536 Graphs',
    '0 LLM run/1792 worker 0',
    '0 LLM run/1808 worker 1',
    '0 LLM run/2320 GFLOP/s',
  ],
}

const traces = {} as Record<Format, OpenTrace>
beforeAll(async () => {
  for (const format of FORMATS) {
    traces[format] = await openTrace(await converted(storedBytes(RECORDED[format]), { detail: 'full' }))
  }
})
afterAll(() => {
  for (const format of FORMATS) traces[format].close()
})

describe.each(FORMATS)('%s', (format) => {
  const rows = (sql: string): Cell[][] => traces[format].query(sql).rows
  const fromTracks = (key: string) => `SELECT track.id, display_value FROM track
    LEFT JOIN args ON arg_set_id = source_arg_set_id AND key = '${key}'`

  test('the tracks are named, nested and ranked so', () => {
    const paths = pathsOf(traces[format])
    const ranks = new Map(rows(fromTracks('sibling_order_rank')).map(([id, rank]) => [id as number, rank]))
    const parents = new Map(rows('SELECT id, parent_id FROM track').map(([id, parent]) => [id as number, parent]))
    const rankedPath = (id: number): string => {
      const parent = parents.get(id) as number | null
      const name = paths
        .get(id)!
        .split(/\/(?!s$)/)
        .at(-1) // not in tok/s
      return `${parent === null ? '' : `${rankedPath(parent)}/`}${ranks.get(id)} ${name}`
    }
    expect([...paths.keys()].map(rankedPath).sort()).toEqual([...TREES[format]].sort())
  })

  test('every track says what it is, and groups order their rows', () => {
    for (const [, description] of rows(fromTracks('description'))) expect(`${description}`.length).toBeGreaterThan(20)
    const ordered = rows(fromTracks('child_ordering')).filter(([, ordering]) => ordering !== null)
    const groups = rows('SELECT DISTINCT parent_id FROM track WHERE parent_id IS NOT NULL')
    expect(ordered.map(([, ordering]) => ordering)).toEqual(groups.map(() => 'explicit'))
    expect(new Set(ordered.map(([id]) => id))).toEqual(new Set(groups.flat()))
  })

  test('the root says how the log was read', () => {
    const [[, description]] = rows(`${fromTracks('description')} WHERE track.name = 'LLM run'`) as [Cell[]]
    expect(description).toMatch(new RegExp(`^input: ${format}\nclock: CLOCK_MONOTONIC\n`))
    expect(description).toContain(format === 'tensor-trace' ? 'January 2026' : 'v0.5.0')
  })

  test('groups hold no slices, and nothing is nested, endless or nameless', () => {
    expect(rows('SELECT count(*) FROM slice JOIN track ON track.parent_id = slice.track_id')).toEqual([[0]])
    expect(rows(`SELECT count(*) FROM slice WHERE dur < 0 OR depth > 0 OR name IS NULL OR name = ''`)).toEqual([[0]])
    expect(
      rows(`SELECT count(*) FROM slice a JOIN slice b USING (track_id)
      WHERE a.ts < b.ts AND a.ts + a.dur > b.ts AND a.dur > 0`),
    ).toEqual([[0]])
  })

  test('each category keeps to its rows', () => {
    const found = rows(`SELECT DISTINCT category, coalesce(parent.name || '/', '') || track.name FROM slice
      JOIN track ON track.id = track_id LEFT JOIN track parent ON parent.id = track.parent_id`)
    const workers = Array.from({ length: WORKERS[format] }, (_, i) => `LLM run/worker ${i}`)
    const ofLayers = [0, 1, 2, 3, 4, 5].map((layer) => `expert LLM run/layer ${layer}: experts`)
    const layers = format === 'tensor-trace' ? ofLayers : []
    const expected = [
      ...['phase LLM run/Phase', 'token LLM run/Tokens', 'graph LLM run/Graphs', ...layers],
      ...workers.map((worker) => `operator ${worker}`),
      ...(format === 'profinfer-csv'
        ? ['outside LLM run/Graphs', ...workers.map((worker) => `barrier ${worker}`)]
        : []),
    ]
    expect(found.map((cells) => cells.join(' ')).sort()).toEqual(expected.sort())
  })

  test('each worker ran every operator that was recorded', () => {
    const found: Record<string, Record<string, number>> = {}
    const counts = rows(`SELECT track.name, ${opOf('slice')}, count(*) FROM slice
      JOIN track ON track.id = track_id WHERE category = 'operator' GROUP BY 1, 2`)
    for (const [worker, op, count] of counts) found[`${worker}`] = { ...found[`${worker}`], [`${op}`]: count as number }
    const workers = Array.from({ length: WORKERS[format] }, (_, i) => [`worker ${i}`, PER_WORKER])
    expect(found).toEqual(Object.fromEntries(workers))
  })

  test('one prefill of 16 tokens and eight decodes, each a call, a graph and 148 operators a worker', () => {
    const tokens =
      rows(`SELECT substr(name, 1, instr(name, ' · ') - 1), extract_arg(arg_set_id, 'debug.n_tokens'), extract_arg(arg_set_id, 'debug.call')
      FROM slice WHERE category = 'token' ORDER BY ts`)
    const decodes = [1, 2, 3, 4, 5, 6, 7, 8].map((nth) => [`decode ${nth}`, 1, nth])
    expect(tokens).toEqual([['prefill (16 tokens)', 16, 0], ...decodes])
    const graphs =
      rows(`SELECT name, extract_arg(arg_set_id, 'debug.operators'), extract_arg(arg_set_id, 'debug.backend')
      FROM slice WHERE category = 'graph' ORDER BY ts`)
    expect(graphs).toEqual(Array.from({ length: 9 }, () => ['CPU graph', 148, 'CPU']))
    const perCall = rows(`SELECT extract_arg(arg_set_id, 'debug.call'), count(*) FROM slice WHERE category = 'operator'
      GROUP BY 1 ORDER BY 1`)
    expect(perCall).toEqual(Array.from({ length: 9 }, (_, call) => [call, 148 * WORKERS[format]]))
    const phases = rows(
      `SELECT name, extract_arg(arg_set_id, 'debug.calls') FROM slice WHERE category = 'phase' ORDER BY ts`,
    )
    expect(phases).toEqual([
      ['prefill', 1],
      ['decode', 8],
    ])
  })

  test('operators lie within the graph and the call that they name', () => {
    const outside = `SELECT count(*) FROM slice op JOIN slice whole
      ON extract_arg(op.arg_set_id, 'debug.call') = extract_arg(whole.arg_set_id, 'debug.call')
      WHERE op.category = 'operator' AND whole.category = '?' AND (op.ts < whole.ts OR op.ts + op.dur > whole.ts + whole.dur)`
    expect(rows(outside.replace('?', 'graph'))).toEqual([[0]])
    expect(rows(outside.replace('?', 'token'))).toEqual([[0]])
  })

  test('a slice is called by role and op', () => {
    const named = rows(`SELECT DISTINCT name, extract_arg(arg_set_id, 'debug.tensor'), ${opOf('slice')}
      FROM slice WHERE category = 'operator'`)
    expect(named.length).toBeGreaterThan(100)
    for (const [name, tensor, op] of named) expect(name).toBe(`${parseTensorName(`${tensor}`).role} ${op}`.trim())
  })
})

describe('profinfer-csv', () => {
  const rows = (sql: string): Cell[][] => traces['profinfer-csv'].query(sql).rows

  test('ten threads take turns on two rows: the host is worker 0, each graph has a fresh worker 1', () => {
    const threads = rows(`SELECT track.name, count(DISTINCT extract_arg(arg_set_id, 'debug.tid')) FROM slice
      JOIN track ON track.id = track_id WHERE category = 'operator' GROUP BY 1 ORDER BY 1`)
    expect(threads).toEqual([
      ['worker 0', 1],
      ['worker 1', 9],
    ])
  })

  test('waits follow operators without a gap, up to the next one', () => {
    const loose =
      rows(`SELECT count(*) FROM slice wait WHERE category = 'barrier' AND NOT EXISTS (SELECT 1 FROM slice op
      WHERE op.track_id = wait.track_id AND op.category IN ('operator', 'barrier') AND op.ts + op.dur = wait.ts AND op.id <> wait.id)`)
    expect(loose).toEqual([[0]])
    expect(
      rows(`SELECT count(*) FROM slice WHERE category = 'barrier' AND
      extract_arg(arg_set_id, 'debug.inferred') IS NOT 'gap to the next operator: may contain operators that were not recorded'`),
    ).toEqual([[0]])
  })
})

describe('tensor-trace', () => {
  const rows = (sql: string): Cell[][] => traces['tensor-trace'].query(sql).rows

  test('operators follow one another within a call, and the last one has no end', () => {
    const open = rows(`SELECT extract_arg(arg_set_id, 'debug.call'), name FROM slice
      WHERE category = 'operator' AND dur = 0 AND extract_arg(arg_set_id, 'debug.inferred') GLOB '*no end recorded*'`)
    expect(open).toEqual(Array.from({ length: 9 }, (_, call) => [call, 'result_output MUL_MAT']))
    expect(
      rows(`SELECT count(*) FROM slice WHERE category = 'operator' AND
      extract_arg(arg_set_id, 'debug.inferred') GLOB '*end: start of the next record*'`),
    ).toEqual([[1332 - 9]])
  })

  test('every call reads the weights in the same order', () => {
    const reads = rows(`SELECT value FROM counter JOIN track ON track.id = track_id
      WHERE track.name = 'weights: offset read' ORDER BY ts, counter.id`).flat() as number[]
    const perCall = Array.from({ length: 9 }, (_, i) =>
      reads.slice((i * reads.length) / 9, ((i + 1) * reads.length) / 9),
    )
    for (const call of perCall) expect(call).toEqual(perCall[0])
    expect(new Set(reads).size).toBeGreaterThan(40)
  })

  test('each layer chose two of eight experts in a decode', () => {
    const chosen = rows(`SELECT extract_arg(arg_set_id, 'debug.experts') FROM slice WHERE category = 'expert'`).flat()
    expect(chosen).toHaveLength(6 * 9)
    for (const experts of chosen) expect(`${experts}`).toMatch(/^[0-7],[0-7]$/)
  })
})

describe('the summaries', () => {
  /** The same run: recorded at entry and return of llama_decode, or at starts of operators. In ns. */
  const CALLS: Record<Format, Partial<Summary['calls']>> = {
    'tensor-trace': { ttft_ns: 25_196_784, tpot_ns: 1_582_768.875 },
    'profinfer-csv': { ttft_ns: 26_109_682, tpot_ns: 1_569_381.375 },
  }
  const TIMES: Record<Format, Partial<Summary>> = {
    'tensor-trace': { duration_ns: 37_858_935, ends_are_open: true },
    'profinfer-csv': { duration_ns: 38_664_733, ends_are_open: false },
  }

  test.each(FORMATS)('%s', async (format) => {
    const summary = await summarize({ name: format, source: storedBytes(RECORDED[format]) })
    expect(summary).toMatchObject({
      format,
      clock: 'MONOTONIC',
      calls: {
        count: 9,
        by_phase: { prefill: { calls: 1, tokens: 16 }, decode: { calls: 8, tokens: 8 } },
        ...CALLS[format],
      },
      operators: 1332 * WORKERS[format],
      graphs: 9,
      workers: WORKERS[format],
      threads: format === 'profinfer-csv' ? 10 : 1,
      layers: 6,
      with_experts: format === 'profinfer-csv' ? 0 : 162,
      issues: [],
      ...TIMES[format],
    })
    const counts = Object.fromEntries(summary.ops.map(({ op, count }) => [op, count / WORKERS[format]]))
    expect(counts).toEqual(PER_WORKER)
  })
})
