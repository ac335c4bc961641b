import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { analyze, convert, isOwnError, type Summary } from '../../lib/index.ts'
import { inputOf as fileOf, openTrace } from '../../lib/node.ts'

import { inParts, someOf } from '../long.ts'
import { ROOT } from '../root.ts'
import { LOGS } from '../tables/of-logs.ts'

/** The row Findings: what why says, in the trace. */

const SLICES = `select s.name, s.ts, s.ts + s.dur, extract_arg(s.arg_set_id, 'debug.rule'), extract_arg(s.arg_set_id, 'debug.explains_ns'),
  extract_arg(s.arg_set_id, 'debug.advice') from slice s where s.category = 'finding' order by s.ts, s.id`

async function drawn(path: string) {
  let summaries: readonly Summary[] = []
  async function* trace() {
    summaries = yield* convert(fileOf(join(ROOT, path)), { findings: true })
  }
  const open = await openTrace(trace())
  try {
    return {
      summary: summaries[0]!,
      slices: open.query(SLICES).rows,
      calls: open.query(
        `select min(ts), max(ts + dur), extract_arg(arg_set_id, 'debug.phase') from slice where category = 'token' group by 3`,
      ).rows,
      requests: open.query('include perfetto module ggml.requests; select request, ts, ts + dur from ggml_requests')
        .rows,
      verdict: open.query(`select str_value from metadata where name glob '*verdict*'`).rows,
      descriptions: open.query(
        `select extract_arg(source_arg_set_id, 'description') from track where name = 'Findings'`,
      ).rows,
      errors: open.query(`select sum(value) from stats where severity in ('error', 'data_loss') and value > 0`).rows,
    }
  } finally {
    open.close()
  }
}

inParts(describe).each(someOf(LOGS, 12))('%s', (path) => {
  test('contains its findings as slices, once each or over each part of what it is about', async () => {
    const found = await drawn(path).catch((error) => error as Error)
    if (found instanceof Error) return expect(isOwnError(found)).toBe(true)
    const { summary, slices } = found
    const findings = summary.findings ?? []
    const { findings: all } = await analyze(fileOf(join(ROOT, path)))
    expect(findings.map(({ sentence }) => sentence)).toEqual(all.map(({ sentence }) => sentence))
    expect(new Set(slices.map(([name]) => name))).toEqual(new Set(findings.map(({ sentence }) => sentence)))
    for (const { sentence, rule, time_ns, advice } of findings) {
      const own = slices.filter(([name]) => name === sentence)
      expect(own.map(([, , , ...facts]) => facts)).toEqual(own.map(() => [rule, Math.round(time_ns), advice]))
    }
  })
})

test('a finding about a phase is over its calls, and is that of why', async () => {
  const path = 'test/fixtures/profinfer-csv/moe-2threads.csv.gz'
  const { slices, calls, summary, verdict, descriptions } = await drawn(path)
  const { findings } = await analyze(fileOf(join(ROOT, path)))
  expect(slices.length).toBeGreaterThan(0)
  for (const [name, startNs, endNs] of slices) {
    const finding = findings.find(({ sentence }) => sentence === name)!
    const phase = calls.find((row) => row[2] === finding.evidence['phase'])
    if (phase) expect([startNs, endNs]).toEqual(phase.slice(0, 2))
  }
  const { sentence } = summary.verdict!
  expect(verdict).toEqual([[sentence]])
  expect(descriptions.map(([text]) => `${text}`.startsWith(`${sentence}.\n`))).toEqual([true])
})

test('a finding about a request is over its time', async () => {
  const { slices, requests, summary } = await drawn('test/printed/logs/server.ggtrace.gz')
  const about = summary.findings!.filter(({ evidence }) => evidence['request'] !== undefined)
  for (const { sentence, evidence } of about) {
    const [, startNs, endNs] = requests.find(([request]) => request === evidence['request'])!
    expect(slices.filter(([name]) => name === sentence).map((slice) => slice.slice(1, 3))).toEqual([[startNs, endNs]])
  }
  expect(about.length).toBeGreaterThan(0)
})
