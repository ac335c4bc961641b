import { describe, expect, it, test } from '@jest/globals'
import { benchmarksSection } from '../../bin/stats/benchmarks.ts'
import { compareRuns } from '../../lib/analysis.ts'
import { type BenchmarkEvent, Inferred } from '../../lib/core.ts'
import { analyze } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { converted, cut, eventsIn, plainBytes } from '../line/support.ts'

/** Results of llama-bench in all its forms. Damaged ones: traces-of-others.test.ts. */

const bytesOf = (text: string) => new TextEncoder().encode(text)
const textOf = (name: string) => new TextDecoder().decode(plainBytes(`llama-bench/${name}`))

interface Row extends Readonly<Record<string, unknown>> {
  readonly samples_ns: readonly number[]
  readonly avg_ts: number
  readonly stddev_ts: number
  readonly n_prompt: number
  readonly n_gen: number
  readonly test_time: string
}
const ROWS = JSON.parse(textOf('tests.json')) as Row[]
const NAMES = ['pp32', 'tg8', 'pp16+tg4', 'pp32 @ d64', 'tg8 @ d64', 'pp16+tg4 @ d64']

async function read(source: Uint8Array | AsyncIterable<Uint8Array>) {
  const { names, events } = await eventsIn(source)
  const [input] = events
  if (input?.kind !== 'input') throw new Error('expected an input event')
  const tests = events.filter((event): event is BenchmarkEvent => event.kind === 'benchmark')
  const issues = events.flatMap((event) => (event.kind === 'issue' ? [event.code] : []))
  const leftOut = events.flatMap((event) => (event.kind === 'left-out' ? [[event.what, event.count]] : []))
  const facts = Object.assign({}, ...events.map((event) => (event.kind === 'facts' ? event.attributes : {})))
  return { input, facts, tests, names: tests.map(({ name }) => names.text(name)), issues, leftOut }
}

describe('forms', () => {
  it('JSON has the repetitions, laid end to end from the time of the test', async () => {
    const { input, tests, names, issues, leftOut } = await read(plainBytes('llama-bench/tests.json'))
    expect([input.format, input.clock, issues, leftOut]).toEqual(['llama-bench', 'REALTIME', [], []])
    expect(input.originNs).toBe(BigInt(Date.parse(ROWS[0]!.test_time)) * 1_000_000n)
    expect(names).toEqual(NAMES)
    expect(tests.map(({ samplesNs }) => samplesNs)).toEqual(ROWS.map(({ samples_ns }) => samples_ns))
    let endNs = 0
    for (const [i, { startNs, endNs: end, inferred, samplesNs }] of tests.entries()) {
      const recordedNs = (Date.parse(ROWS[i]!.test_time) - Date.parse(ROWS[0]!.test_time)) * 1e6
      expect(startNs).toBe(Math.max(recordedNs, endNs))
      expect(end - startNs).toBe(samplesNs.reduce((sum, ns) => sum + ns, 0))
      expect(inferred).toBe(Inferred.Laid)
      endNs = end
    }
  })

  test.each(['jsonl', 'csv', 'sql', 'md'])('%s has the same tests', async (form) => {
    const { input, tests, names, issues, leftOut } = await read(plainBytes(`llama-bench/tests.${form}`))
    expect([names, issues, leftOut]).toEqual([NAMES, [], []])
    expect(input.clock).toBe(form === 'md' ? 'unknown' : 'REALTIME')
    expect(tests.every(({ samplesNs }) => samplesNs.length === (form === 'jsonl' ? 3 : 0))).toBe(true)
    expect(tests.every(({ inferred }) => ((inferred & Inferred.Rate) !== 0) === (form === 'md'))).toBe(true)
    expect(tests.every(({ stated }) => stated.mean > 0 && stated.deviation >= 0)).toBe(true)
    expect(tests[0]!.parameters).toMatchObject(
      form === 'md'
        ? { model: 'llama ?B Q4_0', backend: 'Vulkan' }
        : { model_type: 'llama ?B Q4_0', n_threads: 2, type_k: 'f16' },
    )
  })

  it('tables of several versions follow one another, with other lines between them', async () => {
    const { facts, tests, names, issues, leftOut } = await read(plainBytes('llama-bench/others.md'))
    expect([names, issues]).toEqual([['pp512', 'tg128', 'pp512', 'pp512+tg128 @ d4096'], []])
    expect(leftOut).toEqual([['lines that are no rows', 3]])
    expect(facts).toMatchObject({ model: 'llama 7B mostly Q4_0, qwen3 8B Q4_K - Medium' })
    expect(tests[3]).toMatchObject({
      promptTokens: 512,
      generatedTokens: 128,
      depth: 4096,
      parameters: { fa: 1, mmap: 0 },
    })
    expect(tests[1]!.endNs - tests[1]!.startNs).toBe(Math.round(128e9 / 131.42))
  })

  it('the pieces of the input do not matter', async () => {
    for (const name of ['tests.json', 'tests.sql', 'others.md']) {
      const bytes = plainBytes(`llama-bench/${name}`)
      expect((await read(cut(bytes, 7))).tests).toEqual((await read(bytes)).tests)
    }
  })
})

describe('rows that cannot be', () => {
  const row = (changes: object) => JSON.stringify({ ...ROWS[0], ...changes })

  it('are issues', async () => {
    const rows = [
      row({}),
      row({ n_prompt: 0, n_gen: 0 }),
      row({ avg_ns: 0, avg_ts: 0, samples_ns: [] }),
      '7',
      '{"a" 1}',
      row({}),
    ]
    const { tests, issues, leftOut } = await read(bytesOf(rows.join('\n')))
    expect(tests).toHaveLength(2)
    expect([...issues].sort()).toEqual(['json-damaged', 'unreadable-row', 'unreadable-row', 'unreadable-row'].sort())
    expect(leftOut).toEqual([])
  })

  it('speeds and repetitions that are missing are not known', async () => {
    const rows = [
      { avg_ns: 2e6, avg_ts: null, stddev_ts: '', samples_ns: [] },
      { avg_ns: 0.4, samples_ns: [], avg_ts: 0 },
    ]
    const source = bytesOf(rows.map(row).join('\n'))
    const { tests, issues } = await read(source)
    expect(tests.map(({ stated }) => stated)).toEqual([{ mean: -1, deviation: -1 }])
    expect(issues).toEqual(['unreadable-row'])
    const { benchmarks } = await analyze({ name: 'bench', source })
    expect(benchmarks).toMatchObject([{ tokens_per_s: 16000, deviation_tokens_per_s: null, repetitions: null }])
  })

  it('a test that began earlier than the one before it, or in another age, is an issue; later ones are read', async () => {
    const at = (test_time: string) => row({ test_time, samples_ns: [2e9] })
    const times = ['2026-11-23T15:04:18Z', '2026-11-23T15:04:10Z', '2099-11-23T15:04:10Z', '2026-11-23T15:05:18Z']
    const { tests, issues } = await read(bytesOf(times.map(at).join('\n')))
    expect(tests.map(({ startNs }) => startNs / 1e9)).toEqual([0, 2, 4, 60])
    expect(issues).toEqual(['record-out-of-order', 'impossible-time'])
  })

  it('lines of stderr between JSON are counted', async () => {
    const text = `ggml_cuda_init: found 1 CUDA devices:\n${row({})}\nload_backend: loaded\n${row({})}\n`
    const { tests, issues, leftOut } = await read(bytesOf(text))
    expect([tests.length, issues, leftOut]).toEqual([2, [], [['lines that are no rows', 2]]])
  })
})

describe('several builds and models in one input', () => {
  const TWO = { name: 'two', source: plainBytes('llama-bench/two-builds.md') }
  const BUILDS = [
    ['pp512', 1000, 'aaaaaaa1', 7000],
    ['tg128', 50, 'aaaaaaa1', 7000],
    ['pp512', 1200, 'bbbbbbb2', 7001],
    ['tg128', 51, 'bbbbbbb2', 7001],
  ]

  it('each test keeps the build below its table, and the run names all', async () => {
    const analysis = await analyze(TWO)
    const rows = analysis.benchmarks.map(({ test, tokens_per_s, parameters }) => [
      ...[test, tokens_per_s, parameters['build_commit'], parameters['build_number']],
    ])
    expect(rows).toEqual(BUILDS)
    expect(analysis.run).toMatchObject({ build: '7000 (aaaaaaa1), 7001 (bbbbbbb2)', model: 'llama 7B Q4_0' })
    expect(analysis.benchmarks.map((of) => of.deviation_tokens_per_s)).toEqual([1, 0.1, 1, 0.1])
  })

  it('stats has the build of each row', async () => {
    const { tables } = benchmarksSection(await analyze(TWO))!
    const [{ columns, rows }] = tables as [{ columns: { title: string }[]; rows: string[][] }]
    const build = columns.findIndex(({ title }) => title === 'build_commit')
    expect(rows.map((row) => [row[0], row[build]])).toEqual(BUILDS.map(([test, , commit]) => [test, commit]))
  })

  it('compare has a figure for each', async () => {
    const runs = [await analyze(TWO)]
    const { effects } = compareRuns({ name: 'a', runs }, { name: 'b', runs })
    expect(effects.map(({ name }) => name).sort()).toEqual(
      BUILDS.map(([test, , commit]) => `${test} build_commit=${commit}`).sort(),
    )
  })

  it('of JSON too: builds, models; a commit of digits stays a text', async () => {
    const row = (changes: object) => JSON.stringify({ ...ROWS[0], ...changes })
    const rows = [
      row({ build_commit: '1234567', build_number: 1, model_type: 'a' }),
      row({ build_commit: '1e10000', build_number: 2, model_type: 'b' }),
    ]
    const { run, benchmarks } = await analyze({ name: 'two', source: bytesOf(rows.join('\n')) })
    expect(run).toMatchObject({ build: '1 (1234567), 2 (1e10000)', model: 'a, b' })
    expect(benchmarks.map(({ parameters }) => parameters['build_commit'])).toEqual(['1234567', '1e10000'])
  })

  it('a table without a build below it has none, whatever follows', async () => {
    const [first, second] = new TextDecoder().decode(TWO.source).split('build: aaaaaaa1 (7000)')
    const { benchmarks } = await analyze({ name: 'cut', source: bytesOf(`${first}${second}`) })
    expect(benchmarks.map(({ parameters }) => parameters['build_commit'])).toEqual([
      ...[undefined, undefined, 'bbbbbbb2', 'bbbbbbb2'],
    ])
  })
})

describe('figures', () => {
  it('are those that llama-bench states', async () => {
    const { benchmarks, run } = await analyze({ name: 'tests', source: plainBytes('llama-bench/tests.json') })
    expect(benchmarks.map(({ test }) => test)).toEqual(NAMES)
    expect(run).toMatchObject({ cpu: 'AMD EPYC', build: '11669 (Debian)', recorded: ['benchmarks'] })
    for (const [i, of] of benchmarks.entries()) {
      expect(of.tokens_per_s).toBeCloseTo(ROWS[i]!.avg_ts, 3)
      expect(of.deviation_tokens_per_s).toBeCloseTo(ROWS[i]!.stddev_ts, 3)
      expect(of).toMatchObject({ repetitions: 3, prompt_tokens: ROWS[i]!.n_prompt, generated_tokens: ROWS[i]!.n_gen })
    }
  })

  it('of two results are compared', async () => {
    const [before, after] = await Promise.all(
      ['tests.json', 'tests.csv'].map(async (name) => ({
        name,
        runs: [await analyze({ name, source: plainBytes(`llama-bench/${name}`) })],
      })),
    )
    const { effects, is_comparable } = compareRuns(before!, after!)
    expect(is_comparable).toBe(true)
    expect(effects.map(({ name }) => name).sort()).toEqual([...NAMES].sort())
    for (const { name, before: ns } of effects)
      expect((ns! * ROWS[NAMES.indexOf(name)]!.avg_ts) / 1e9).toBeCloseTo(1, 5)
  })
})

test('the trace has a slice for each test, and in it one for each repetition', async () => {
  const open = await openTrace(await converted(plainBytes('llama-bench/tests.json')))
  try {
    const slices = `select name, dur, depth from slice where category = 'benchmark' order by ts, depth`
    const { rows } = open.query(slices)
    const wanted = ROWS.flatMap(({ samples_ns }, i) => [
      [NAMES[i], samples_ns.reduce((sum, ns) => sum + ns, 0), 0],
      ...samples_ns.map((ns, n) => [`${NAMES[i]} ${n + 1}`, ns, 1]),
    ])
    expect(rows).toEqual(wanted)
  } finally {
    open.close()
  }
})
