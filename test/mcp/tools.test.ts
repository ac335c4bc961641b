import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { at, folder, run, useFolder } from '../cli/helpers.ts'
import { usePort } from '../cli/open-helpers.ts'
import { writeModel } from '../llama/gguf.mjs'
import { ensureLlama, hasLlama, LIB, runner } from '../llama/testbed.ts'
import { inLong } from '../long.ts'
import { NANO } from '../native/recording.ts'
import { ROOT } from '../root.ts'
import { Agent, useAgents } from './helpers.ts'

/** The MCP server, asked by the SDK's own client: its answers are those of the commands, in at most 4 KB. */

useFolder()
useAgents()

const LOGS = {
  'preempted.ggtrace': 'test/recorded/preempted.ggtrace.gz',
  'moe.ggtrace': 'examples/moe.ggtrace.gz',
  'gpu.sqlite': 'test/fixtures/nsys/one-gpu.sqlite.gz',
} as const

const jsonOf = (...args: readonly string[]) => JSON.parse(run([...args, '--json'], { cwd: folder }).stdout)

let agent: Agent

beforeAll(async () => {
  for (const [name, path] of Object.entries(LOGS)) writeFileSync(at(name), gunzipSync(readFileSync(join(ROOT, path))))
  agent = await Agent.start()
})

test('lists at most ten tools, which describe what they read and answer, and change nothing', async () => {
  const { tools } = await agent.client.listTools()
  expect(tools.map(({ name }) => name)).toEqual([
    'summary',
    'why',
    'stats',
    'query',
    'compare',
    'dag',
    'what_if',
    'open',
  ])
  for (const { inputSchema, outputSchema, annotations, description } of tools) {
    expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false })
    expect(outputSchema?.['required']).toEqual(['verdict', 'evidence', 'check', 'next', 'left'])
    expect(annotations).toMatchObject({ readOnlyHint: true, openWorldHint: false })
    expect(description!.length).toBeGreaterThan(40)
  }
  const guide = readFileSync(join(ROOT, 'docs/reference/mcp.md'), 'utf8')
  for (const { name, inputSchema } of tools) {
    const row = guide.split('\n').find((line) => line.startsWith(`| \`${name}\``))
    expect([...row!.split('|')[2]!.matchAll(/`(\w+)`/g)].map(([, argument]) => argument).sort()).toEqual(
      Object.keys(inputSchema.properties!).sort(),
    )
  }
})

test('has the pages of the docs as resources, whole and by heading, and SKILL.md', async () => {
  const { resources } = await agent.client.listResources()
  expect(resources.map(({ uri }) => uri)).toEqual(
    expect.arrayContaining(['ggml2perfetto://skill', 'ggml2perfetto://docs/findings', 'ggml2perfetto://docs/sql']),
  )
  const textOf = async (uri: string) =>
    ((await agent.client.readResource({ uri })).contents[0] as { readonly text: string }).text
  expect(await textOf('ggml2perfetto://skill')).toBe(readFileSync(join(ROOT, 'SKILL.md'), 'utf8'))
  const part = await textOf('ggml2perfetto://docs/findings/preempted')
  expect(part).toMatch(/^#+ `?preempted`?/)
  expect(part.match(/^### /gm)?.length ?? 1).toBe(1)
  await expect(textOf('ggml2perfetto://docs/findings/nothing')).rejects.toThrow('has no heading "nothing"')
})

test.each(Object.keys(LOGS))('%s: what summary and why answer is what the commands print', async (name) => {
  const logs = [name]
  const analysis = jsonOf('stats', name)
  const summary = await agent.ask('summary', { logs })
  expect(summary.verdict).toBe(analysis.verdict.sentence)
  expect(summary.evidence.verdict).toEqual(analysis.verdict)
  expect(summary.evidence.findings_count).toBe(analysis.findings.length)
  // The first call that each answer names leads to the findings.
  const why = await agent.follow(summary.next[0]!, { logs })
  const findings = jsonOf('why', name)
  expect(why.evidence.findings).toEqual(findings)
  expect(why.verdict).toBe(analysis.verdict.sentence)
  if (findings.length === 0) expect(why.evidence.looked_at.length).toBeGreaterThan(2)
})

test('a check by SQL returns the figure of the finding', async () => {
  const logs = ['preempted.ggtrace']
  const { check, evidence } = await agent.ask('why', { logs })
  expect(check[0]).toMatchObject({ tool: 'query', arguments: { logs, finding: 0 } })
  const checked = await agent.follow(check[0]!, { logs })
  const { preempted_ns: ns } = evidence.findings[0].evidence
  expect(ns).toBeGreaterThan(1e6)
  expect([checked.evidence.expected, Object.values(checked.evidence.rows[0])]).toEqual([ns, [ns]])
  expect(await agent.error('query', { logs, finding: 7 })).toMatch(
    /^error: finding 7: expected a number below .* found 2$/,
  )
})

describe('stats', () => {
  const logs = ['moe.ggtrace']

  test('sections and their parts are those of the Analysis, and names lead to what has no room', async () => {
    const analysis = jsonOf('stats', 'moe.ggtrace')
    const { evidence } = await agent.ask('stats', { logs })
    for (const [name, value] of Object.entries(evidence.value)) expect(value).toEqual(analysis[name])
    const named = evidence.larger.map(({ section }: { section: string }) => section)
    expect([...Object.keys(evidence.value), ...named].sort()).toEqual(Object.keys(analysis).sort())
    expect(named).toContain('operators')
    const part = await agent.ask('stats', { logs, section: 'calls.tpot' })
    expect(part.evidence.value).toEqual(analysis.calls.tpot)
    expect(await agent.error('stats', { logs, section: 'calls.nothing' })).toMatch(
      /^error: section "calls.nothing": calls has no part "nothing"; expected some of count, by_phase/,
    )
  })

  inLong(test)('all rows of a list are read by what `left` names', async () => {
    const rows: unknown[] = []
    let answer = await agent.ask('stats', { logs, section: 'imbalance' })
    for (;;) {
      rows.push(...answer.evidence.rows)
      if (!answer.left) break
      expect(rows.length + answer.left.count).toBe(jsonOf('stats', 'moe.ggtrace').imbalance.length)
      answer = await agent.follow(answer.left.next, { logs })
    }
    expect(rows).toEqual(jsonOf('stats', 'moe.ggtrace').imbalance)
  })

  test('operators are summed up as the command sums them up', async () => {
    const { evidence, left } = await agent.ask('stats', { logs, by: ['op'] })
    const csv = run(['stats', 'moe.ggtrace', '--by', 'op', '--csv']).stdout.trim().split('\n')
    expect(evidence.rows.length + left!.count).toBe(csv.length - 1)
    expect(csv[1]).toContain(`${evidence.rows[0].wall_ns}`)
    expect(evidence.rows[0].op).toBe('MUL_MAT_ID')
  })

  test('a call, and its graph', async () => {
    const { evidence, next } = await agent.ask('stats', { logs, call: 3 })
    expect(evidence.rows).toEqual([jsonOf('stats', 'moe.ggtrace', '--series', 'calls').series.calls.rows[3]])
    const dag = await agent.follow(next[0]!, { logs })
    const { nodes } = jsonOf('dag', 'moe.ggtrace', '--call', '3') as { nodes: { id: number; wall_ns: number | null }[] }
    expect(dag.evidence).toMatchObject({ call: 3, phase: 'decode', nodes_count: nodes.length })
    const [slowest] = nodes.toSorted((a, b) => (b.wall_ns ?? 0) - (a.wall_ns ?? 0))
    expect(dag.evidence.nodes[0]).toMatchObject({ id: slowest!.id, wall_ns: slowest!.wall_ns })
  })
})

test('what_if: the prediction of the command, and what it refuses', async () => {
  writeFileSync(at('prompt.ggtrace'), gunzipSync(readFileSync(join(ROOT, 'test/recorded/prompt.ggtrace.gz'))))
  const predicted = jsonOf('what-if', 'prompt.ggtrace', '--context', '300')
  const { verdict, evidence, left } = await agent.ask('what_if', { logs: ['prompt.ggtrace'], context: 300 })
  expect(verdict).toBe(predicted.sentence)
  expect(evidence).toMatchObject({ tpot_ns: predicted.tpot_ns, ttft_ns: predicted.ttft_ns, basis: predicted.basis })
  expect(evidence.parts).toEqual(predicted.parts.slice(0, evidence.parts.length))
  expect(evidence.parts.length + (left?.count ?? 0)).toBe(predicted.parts.length)
  const settings = { threads: 2, with: ['preempted.ggtrace'], type: 'q8_0', batch: 1 }
  const options = ['--threads', '2', '--with', 'preempted.ggtrace', '--type', 'q8_0', '--batch', '1']
  const other = await agent.ask('what_if', { logs: ['prompt.ggtrace'], ...settings })
  expect(other.verdict).toBe(jsonOf('what-if', 'prompt.ggtrace', ...options).sentence)
  const refused = await agent.ask('what_if', { logs: ['prompt.ggtrace'], context: 1_000_000 })
  expect(refused.verdict).toMatch(/^cannot say: /)
})

test('query: rows in parts, exact integers', async () => {
  const logs = ['preempted.ggtrace']
  const sql =
    'with recursive t(x) as (select 1 union all select x + 1 from t limit 500) select x, 9007199254740993 as big from t'
  const { evidence, left, verdict } = await agent.ask('query', { logs, sql, limit: 20 })
  expect(evidence.rows).toHaveLength(20)
  expect([evidence.rows_count, evidence.rows[4], left!.count]).toEqual([500, { x: 5, big: '9007199254740993' }, 480])
  expect(left!.next.arguments).toMatchObject({ from: 20, limit: 20 })
  expect(verdict).toBe('500 rows, 20 of them here')
})

inLong(test)('query of a dataset', async () => {
  run(['export', 'preempted.ggtrace', '-o', 'dataset'])
  const counted = await agent.ask('query', { dataset: 'dataset', sql: 'select count(*) as runs from trace' })
  expect(counted.evidence.rows).toEqual([{ runs: 1 }])
})

inLong(test)('compare: the verdict and the gate of the command', async () => {
  for (const [side, name] of [
    ['old', 'moe.ggtrace'],
    ['new', 'preempted.ggtrace'],
  ] as const) {
    mkdirSync(at(side))
    copyFileSync(at(name), at(`${side}/run.ggtrace`))
  }
  const { verdict, evidence, next, left } = await agent.ask('compare', {
    before: ['old'],
    after: ['new'],
    fail_above_percent: 5,
  })
  const comparison = jsonOf('compare', 'old', '--with', 'new', '--fail-above', '5%')
  expect([verdict, evidence.gate, evidence.is_comparable]).toEqual([comparison.verdict, comparison.gate, false])
  expect(evidence.effects.length + left!.count).toBe(comparison.effects.length)
  for (const effect of evidence.effects) expect(comparison.effects).toContainEqual(effect)
  expect(evidence.effects[0].group).toBe('speed')
  expect((await agent.follow(next[0]!, {})).evidence.findings).toEqual(jsonOf('why', 'preempted.ggtrace'))
})

inLong(describe)('open', () => {
  usePort()

  test('returns a URL, whose trace is served', async () => {
    const { verdict, evidence } = await agent.ask('open', { logs: ['preempted.ggtrace'], wait_s: 60 })
    expect(verdict).toBe(jsonOf('stats', 'preempted.ggtrace').verdict.sentence)
    expect(evidence.url).toMatch(/^https:\/\/ui\.perfetto\.dev\/#!\//)
    const url = new URLSearchParams(evidence.url.split('#!/?')[1]).get('url')
    const trace = await fetch(url!, { headers: { origin: 'https://ui.perfetto.dev' } })
    expect([trace.status, (await trace.arrayBuffer()).byteLength > 10_000]).toEqual([200, true])
  })
})

const real = hasLlama() && process.platform === 'linux' ? inLong(test) : test.skip

real('record: runs a program of the list, whose log the next call reads', async () => {
  await ensureLlama()
  const program = await runner()
  await writeModel(NANO, at('nano.gguf'))
  const recording = await Agent.start('--allow-record', '--program', program, '--timeout', '120')
  const { tools } = await recording.client.listTools()
  expect(tools.find(({ name }) => name === 'record')?.annotations?.readOnlyHint).toBe(false)
  const args = ['--lib', LIB, '--model', 'nano.gguf', '--threads', '1', '--prompt', '4', '--decode', '3']
  const { evidence, next } = await recording.ask('record', { program, arguments: args, output: 'new.ggtrace' })
  expect(evidence).toMatchObject({ log: 'new.ggtrace', exit_code: 0, is_ended: false })
  const { evidence: summary } = await recording.follow(next[0]!, {})
  expect(summary.calls).toMatchObject({ count: 4, by_phase: { decode: { calls: 3, tokens: 3 } } })
  expect(await recording.error('record', { program, arguments: args, output: 'new.ggtrace' })).toMatch(
    /^error: new\.ggtrace: exists\n/,
  )
})
