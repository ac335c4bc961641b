import { copyFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { answer } from '../../bin/record/sweep.ts'
import { ROOT } from '../root.ts'
import { at, MOE, run, useFolder } from './helpers.ts'

/** Sentences that were understood by readers of the code only. */

useFolder()

const fixture = (name: string) => join(ROOT, 'test', name)
const said = (...args: string[]) => {
  const { code, stdout, stderr } = run(args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout.split('\n')
}

beforeAll(() => {
  copyFileSync(MOE, at('run.csv'))
  symlinkSync(at('run.csv'), at('same.csv'))
})

test('why: "without it" is about the phase of its finding', () => {
  for (const log of ['recorded/preempted.ggtrace.gz', 'recorded/prompt.ggtrace.gz']) {
    const findings = said('why', fixture(log))
      .join('\n')
      .split(/\n(?=\d+\. )/)
      .slice(1)
    const removed = findings.filter((finding) => finding.includes('\n   without it: '))
    for (const finding of removed) {
      const [, phase] = /measured: phase (\w+)/.exec(finding)!
      const [, without] = /without it: (.*)/.exec(finding)!
      expect(without).toMatch(phase === 'prefill' ? /^TTFT / : /^decode .* tok\/s, TPOT /)
      expect(without!.includes('TTFT')).toBe(phase === 'prefill')
    }
  }
})

test('why: no figure twice', () => {
  for (const log of ['gpu/logs/h100.ggtrace.gz', 'gpu/logs/nano.ggtrace.gz', 'printed/logs/server.ggtrace.gz']) {
    const lines = said('why', fixture(log)).filter((line) => line.startsWith('  '))
    expect(lines).toEqual([...new Set(lines)])
  }
})

test('what-if: a change that the run has already', () => {
  const threads = said('what-if', 'run.csv', '--threads', '2')
  expect(threads[0]).toMatch(/^no change, as the run has 2 threads already$/)
  const type = said('what-if', fixture('recorded/prompt.ggtrace.gz'), '--threads', '2')
  expect(type[0]).not.toMatch(/^no change: /)
})

test('compare: the same log on both sides, under one name or two; names of sides are quoted', () => {
  for (const other of ['run.csv', 'same.csv'])
    expect(said('compare', 'run.csv', '--with', other)[0]).toBe(
      'both sides are the same log: there is no difference to find',
    )
  const [first] = said(
    'compare',
    fixture('printed/logs/before.ggtrace.gz'),
    '--with',
    fixture('printed/logs/after.ggtrace.gz'),
  )
  expect(first).toMatch(/ than "a"/)
})

test('report --to issue: the numbers of llama-bench are not folded, and its backend is named', () => {
  const [open] = said('report', fixture('fixtures/llama-bench/tests.json'), '--to', 'issue', '-o', '-')
    .join('\n')
    .split('<details>')
  for (const test of ['pp32 ', 'tg8 ', 'pp16\\+tg4 ', 'pp32 @ d64 ', 'tg8 @ d64 ', 'pp16\\+tg4 @ d64 '])
    expect(open).toMatch(new RegExp(`^  ${test} +3 +[\\d.]+ `, 'm'))
  expect(open).toContain('### GGML backends\n\nVulkan\n')
})

test('record --sweep: of a value whose runs were all slower it is not said that it could be faster', () => {
  const values = [
    { value: '1', speeds: [10, 11], tokens_per_s: 10.5 },
    { value: '2', speeds: [14, 12], tokens_per_s: 13 },
  ]
  const recommended = { value: '2', tokens_per_s: 13, rival: { value: '1', factor_max: 1.26 }, is_certain: false }
  const figures = { disturbed: [], differences: [], lacking: [], is_disturbance_hidden: false }
  const text = (speeds: number[]) => {
    const [one, two] = [{ ...values[0]!, speeds }, values[1]!]
    return answer({ ...figures, phases: [{ phase: 'decode', values: [one, two], short: [], recommended }] }, 't', 2)[0]
  }
  expect(text([10, 11])).toBe(
    'decode: t=2 is recommended, 13 tok/s (each of its 2 runs was faster than each of t=1; --rounds 4 would show it with certainty)',
  )
  expect(text([10, 13])).toMatch(/\(not certain: t=1 could be up to 26\.0 % faster; /)
})

test('a recorded run that ends before a call is not one that was not recorded', () => {
  const [first] = said('why', fixture('fixtures/ggtrace/killed.ggtrace'))
  expect(first).not.toContain('no run was recorded')
})

test.each(['v0.5.0-lv3.log', 'v0.5.0-lv4.log', 'v0.7.0-lv4.jsonl', 'failed.log'])(
  '%s: the requests that the first line counts are among those that others count',
  (name) => {
    const lines = said('why', fixture(`fixtures/server/${name}`))
    const [, all] = / of (\d+) requests?(?:\)|: the log)/.exec(lines.slice(1).join('\n'))!
    expect(lines[0]).toMatch(new RegExp(`^${all} requests?(?:; of \\d+ completions?, p50| in|, p50) `))
  },
)
