import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { findings, lookedAt } from '../../lib/analysis.ts'
import { type Analysis, analyze, convert, type Input, type Summary } from '../../lib/index.ts'
import { ISSUES } from '../../lib/model/issues.ts'
import { GPU_FIXTURES, OTHER_FIXTURES, pathOf, plainBytes, SMALL_FIXTURES, storedBytes } from '../line/support.ts'
import { decodes, madeRun } from './findings/made-run.ts'

/** What a loss is: one definition, by code, in all commands. */

const guide = readFileSync(fileURLToPath(new URL('../../docs/reference/issues.md', import.meta.url)), 'utf8')

test.each(Object.entries(ISSUES))('%s: its sentence and its decision agree', (code, { isLoss, hint }) => {
  const saysMissing = /left out|missing|incomplete|are lost|not in the trace|cannot be read\b/.test(hint)
  // What follows says it of something else than an event of the run, or says it in other words.
  const otherwise = [...OTHER_WORDS, ...NOT_OF_EVENTS]
  if (!otherwise.includes(code)) expect([code, isLoss]).toEqual([code, saysMissing])
  else expect([code, isLoss]).toEqual([code, OTHER_WORDS.includes(code)])
  expect(guide).toContain(`| \`${code}\` | ${ISSUES[code as keyof typeof ISSUES].title} | ${isLoss ? 'yes' : ''}`)
})

/** Losses whose sentences have other words for it. */
const OTHER_WORDS = [
  ...['broken-gzip', 'broken-archive', 'impossible-time', 'value-out-of-range', 'torn-record', 'torn-block'],
  ...['log-full', 'json-behind-end', 'json-large-event', 'unread-table', 'graph-kernels-hidden', 'lost-counters'],
  ...['damaged-bytes', 'buffer-on-other-clock', 'database-damaged', 'damaged-compression', 'no-event-formats'],
]
/** Issues whose sentences have these words for something else than an event of the run. */
const NOT_OF_EVENTS = ['undefined-id', 'profiler-warning', 'graph-edge', 'log-ends-in-call', 'open-blocks']

async function summariesOf(input: Input): Promise<Summary[]> {
  const pieces = convert(input, { findings: true })
  let next = await pieces.next()
  while (!next.done) next = await pieces.next()
  return next.value
}

const lossesOf = ({ issues }: Summary) => issues.filter(({ is_loss }) => is_loss)
const FIXTURES = [...SMALL_FIXTURES, ...OTHER_FIXTURES, ...GPU_FIXTURES.filter((name) => /json$/.test(name))].filter(
  (name) => !/answers|\.md$|^ncu/.test(name) && !/memory-map|ggml-graph|buffer/.test(pathOf(name)),
)

/** All sentences of rules: what they looked at, and why they are sure of it. */
const sentencesOf = (analysis: Analysis) =>
  lookedAt(analysis).flatMap(({ figures }) =>
    figures.flatMap(({ figure, finding }) => [
      figure,
      ...(finding ? [finding.sentence, finding.confidence_reason] : []),
    ]),
  )

/** A noun that does not agree with its number, or a name that is empty. */
const NOUNS = 'loss|call|request|worker|CPU|time|token|sample|thread|expert|kernel|slot|number'
const WRONG = new RegExp(
  `(?<![\\d.,] ?)\\b1 (?:${NOUNS})e?s\\b|\\b(?:[02-9]|[1-9]\\d+) (?:${NOUNS})\\b|  | ,|: $|undefined|NaN|null`,
)

function expectWellSaid(analysis: Analysis): void {
  expect(sentencesOf(analysis).filter((sentence) => WRONG.test(sentence))).toEqual([])
}

test.each([1, 2])('sentences of runs with %i of everything', async (n) => {
  const steps = [{ name: 'ffn-0', op: 'MUL_MAT', ns: [60_000, 100_000].slice(0, n), majorFaults: n }]
  const call = { phase: 'prefill' as const, tokens: n, steps }
  const attributes = { cpus: String(n) }
  for (const backend of ['', 'Vulkan0']) {
    const calls = [call, ...decodes(n, steps, { backend: [backend, 80_000], outsideNs: 90_000 })]
    expectWellSaid(await analyze(madeRun({ calls, attributes, losses: n, gapNs: 300_000 })))
  }
})

test('a backend without a name', async () => {
  const steps = [{ name: 'ffn-0', op: 'MUL_MAT', ns: [60_000] }]
  const analysis = await analyze(
    madeRun({ calls: decodes(20, steps, { backend: ['Vulkan0', 80_000] }), attributes: {} }),
  )
  const unnamed = { ...analysis, run: { ...analysis.run, backends: [] } }
  expect(sentencesOf(unnamed).find((sentence) => / waits for /.test(sentence))).toMatch(/ waits for another backend, /)
  expectWellSaid(unnamed)
})

describe('convert, stats and why see the same losses in', () => {
  test.each(FIXTURES)('%s', async (fixture) => {
    const input = { name: fixture, source: storedBytes(fixture) }
    const [summary] = await summariesOf(input)
    const analysis = await analyze(input)
    const counts: Record<string, number> = Object.fromEntries(
      lossesOf(summary!).map(({ code, count }) => [code!, count]),
    )
    expectWellSaid(analysis)
    expect(analysis.run.losses).toEqual(counts)
    expect(Object.fromEntries(analysis.inputs[0]!.losses.map(({ code, count }) => [code, count]))).toEqual(counts)
    const of = (rule: string, found: readonly { rule: string; sentence: string }[]) =>
      found.flatMap((finding) => (finding.rule === rule ? [finding.sentence] : []))
    expect(of('losses', summary!.findings!)).toEqual(of('losses', findings(analysis)))
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    for (const sentence of of('losses', findings(analysis))) expect(sentence).toMatch(new RegExp(`^${total} loss`))
    expect(of('losses', findings(analysis))).toHaveLength(total > 0 ? 1 : 0)
  })
})

test('a gzip stream that is cut is a loss at the end, which makes no figure of calls doubtful', async () => {
  const bytes = gzipSync(plainBytes('ggtrace/tiny.ggtrace'), { level: 0 })
  const analysis = await analyze({ name: 'cut.ggtrace.gz', source: new Uint8Array(bytes.subarray(0, -200)) })
  const [finding] = analysis.findings.filter(({ rule }) => rule === 'losses')
  expect(finding!.sentence).toMatch(/ figures of the end of the run doubtful \(.*broken-gzip/)
})

test('only losses of what a finding is made of make it doubtful, and only losses are named', async () => {
  const steps = [{ name: 'ffn-0', op: 'MUL_MAT', ns: [60_000, 100_000] }]
  const confidence = async (...codes: (keyof typeof ISSUES)[]) => {
    const made = madeRun({ calls: decodes(20, steps), attributes: { cpus: '4' }, issues: codes })
    const found = findings(await analyze(made))
    return [found[0]!.confidence, found.find(({ rule }) => rule === 'losses')?.sentence]
  }
  expect(await confidence()).toEqual(['high', undefined])
  expect(await confidence('call-failed', 'calls-without-time')).toEqual(['high', undefined])
  expect(await confidence('lost-states', 'call-failed')).toEqual([
    'high',
    '1 loss makes figures of states of threads doubtful (lost-states)',
  ])
  expect(await confidence('dropped-records', 'call-failed')).toEqual([
    'low',
    '1 loss makes all figures doubtful (dropped-records)',
  ])
})

test('a loss has the remedy of its kind', async () => {
  const advice = async (...codes: (keyof typeof ISSUES)[]) =>
    (await analyze(madeRun({ calls: decodes(9, []), attributes: {}, issues: codes }))).findings.find(
      ({ rule }) => rule === 'losses',
    )!.advice
  expect(await advice('lost-states')).toBe(`lost states of threads: ${ISSUES['lost-states'].hint}`)
  expect(await advice('lost-states')).not.toMatch(/max-size|--tokens/)
  expect(await advice('log-full')).toMatch(/^the log reached its size limit: .*--max-size/)
  expect(await advice('lost-states', 'disk-full', 'disk-full')).toMatch(
    /^the disk was full: .*; ggml2perfetto stats --contents shows the other losses$/,
  )
})
