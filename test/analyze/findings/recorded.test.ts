import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from '@jest/globals'
import { findings } from '../../../lib/analysis.ts'
import { type Analysis, analyze, type Input } from '../../../lib/index.ts'
import { checkedFindings } from './made-run.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const read = (path: string): Input => ({ name: path, source: readFileSync(join(ROOT, path)) })
const planted = (name: string) => read(`test/fixtures/findings/${name}.ggtrace.gz`)

const found = (analysis: Analysis, rule: string) => findings(analysis).filter((finding) => finding.rule === rule)

test('weights of a type that is slower than that of the others', async () => {
  const [finding] = (await checkedFindings(planted('slower-type'))).filter(({ rule }) => rule === 'slower-type')
  expect(finding!.sentence).toBe(
    'weights in q8_0 take 1.7 × as long as those in q4_0, with 1.9 × the bytes: 6.1 % of decode (ffn_out 6.1 %)',
  )
  expect(finding).toMatchObject({ confidence: 'high', evidence: { op: 'MUL_MAT', type: 'q8_0', compared_to: 'q4_0' } })
})

test('weights that are slow for another cause than their type', async () => {
  // The router: a product of 8 rows in f32, which takes 40 times as long per weight as the experts, as it is so small.
  expect(found(await analyze(read('examples/moe.ggtrace.gz')), 'slower-type')).toEqual([])
  const analysis = await analyze(planted('slower-type'))
  const changed = (change: (row: Analysis['operators']['rows'][number]) => object) => {
    const rows = analysis.operators.rows.map((row) => ({ ...row, ...(row.type === 'q8_0' && change(row)) }))
    return found({ ...analysis, operators: { ...analysis.operators, rows } }, 'slower-type')
  }
  expect(changed(() => ({}))).toHaveLength(1)
  expect(changed(() => ({ type: 'q4_0' }))).toEqual([])
  // All that it is longer by, its threads had no CPU.
  for (const kind of ['preempted_ns', 'blocked_ns'])
    expect(changed(({ operator_time_ns }) => ({ [kind]: operator_time_ns / 2 }))).toEqual([])
})

test('calls that write a log, and calls that take long outside graphs for another cause', async () => {
  const [first, ...others] = await checkedFindings(planted('debug-log'))
  expect(first!.sentence).toBe('90 % of decode is output for the log: 3.2 ms a call')
  expect(first).toMatchObject({ rule: 'log-output', confidence: 'high', evidence: { phase: 'decode', calls: 10 } })
  expect(others.map(({ rule }) => rule)).not.toContain('outside-graphs')
  const rules = (await checkedFindings(planted('rebuilt-graphs'))).map(({ rule }) => rule)
  expect(rules[0]).toBe('outside-graphs')
  expect(rules).not.toContain('log-output')
})

test('the log output of a call is a part of its time, and not of the parts that it is in', async () => {
  const { call_time } = await analyze(planted('debug-log'))
  for (const { parts, time_ns } of call_time)
    expect(parts.reduce((sum, part) => sum + part.time_ns, 0) / time_ns).toBeCloseTo(1, 6)
  const decode = call_time.find(({ phase }) => phase === 'decode')!
  expect(Object.fromEntries(decode.parts.map(({ what, share }) => [what, Math.round(100 * share)]))).toMatchObject({
    ...{ 'log output': 90, 'outside graphs': 3, allocate: 3 },
  })
})

test('who took a CPU is to be recorded only where it is not known', async () => {
  const before = ['before.ggtrace.gz', 'before.sched.dat.gz'].map((name) => read(`test/printed/logs/${name}`))
  const adviceOf = async (inputs: Input[]) => found(await analyze(inputs), 'preempted')[0]!.advice
  const stop = 'Stop the other programs, or leave them a CPU: fewer threads than CPUs, or taskset'
  expect(await adviceOf(before)).toBe(stop)
  expect(await adviceOf(before.slice(0, 1))).toBe(`${stop}. record --sched shows who took the CPU`)
})

test('a target beside a draft: its first calls are compared with its own later ones', async () => {
  const analysis = await analyze(planted('drafts'))
  const [target, draft] = analysis.calls.contexts
  expect([target!.role, draft!.role]).toEqual(['target', 'draft'])
  expect(analysis.first_calls.map(({ phase, context, role }) => [phase, context, role])).toEqual(
    ['warm-up', 'prefill', 'decode'].map((phase) => [phase, target!.context, 'target']),
  )
  // 28 times as long as its tokens in the draft.
  expect(found(analysis, 'first-call')).toEqual([])
  const [decode] = analysis.first_calls.filter(({ phase }) => phase === 'decode')
  expect(decode!.typical_token_ns! / target!.tpot!.mean_ns).toBeGreaterThan(0.2)
  expect(analysis.calls.slope?.context ?? target!.context).toBe(target!.context)
})

test('requests whose prompts take most of the time: growth of TPOT is a finding, and no cause', async () => {
  const { findings, verdict, requests } = await analyze(planted('long-prompts'))
  const { prefill_ns } = requests!.parts
  expect(prefill_ns! / requests!.latency_ns).toBeGreaterThan(0.8)
  expect(findings.map(({ rule }) => rule)).toEqual(['context-growth'])
  expect(verdict.cause).toBeNull()
  expect(verdict.sentence).toMatch(
    /: the slowest \(task 82\) took 2\.4 s \(85 %\) to process 2 000 tokens of its prompt$/,
  )
})
