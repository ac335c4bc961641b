import { gzipSync } from 'node:zlib'
import { expect, test } from '@jest/globals'
import { readAnalysis } from '../../lib/analysis.ts'
import { analyze, convert, inspect, summarize } from '../../lib/index.ts'
import { scenario } from './scenario.ts'

/** Stored Analyses: read again, and refused with a reason. */

const text = JSON.stringify(await analyze(scenario()))
/** The document with a change. */
const changed = (change: (document: { operators: { rows: unknown[] } } & Record<string, unknown>) => unknown) => {
  const document = JSON.parse(text)
  change(document)
  return JSON.stringify(document)
}
const bytes = (text: string) => new TextEncoder().encode(text)

test('a text, bytes, in chunks and compressed are the same', async () => {
  const analysis = JSON.parse(text)
  expect(await readAnalysis(text)).toEqual(analysis)
  expect(await readAnalysis({ name: 'run.json', source: bytes(text) })).toEqual(analysis)
  const zipped = gzipSync(text)
  const chunks = [zipped.subarray(0, 1), zipped.subarray(1, 99), zipped.subarray(99)]
  expect(await readAnalysis({ name: 'run.json.gz', source: chunks })).toEqual(analysis)
})

const schema = '"schema": "ggml2perfetto.analysis/1"'
test.each<[string, string, string]>([
  [
    'a newer major version',
    changed((of) => Object.assign(of, { schema: 'ggml2perfetto.analysis/2' })),
    `expected ${schema}, found "ggml2perfetto.analysis/2"\nhint: a newer ggml2perfetto wrote it: update this one`,
  ],
  ['another document', '{"schema": "other/1"}', `expected ${schema}, found "other/1"`],
  ['no schema', '[]', `expected ${schema}, found no schema`],
  ['cut', text.slice(0, 500), 'expected JSON, found '],
  [
    'a field of another kind',
    changed((of) => {
      Object.assign(of.operators.rows[1]!, { flop: 'x' })
    }),
    'expected operators.rows[1].flop: number, found string',
  ],
  [
    'a missing field',
    changed((of) => {
      delete of['calls']
    }),
    'expected calls: object, found nothing',
  ],
  [
    'a word that it does not know',
    changed((of) => Object.assign(of, { inputs: [{ ...(of['inputs'] as object[])[0], times: '<b>' }] })),
    'expected inputs[0].times: "recorded", "durations", "order", found "<b>"',
  ],
  [
    'a number that is none',
    text.replace(/"flop":\d+/, '"flop":1e999'),
    'expected operators.rows[0].flop: number, found Infinity',
  ],
  [
    'a row that is none',
    changed((of) => {
      of.operators.rows[0] = 7
    }),
    'expected operators.rows[0]: object, found number',
  ],
])('%s is refused', async (_, document, message) => {
  const error = await readAnalysis({ name: 'run.json', source: bytes(document) }).catch((error) => error)
  expect([error.name, error.message]).toEqual([
    'UsageError',
    expect.stringContaining(`run.json: not a readable Analysis: ${message}`),
  ])
})

test('a cut gzip file is refused', async () => {
  const source = gzipSync(text).subarray(0, 300)
  await expect(readAnalysis({ name: 'run.json.gz', source })).rejects.toThrow(
    /^run\.json\.gz: cannot be decompressed: [\s\S]*\nhint: the file was cut/,
  )
})

test('it is recognised, also with sorted keys, and not read as a log', async () => {
  const sorted = `{\n  "call_time": [],${JSON.stringify(JSON.parse(text)).slice(1)}`
  for (const document of [text, JSON.stringify(JSON.parse(text), null, 2), sorted, gzipSync(text)]) {
    const source = typeof document === 'string' ? bytes(document) : document
    const { kind, isTrace } = await inspect(
      (async function* () {
        yield source
      })(),
    )
    expect({ kind, isTrace }).toEqual({ kind: 'analysis', isTrace: false })
    const isRefused = /^run\.json: is an Analysis, not a log\nhint: ggml2perfetto stats run\.json$/
    await expect(summarize({ name: 'run.json', source })).rejects.toThrow(isRefused)
    await expect(convert({ name: 'run.json', source }).next()).rejects.toThrow(isRefused)
  }
})

test('of an earlier version, without the fields that this one adds, it is complete', async () => {
  const earlier = changed((of) => {
    const { run, call_time } = of as unknown as { run: Record<string, unknown>; call_time: Record<string, unknown>[] }
    for (const key of ['version', 'limits', 'variables']) delete run[key]
    for (const call of call_time) delete call['resources']
    const stage = { stage: 'map', calls: 1, time_ns: 5, bytes: null, bytes_per_s: null }
    Object.assign(of, { load: { time_ns: 5, stages: [stage] } })
  })
  const { run, call_time, load } = await readAnalysis(earlier)
  expect(run).toMatchObject({ version: null, limits: null, variables: {} })
  expect(call_time.every(({ resources }) => resources === null)).toBe(true)
  expect(load!.stages[0]).toMatchObject({ cpu_ns: null, runnable_ns: null, disk_bytes: null, major_faults: null })
})

test('a field that another format has, too, makes it no log of that format', async () => {
  const { kind } = await inspect(
    (async function* () {
      yield bytes(JSON.stringify({ schema: 'ggml2perfetto.analysis/1', run: { version: '0.7.0', backends: [] } }))
    })(),
  )
  expect(kind).toBe('analysis')
})
