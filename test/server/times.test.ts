import { readFileSync } from 'node:fs'
import { describe, expect, it, test } from '@jest/globals'
import { findings, lookedAt, type RequestRow, whyRequest } from '../../lib/analysis.ts'
import { type Analysis, analyze, convert } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { fixture } from './answers.ts'

/** Durations of a server's requests come from recorded times, or from what the server measured; from nothing else. */

const textOf = (name: string) => readFileSync(fixture(name), 'utf8')
const inputOf = (text: string) => ({ name: 'server.log', source: new TextEncoder().encode(text) })
const analysisOf = (text: string) => analyze(inputOf(text), { series: ['requests'] })
const rowsOf = ({ series }: Analysis) => series!.requests!.rows
const figures = (analysis: Analysis) => lookedAt(analysis).flatMap(({ figures }) => figures.map(({ figure }) => figure))

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours of terminals
const STAMP = /^((?:\x1b\[[0-9;]*m)*)\d+\.\d\d\.\d{3}\.\d{3} /gm
/** Ways to take the times out of a log. */
const WAYS: readonly (readonly [string, (text: string) => string])[] = [
  ['removed', (text) => text.replace(STAMP, '$1').replace(/^\{"type":"log","time":\d+/gm, '{"type":"log","time":0')],
  [
    'made equal',
    (text) =>
      text.replace(STAMP, '$10.07.000.000 ').replace(/^\{"type":"log","time":\d+/gm, '{"type":"log","time":7000000'),
  ],
]
const LOGS = ['v0.5.0-lv3.log', 'v0.5.0-lv4.jsonl', 'v0.7.0-lv4.log', 'v0.7.0-lv5.log', 'failed.log', 'drafts.log']

/** All times in a part of an Analysis, by their path. */
function timesIn(value: unknown, path = ''): [path: string, ns: number][] {
  if (typeof value === 'number') return /_ns\b/.test(path) ? [[path, value]] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, of]) => timesIn(of, `${path}.${key}`))
}

/** What the server measured: prompts, tokens, both; and each by tokens. In ms. */
const statedIn = (text: string) =>
  new Set(
    [...text.matchAll(/(?:prompt eval|eval|total) time = +([\d.]+) ms|, t = +([\d.]+) s/g)].map(([, ms, s]) =>
      Math.round(Number(ms ?? Number(s) * 1000) * 1e6),
    ),
  )

describe.each(LOGS)('%s', (name) => {
  const text = textOf(name)

  it.each(WAYS)(
    'with its times %s: each duration of a request is null, or one that the server measured',
    async (_, change) => {
      const analysis = await analysisOf(change(text))
      const stated = statedIn(text)
      const rows = rowsOf(analysis)
      expect(rows.length).toBeGreaterThan(0)
      for (const row of rows) {
        const { start_ns, latency_ns, ttft_ns, tpot_ns, generated_tokens, parts, inferred } = row
        expect(inferred).toContain('times')
        expect([start_ns, parts?.call_wait_ns ?? null, parts?.deferred_ns ?? null, parts?.queued_ns ?? null]).toEqual([
          ...[null, null, null, null],
        ])
        const measured = [latency_ns, ttft_ns, ...Object.values(parts ?? {})].filter((ns) => ns !== null)
        if (tpot_ns !== null) measured.push(Math.round(tpot_ns * (generated_tokens! - 1)))
        for (const ns of measured) expect([ns, stated.has(ns)]).toEqual([ns, true])
      }
      const sum = (of: (row: RequestRow) => number | null) => rows.reduce((sum, row) => sum + (of(row) ?? 0), 0)
      const { requests, run } = analysis
      expect(run.duration_ns).toBeNull()
      expect(requests!.slots.map(({ busy_ns }) => busy_ns)).toEqual(requests!.slots.map(() => null))
      expect(requests!.latency_ns).toBe(sum(({ latency_ns }) => latency_ns))
      expect(requests!.parts.prefill_ns ?? 0).toBe(sum(({ parts }) => parts?.prefill_ns ?? null))
      expect(timesIn(requests!.stalls).every(([, ns]) => ns === 0)).toBe(true)
      expect(findings(analysis).map(({ rule }) => rule)).not.toContain('queue-time')
      for (const { id } of rows)
        for (const { time_ns } of whyRequest(analysis, { request: id })!.reasons) expect(stated.has(time_ns)).toBe(true)
    },
  )

  it('with its times removed: the trace states no other durations either', async () => {
    const text = WAYS[0]![1](textOf(name))
    const rows = rowsOf(await analysisOf(text))
    const trace = await openTrace(convert(inputOf(text)))
    const found = trace.query(
      'include perfetto module ggml.requests; select request, dur, ttft from ggml_requests order by request',
    )
    expect(found.rows).toEqual(rows.map(({ id, latency_ns, ttft_ns }) => [id, latency_ns, ttft_ns]))
    expect(trace.query("select count(*) from slice where category = 'request_part'").rows).toEqual([[0]])
    trace.close()
  })
})

test('a request of a late line has no durations by its times; others keep theirs', async () => {
  const text = textOf('v0.7.0-lv4.log')
  const before = rowsOf(await analysisOf(text))
  const launch = /^(\d+\.\d\d\.)(\d{3})(\.\d{3} I slot launch_slot_: id +\d+ \| task (\d+) )/m.exec(text)!
  const late = text.replace(launch[0], `${launch[1]}000${launch[3]}`)
  const task = Number(launch[4])
  const isLate = Number(launch[2]) > 1
  const after = rowsOf(await analysisOf(late))
  expect([isLate, before.find((row) => row.task === task)!.inferred.includes('times')]).toEqual([true, false])
  expect(after.find((row) => row.task === task)).toMatchObject({ start_ns: null })
  const others = (rows: readonly RequestRow[]) =>
    rows.filter((row) => row.task !== task).map(({ latency_ns }) => latency_ns)
  expect(others(after)).toEqual(others(before))
})

test('a log without times: an answer by the server’s figures, a cancelled one of which nothing is known', async () => {
  const analysis = await analysisOf(textOf('cancelled-without-times.log'))
  expect(rowsOf(analysis)).toMatchObject([
    {
      ...{ task: 0, outcome: 'complete', latency_ns: 15e9, ttft_ns: 5e9, tpot_ns: 100e6, start_ns: null },
      parts: { prefill_ns: 5e9, decode_ns: 10e9, prepare_ns: null, call_wait_ns: null, stalled_ns: null },
    },
    { task: 102, outcome: 'cancelled', latency_ns: null, ttft_ns: null, tpot_ns: null, parts: null },
  ])
  const { cancelled, outcomes } = analysis.requests!
  expect([outcomes, cancelled]).toMatchObject([
    { complete: 1, cancelled: 1 },
    { requests: 1, timed: 0, time_ns: null },
  ])
  expect(figures(analysis)).toContain(
    '1 cancelled of 2 requests: the log does not contain the time of the work for them',
  )
  expect(figures(analysis).join('\n')).not.toMatch(/none of|of their latency/)
  const { remarks } = whyRequest(analysis, { task: 102 })!
  expect(remarks).toContain('the log contains no times of it')
})

test.each(['v0.7.0-lv3.log', 'v0.7.0-lv4.log'])(
  '%s: nothing is known of the work for a request that ends without figures',
  async (name) => {
    const analysis = await analysisOf(textOf(name))
    const dark = rowsOf(analysis).filter(({ outcome, ttft_ns }) => outcome === 'cancelled' && ttft_ns === null)
    expect(dark.length).toBeGreaterThan(1)
    for (const { parts, latency_ns } of dark)
      expect([parts?.prefill_ns ?? null, parts?.decode_ns ?? null, latency_ns! > 0]).toEqual([null, null, true])
    expect(analysis.requests!.cancelled).toMatchObject({ time_ns: null, timed: 0 })
    expect(figures(analysis).join('\n')).not.toMatch(/0 ns|0 % of the work/)
  },
)

test('a request that waits in its slot for space in a batch is stalled, also where its server writes nothing of its calls', async () => {
  const analysis = await analysisOf(textOf('v0.7.0-lv4.log'))
  const row = rowsOf(analysis).find(({ task }) => task === 28)!
  // From its launch to its prompt, of which the server writes the begin.
  expect(row.parts).toMatchObject({ stalled_ns: 1_570_283_000 - 550_478_000, prepare_ns: null, prefill_ns: null })
  expect(whyRequest(analysis, { task: 28 })!.reasons[0]!.sentence).toMatch(
    /^1 s \(91 %\): it waited while others were worked on: 395 ms for task 64, /,
  )
})

test('a call that fails: the prompt so far is known, what is left is not', async () => {
  const analysis = await analysisOf(textOf('failed.log'))
  const [row] = rowsOf(analysis)
  expect(row).toMatchObject({ outcome: 'error', parts: { send_ns: null, prepare_ns: 0 } })
  expect(row!.parts!.prefill_ns! / 1e9).toBeCloseTo(20, 3)
  expect(row!.parts!.other_ns! / 1e9).toBeCloseTo(1, 3)
  expect(analysis.requests!.cancelled!.time_ns! / 1e9).toBeCloseTo(20, 3)
  expect(whyRequest(analysis, { request: 1 })!.reasons.map(({ sentence }) => sentence)).toEqual([
    '20 s (95 %): calls processed its prompt',
    '1 s (4.8 %): the log does not show for what',
  ])
})

test('the acceptance of drafts that are not in the log', async () => {
  const analysis = await analysisOf(textOf('drafts.log'))
  expect(analysis.requests!.drafts).toEqual({ drafted_tokens: 120, accepted_tokens: 60, acceptance_share: 0.5 })
  expect(figures(analysis)).toContain('60 of 120 drafted tokens were accepted: the log does not contain what they cost')
  expect(whyRequest(analysis, { task: 0 })!.remarks).toContain('60 of 120 drafted tokens were accepted')
})

describe('a request that waits while others are worked on', () => {
  const line = (seconds: number, body: string) => {
    const [whole, us] = [Math.floor(seconds), Math.round((seconds % 1) * 1e6)]
    const digits = String(us).padStart(6, '0')
    return `0.${String(whole).padStart(2, '0')}.${digits.slice(0, 3)}.${digits.slice(3)} I ${body}`
  }
  const post = (task: number) => `que          post: new task, id = ${task}, front = 0`
  const slot = (id: number, task: number, body: string) => `slot launch_slot_: id  ${id} | task ${task} | ${body}`
  const answered = (at: number, id: number, task: number, promptMs: number) => [
    line(at, slot(id, task, `prompt eval time =  ${promptMs.toFixed(2)} ms /  100 tokens`)),
    line(at, slot(id, task, '       eval time =  100.00 ms /  11 tokens')),
    line(at, slot(id, task, 'stop processing: n_tokens = 110, truncated = 0')),
  ]
  const partsOf = async (lines: readonly string[]) => rowsOf(await analysisOf(`${lines.join('\n')}\n`))[1]!.parts!

  test('for the running call, with slots free: it is no wait for a slot', async () => {
    const parts = await partsOf([
      ...[line(1, post(0)), line(1.001, slot(0, 0, 'processing task, is_child = 0'))],
      ...[line(1.2, post(1)), line(2.4, slot(1, 1, 'processing task, is_child = 0'))],
      ...answered(3, 0, 0, 1500),
      ...answered(3.1, 1, 1, 500),
    ])
    expect(parts.call_wait_ns).toBeCloseTo(1.2e9, -3)
    expect(parts.deferred_ns).toBe(0)
  })

  test('for a slot, since the server looked for one', async () => {
    const parts = await partsOf([
      ...[line(1, post(0)), line(1.001, slot(0, 0, 'processing task, is_child = 0'))],
      ...[line(1.2, post(1)), line(1.3, 'srv  process_sing: no slot is available, defer task, id_task = 1')],
      ...answered(3, 0, 0, 1500),
      line(3.1, slot(0, 1, 'processing task, is_child = 0')),
      ...answered(4, 0, 1, 500),
    ])
    expect([parts.call_wait_ns, parts.deferred_ns].map((ns) => Math.round(ns! / 1e6))).toEqual([100, 1800])
  })

  test('for space in a batch, in its slot: it is stalled, and nothing is prepared', async () => {
    const parts = await partsOf([
      line(1, slot(0, 0, 'processing task, is_child = 0')),
      line(1.1, slot(1, 1, 'processing task, is_child = 0')),
      line(2.22, slot(1, 1, 'new prompt, n_ctx_slot = 512, n_keep = 0, task.n_tokens = 100')),
      ...answered(2.3, 0, 0, 1200),
      ...answered(3, 1, 1, 500),
    ])
    expect([parts.stalled_ns, parts.prepare_ns].map((ns) => Math.round(ns! / 1e6))).toEqual([1120, 0])
  })
})
