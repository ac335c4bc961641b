import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { briefLines } from '../../bin/stats/brief.ts'
import { toText } from '../../bin/stats/section.ts'
import { sectionsOf } from '../../bin/stats/sections.ts'
import { describeLog } from '../../bin/summary.ts'
import { wrapped } from '../../bin/terminal.ts'
import { duration, threeDigits } from '../../bin/units.ts'
import { lookedAt } from '../../lib/analysis.ts'
import { type Analysis, analyze, type Finding, type Summary, summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { reportHtml } from '../../lib/report.ts'
import { inParts, someOf } from '../long.ts'
import { LOGS, ROOT } from '../tables/of-logs.ts'
import { SHOWN } from './shown.ts'

/**
 * Each figure that several commands print is the same in all of them: the last lines of convert and record, stats, why, the report, of
 * each fixture. Those of SQL: test/query/ggml-package.test.ts; losses: losses.test.ts.
 */

/** Rules that look at what a conversion leaves out, as it needs memory, or other inputs. */
const NOT_CONVERTED =
  /^(expert-imbalance|roofline|weight-faults|gpu-.*|unused-tensor-cores|low-l2-hits|power-cap|thermal-throttling)$/

interface Mouths {
  readonly convert: readonly string[]
  readonly stats: readonly string[]
  /** Of stats: its section of calls. */
  readonly calls: readonly string[]
  readonly why: readonly string[]
  readonly report: readonly string[]
}

/** The cells and paragraphs of a page. */
const partsOf = (page: string) =>
  page
    .replace(/<(style|script|svg)[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, '\n')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .split('\n')
    .filter((part) => part.trim() !== '')

async function mouthsOf(path: string) {
  const input = () => inputOf(join(ROOT, path))
  const analysis = await analyze(input(), { series: ['calls', 'requests'] }).catch(() => undefined)
  const summary = await summarize(input(), { findings: true })
  if (!analysis) return undefined
  const mouths: Mouths = {
    convert: describeLog('log', summary),
    stats: toText(sectionsOf(analysis, SHOWN), 200),
    calls: toText(
      sectionsOf(analysis, SHOWN).filter(({ title }) => title === 'calls'),
      200,
    ),
    why: lookedAt(analysis).flatMap(({ figures }) => figures.map(({ figure }) => figure)),
    report: partsOf(reportHtml(analysis)),
  }
  return { analysis, summary, mouths }
}

/** What follows a word in a text, to the end of the figure; undefined: the text does not have it. */
const after = (lines: readonly string[], form: RegExp) => lines.flatMap((line) => form.exec(line)?.[1] ?? [])[0]

function expectSpeeds({ calls }: Analysis, { calls: counted }: Summary, mouths: Mouths): void {
  const { convert, calls: stats, report } = mouths
  const text = (value: number | null | undefined, as: (value: number) => string) =>
    value === null || value === undefined ? undefined : as(value)
  const said = {
    ttft: [text(calls.ttft_ns, duration), text(counted.ttft_ns, duration), after(stats, /^ {2}TTFT +(\S+ \S+)$/)],
    tpot: [
      text(calls.tpot_ns, duration),
      text(counted.tpot_ns, duration),
      after(stats, /^ {2}TPOT +(\S+ \S+?)(?::|$)/),
    ],
    decode: [
      text(calls.decode_tokens_per_s, threeDigits),
      text(counted.decode_tokens_per_s, threeDigits),
      after(stats, /^ {2}decode +.*, ([\d ., k]+) tok\/s$/),
    ],
  }
  for (const [what, texts] of Object.entries(said)) expect([what, texts]).toEqual([what, texts.map(() => texts[0])])
  const line = convert.find((of) => /^ {2}(?:TTFT|TPOT)/.test(of))
  if (line !== undefined) {
    expect([
      after([line], /TTFT (\S+ \S+)/),
      after([line], /TPOT (\S+ \S+)/),
      after([line], /([\d .,]+) tok\/s/)?.trim(),
    ]).toEqual([said.ttft[0], said.tpot[0], said.decode[0]])
  } else if (convert[0] !== undefined && /calls:/.test(convert[0]))
    expect([said.ttft[0], said.tpot[0]]).toEqual([undefined, undefined])
  // The report's table: phase, calls, tokens, tok/s, TTFT, TPOT …
  const row = (phase: string) => {
    const at = report.findIndex(
      (part, i) => part === phase && report[i + 1] === String(calls.by_phase[phase as 'decode']?.calls),
    )
    return at < 0 ? [] : report.slice(at, at + 8)
  }
  if (calls.count > 0 && calls.by_phase.decode) {
    if (said.decode[0] !== undefined) expect(row('decode')[3]).toBe(said.decode[0])
    if (said.tpot[0] !== undefined) expect(row('decode')[4]).toBe(said.tpot[0])
  }
  if (calls.by_phase.prefill) {
    const speed = text(calls.prefill_tokens_per_s, threeDigits)
    if (speed !== undefined)
      expect([row('prefill')[3], after(stats, /^ {2}prefill +.*, ([\d .,]+) tok\/s$/)]).toEqual([speed, speed])
    if (said.ttft[0] !== undefined) expect(row('prefill')).toContain(said.ttft[0])
  }
  expect(calls).toMatchObject(counted)
  expect([
    counted.failed,
    after(convert, /(\d+) calls? failed/) ?? '0',
    after(stats, /^ {2}failed +(\d+) calls?$/) ?? '0',
  ]).toEqual([calls.failed, `${calls.failed}`, `${calls.failed}`])
}

/** Numbers of operators, workers and issues, and the duration: where the log is summarized by them. */
function expectSizes({ inputs, run }: Analysis, summary: Summary, { convert, stats }: Mouths): void {
  const [input] = inputs
  expect(input).toMatchObject({
    format: summary.format,
    clock: summary.clock,
    times: summary.times,
    duration_ns: summary.duration_ns,
    operators: summary.operators,
  })
  const number = (text: string | undefined) => text?.replaceAll(/\D/g, '')
  const size = convert.find((line) => /^ {2}[\d ]+ operators? on /.test(line))
  if (size === undefined || run.workers === 0) return
  const [, operators, workers] = /^ {2}([\d ]+) operators? on ([\d ]+) workers?/.exec(size)!
  expect([number(operators), number(workers)]).toEqual([`${input!.operators}`, `${run.workers}`])
  expect(after(stats, /^ {2}workers +(\d+), on/)).toBe(`${run.workers}`)
  expect(after(stats, /^ {2}duration +(.*)$/)).toBe(run.duration_ns === null ? undefined : duration(run.duration_ns))
}

function expectRequests({ requests }: Analysis, { contents = '' }: Summary, { stats, why }: Mouths): void {
  if (!requests) return
  const { outcomes, count } = requests
  const [cancelled, failed] = [outcomes.cancelled ?? 0, outcomes.error ?? 0]
  const number = (text: string | undefined) => Number(text?.replaceAll(' ', '') ?? 0)
  const line = after(stats, /^ {2}requests +(.*)$/)!
  expect([number(/([\d ]+) cancelled/.exec(line)?.[1]), number(/([\d ]+) error/.exec(line)?.[1])]).toEqual([
    cancelled,
    failed,
  ])
  const said = why.find((figure) => /of [\d ]+ requests?/.test(figure) && /cancelled|failed/.test(figure))!
  expect(said).toMatch(new RegExp(`of ${count} requests?`))
  expect([number(/(\d+) cancelled/.exec(said)?.[1]), number(/(\d+) failed/.exec(said)?.[1])]).toEqual([
    cancelled,
    failed,
  ])
  if (/launched task|request/.test(contents))
    expect([number(/([\d ]+) error/.exec(contents)?.[1]), number(/([\d ]+) cancellation/.exec(contents)?.[1])]).toEqual(
      [failed, cancelled],
    )
}

/** The verdict is the first line of all; of a conversion, without what it leaves out. */
function expectVerdict({ verdict, findings }: Analysis, summary: Summary, { stats, report }: Mouths): void {
  expect([stats[0], report]).toEqual([verdict.sentence, expect.arrayContaining([verdict.sentence])])
  if (!summary.verdict || findings.some(({ rule }) => NOT_CONVERTED.test(rule))) return
  expect({ ...summary.verdict, hint: null }).toEqual({ ...verdict, hint: null })
}

/** A first look has 25 lines of 80 characters at the most; only what has no blank in it is longer. */
function expectBrief(analysis: Analysis): void {
  const lines = briefLines(analysis, 80)
  expect(lines.length).toBeLessThanOrEqual(25)
  expect(lines.filter((line) => line.length > 80)).toEqual([])
  const [sentence] = wrapped(analysis.verdict.sentence, 80)
  expect(lines[0]).toBe(sentence)
  for (const [i, { sentence }] of analysis.findings.slice(0, 3).entries())
    expect(lines).toContainEqual(expect.stringContaining(`  ${i + 1}. ${sentence.slice(0, 60)}`))
}

function expectFindings(analysis: Analysis, { findings = [] }: Summary, { stats, report }: Mouths): void {
  // Work of GPUs is held of recordings of programs only: a profile of one has too much.
  const isConverted = (rule: string) => !NOT_CONVERTED.test(rule) || (analysis.run.level !== null && /^gpu-/.test(rule))
  const said = (of: readonly Finding[]) =>
    of.filter(({ rule }) => isConverted(rule)).map(({ rule, sentence }) => `${rule}: ${sentence}`)
  expect(said(findings)).toEqual(said(analysis.findings))
  for (const { sentence } of analysis.findings) expect(report).toContain(sentence)
  for (const { sentence } of analysis.findings.slice(0, 3))
    expect(stats.some((line) => line.includes(sentence))).toBe(true)
}

/** Without sources of fixtures, and what is refused. */
const INPUTS = LOGS.filter((path) => !/\.(c|py)$|own-switches\.txt|boot-v7.*\.txt|answers|\/analysis\//.test(path))

inParts(test).each(someOf(INPUTS, 6))('%s', async (path) => {
  const of = await mouthsOf(path)
  if (!of) return
  expect(JSON.parse(JSON.stringify(of.summary))).toEqual(of.summary)
  expectSizes(of.analysis, of.summary, of.mouths)
  expectSpeeds(of.analysis, of.summary, of.mouths)
  expectRequests(of.analysis, of.summary, of.mouths)
  expectFindings(of.analysis, of.summary, of.mouths)
  expectVerdict(of.analysis, of.summary, of.mouths)
  expectBrief(of.analysis)
})
