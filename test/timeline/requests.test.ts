import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { RequestEvent } from '../../lib/core.ts'
import { convert, eventsOf, Names } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import type { OpenTrace } from '../../lib/sql.ts'
import { inputOf, Server } from '../requests/server.ts'

/** The rows of requests in the trace of an emulated server, read back by SQL. */

const server = new Server(3, 32).run([
  { prompt: 60, reused: 0, generate: 6, drafts: 0, slot: 0, afterSteps: 0 },
  { prompt: 40, reused: 0, generate: 9, drafts: 3, slot: 1, afterSteps: 1 },
  { prompt: 70, reused: 20, generate: 3, drafts: 0, slot: 0, afterSteps: 2 },
  { prompt: 12, reused: 0, generate: 5, drafts: 0, slot: 2, afterSteps: 0 },
])

describe.each([
  ['perfetto', 'debug'],
  ['json', 'args'],
] as const)('a trace of the kind %s', (to, args) => {
  const arg = (key: string, of = 'slice') => `extract_arg(${of}.arg_set_id, '${args}.${key}')`
  let trace: OpenTrace
  const requests: RequestEvent[] = []
  beforeAll(async () => {
    trace = await openTrace(convert(inputOf(server.events), { to }))
    for await (const batch of eventsOf(inputOf(server.events), new Names()))
      for (const event of batch) if (event.kind === 'request') requests.push(event)
    requests.sort((a, b) => a.id - b.id)
  })
  afterAll(() => trace.close())

  test('each request is there once, in the row of its slot, with its figures', () => {
    const { rows } =
      trace.query(`select ${arg('task')}, ${arg('slot')}, ${arg('prompt_tokens')}, ${arg('reused_tokens')},
      ${arg('generated_tokens')}, ${arg('outcome')}, ${arg('latency_ns')} from slice where category = 'request'
      order by ${arg('request')}`)
    const expected = requests.map((one) => {
      const { task, slot, promptTokens, reusedTokens, generatedTokens, outcome, startNs, endNs } = one
      return [task, slot, promptTokens, reusedTokens, generatedTokens, outcome, endNs - startNs]
    })
    expect(rows).toEqual(expected)
    expect(rows).toHaveLength(4)
  })

  test('its parts sum to its latency; those after the queue nest in it', () => {
    const sums = `select ${arg('request')}, sum(dur), min(ts) from slice where category = 'request_part' group by 1 order by 1`
    expect(trace.query(sums).rows.map(([, ns]) => ns)).toEqual(requests.map(({ startNs, endNs }) => endNs - startNs))
    const outside = `select count(*) from slice left join slice parent on parent.id = slice.parent_id
      where slice.category = 'request_part' and slice.name not glob 'queued*' and slice.name not glob 'call-wait*'
      and (parent.category is not 'request' or ${arg('request')} != ${arg('request', 'parent')})`
    expect(trace.query(outside).rows).toEqual([[0]])
    expect(trace.query("select name, value from stats where severity = 'error' and value > 0").rows).toEqual([])
  })

  test('arrows lead from each call to the parts that it computed', () => {
    const parts = requests.flatMap(({ parts }) => parts.filter(({ what }) => /prefill|decode|verify/.test(what)))
    const arrows = `select count(*), min(call.category = 'token'), min(${arg('call', 'call')} = ${arg('call', 'part')})
      from flow join slice call on call.id = slice_out join slice part on part.id = slice_in
      where part.category = 'request_part'`
    expect(trace.query(arrows).rows).toEqual([[parts.length, 1, 1]])
  })

  test('a mixed call names the tasks whose tokens it has', () => {
    const { rows } = trace.query(`select ${arg('tasks')} from slice where category = 'token' and name glob 'mixed*'`)
    expect(rows.length).toBeGreaterThan(0)
    for (const [tasks] of rows) expect(tasks).toMatch(/^\d+ \(\d+ tokens?\), \d+ \(\d+ tokens?\)/)
  })

  test('the queue, the busy slots and the tokens in the cache are counters', () => {
    const { rows } = trace.query(`select t.name, min(value), max(value) from counter join track t on t.id = track_id
      where t.name glob 'queue*' or t.name glob 'slots*' or t.name glob 'sequence*' group by 1 order by 1`)
    expect(rows.map(([name]) => `${name}`.replace(/(?: count| requests| tokens| slots)$/, ''))).toEqual([
      'queue length',
      ...[0, 1, 2].map((sequence) => `sequence ${sequence}: tokens in the KV cache`),
      'slots busy',
    ])
    expect(rows.at(-1)!.slice(1)).toEqual([0, 3])
    expect(rows[1]![2]).toBe(72)
  })

  test('functions nest on the row of their thread', () => {
    const { rows } = trace.query(`select name, count(*) from slice where category = 'function' group by 1 order by 1`)
    expect(rows.map(([name]) => name)).toEqual(['accept', 'accept-draft', 'draft', 'sample', 'token-to-piece'])
  })
})

describe.each(['v0.5.0-lv4.log', 'v0.7.0-lv3.log'])('the log %s of a server, without calls', (name) => {
  let trace: OpenTrace
  const samples = (row: string) =>
    trace
      .query(
        `select ts, value from counter join track on track.id = track_id where track.name = '${row}' order by ts, counter.id`,
      )
      .rows.map(([ts, value]) => [Number(ts), Number(value)] as const)
  const partsOf = (what: string) =>
    trace
      .query(`select ts, ts + dur, ifnull(extract_arg(arg_set_id, 'debug.tokens'), 0) from slice
        where category = 'request_part' and dur > 0 and name glob '${what}*'`)
      .rows.map((row) => row.map(Number) as [number, number, number])
  beforeAll(async () => {
    const source = readFileSync(new URL(`../fixtures/server/${name}`, import.meta.url))
    trace = await openTrace(convert([{ name, source }]))
  })
  afterAll(() => trace.close())

  test.each([
    ['prefill', 'slots in prefill', 'prompt tok/s'],
    ['decode', 'slots in decode', 'generated tok/s'],
  ])('has rows of each %s: how many at a time, and the tokens of all of them', (what, slots, rate) => {
    const parts = partsOf(what)
    expect(parts.length).toBeGreaterThan(10)
    const steps = samples(slots)
    for (const [at, value] of steps)
      expect(value).toBe(parts.filter(([startNs, endNs]) => startNs <= at && at < endNs).length)
    expect(steps.map(([at]) => at)).toEqual(
      [...new Set(parts.flatMap((part) => part.slice(0, 2)))].sort((a, b) => a - b),
    )
    const rates = samples(rate)
    const tokens = rates.slice(1).reduce((sum, [at], i) => sum + (rates[i]![1] * (at - rates[i]![0])) / 1e9, 0)
    expect(tokens).toBeCloseTo(
      parts.reduce((sum, [, , tokens]) => sum + tokens, 0),
      3,
    )
    expect(rates.at(-1)![1]).toBe(0)
  })

  test('has the tokens of each slot: after a prompt all of it, after the answer that, too', () => {
    const requests =
      trace.query(`select extract_arg(arg_set_id, 'debug.slot'), ts + dur, extract_arg(arg_set_id, 'debug.prompt_tokens')
      + extract_arg(arg_set_id, 'debug.generated_tokens') from slice where category = 'request' and name not glob '*(*' and extract_arg(arg_set_id, 'debug.type') = 'completion'`).rows
    expect(requests.length).toBeGreaterThan(10)
    for (const [slot, endNs, tokens] of requests) {
      const after = samples(`slot ${slot}: tokens`).filter(([at]) => at <= Number(endNs))
      expect(after.at(-1)![1]).toBe(tokens)
    }
  })
})

test('a recording of a server has no such rows: its calls have them', async () => {
  const trace = await openTrace(convert(inputOf(server.events)))
  const rows = trace.query(
    "select name from track where name glob 'slots in *' or name glob '* tok/s' or name glob 'slot *: tokens'",
  )
  expect(rows.rows).toEqual([])
  trace.close()
})
