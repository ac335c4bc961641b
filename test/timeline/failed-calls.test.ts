import { describe, expect, test } from '@jest/globals'
import {
  type ConvertOptions,
  convert,
  findView,
  type GgtraceToken,
  GgtraceWriter,
  openTrace,
  summarize,
} from '../../lib/index.ts'

/** Calls that llama.cpp refused or gave up: drawn and counted as such, and in no rate. */

const MS = 1e6

/** A prefill of 4 tokens, decode calls of 10 ms each, and calls that failed between and after them. */
function overrun(): Uint8Array {
  const writer = new GgtraceWriter({ originNs: 1_000_000_000n, blockBytes: 4096 })
  const host = writer.thread(700)
  let call = 0
  let now = 0
  const add = (tokens: number, ms: number, more: Partial<GgtraceToken> = {}) => {
    const spans = [{ sequence: 0, position: call === 0 ? 0 : 3 + call, tokens }]
    host.token({ startNs: now, endNs: now + ms * MS, call: call++, tokens, spans, context: 0x7000, ...more })
    now += (ms + 1) * MS
  }
  add(4, 20)
  for (let i = 0; i < 3; i++) add(1, 9)
  add(1, 0.01, { result: 1 })
  add(1, 9)
  add(8, 30, { result: 2 })
  add(1, 0.01, { result: -3 })
  add(4, 0.01, { result: -1, kind: 'encode' })
  for (let i = 0; i < 5; i++) add(1, 0.001, { result: 1 })
  writer.end(now)
  return writer.take()
}

const log = { name: 'log', source: overrun() }

async function ask(sql: string, options: ConvertOptions = {}) {
  const trace = await openTrace(convert(log, options))
  try {
    expect(trace.problems()).toEqual([])
    return trace.query(sql).rows
  } finally {
    trace.close()
  }
}

const arg = (key: string) => `extract_arg(arg_set_id, 'debug.${key}')`

describe('a log whose context was overrun', () => {
  test('failed calls have names of their own, and are not numbered as decode calls', async () => {
    const names = (await ask("select name from slice where category = 'token' order by ts")).map(([name]) => name)
    const noSlot = 'decode failed (1: no slot in the KV cache)'
    expect(names).toEqual([
      'prefill (4 tokens)',
      'decode 1',
      'decode 2',
      'decode 3',
      noSlot,
      'decode 4',
      'prefill failed (2: aborted)',
      'decode failed (-3: fatal error)',
      'encode failed (-1: error)',
      ...Array(5).fill(noSlot),
    ])
  })

  test('their arguments have the result and its meaning, and no rate', async () => {
    const rows = await ask(`select ${arg('token')}, ${arg('n_tokens')}, ${arg('result')}, ${arg('result_meaning')},
      ${arg('tok_per_s')} from slice where category = 'token' and name like '%failed%' order by ts limit 3`)
    expect(rows).toEqual([
      [4, 1, 1, 'no slot in the KV cache; nothing was computed', null],
      [6, 8, 2, expect.stringMatching(/^aborted; ubatches that were processed remain/), null],
      [7, 1, -3, expect.stringMatching(/^fatal error; ubatches/), null],
    ])
  })

  test('they have no tok/s, and leave the KV cache as it was', async () => {
    const values = (name: string) =>
      ask(`select value from counter c join track t on c.track_id = t.id where t.name = '${name}' and value > 0`)
    expect(await values('tok/s')).toEqual([[200], ...Array(4).fill([1e9 / (9 * MS)])])
    expect((await values('KV cache: cells used (inferred)')).at(-1)).toEqual([9])
  })

  test('phases do not count them: they have one of their own', async () => {
    const rows = await ask(
      `select name, ${arg('calls')}, ${arg('n_tokens')} from slice where category = 'phase' order by ts`,
    )
    expect(rows).toEqual([
      ['prefill', 1, 4],
      ['decode', 3, 3],
      ['failed', 1, null],
      ['decode', 1, 1],
      ['failed', 8, null],
    ])
  })

  test('each is an issue where it happened', async () => {
    const rows = await ask(
      `select name, ${arg('code')}, ${arg('detail')} from slice where category = 'issue' order by ts`,
    )
    expect(rows).toHaveLength(9)
    expect(rows.slice(0, 2)).toEqual([
      ['failed call', 'call-failed', 'llama_decode returned 1: no slot in the KV cache (call 4)'],
      ['failed call', 'call-failed', 'llama_decode returned 2: aborted (call 6)'],
    ])
    expect(rows[3]![2]).toBe('llama_encode returned -1: error (call 8)')
  })

  test('the summary counts them by result, and no time is of them', async () => {
    const { calls, ttftNs, tpotNs, issues } = await summarize(log)
    expect(calls).toMatchObject({
      warmUp: { calls: 0, tokens: 0 },
      prefill: { calls: 1, tokens: 4 },
      decode: { calls: 4, tokens: 4 },
      failed: {
        calls: 9,
        tokens: 19,
        results: [
          { result: 1, meaning: 'no slot in the KV cache', calls: 6 },
          { result: -3, meaning: 'fatal error', calls: 1 },
          { result: -1, meaning: 'error', calls: 1 },
          { result: 2, meaning: 'aborted', calls: 1 },
        ],
      },
    })
    expect(ttftNs).toBe(20 * MS)
    // 3 × 10 ms, and the fourth, which had to wait for the call that failed: 11.01 ms.
    expect(tpotNs).toBeCloseTo((3 * 10 * MS + 11.01 * MS) / 4, 6)
    expect(issues).toMatchObject([{ code: 'call-failed', count: 9, hint: expect.stringContaining('context') }])
  })

  test('--tokens goes by the number of the call, which counts them', async () => {
    const names = await ask("select name from slice where category = 'token' order by ts", { tokens: [4, 5] })
    expect(names).toEqual([['decode failed (1: no slot in the KV cache)'], ['decode 4']])
  })

  test('the attributes of the trace have them apart', async () => {
    const rows = await ask(`select name, ifnull(int_value, str_value) from metadata
      where name glob '*_calls' order by name`)
    expect(rows.map(([name, value]) => [String(name).replace(/.*\./, ''), Number(value)])).toEqual([
      ['decode_calls', 4],
      ['failed_calls', 9],
      ['prefill_calls', 1],
      ['warmup_calls', 0],
    ])
  })

  test('open shows calls that succeeded', async () => {
    const only = new GgtraceWriter({ originNs: 1_000_000_000n, blockBytes: 4096 })
    const host = only.thread(700)
    for (let call = 0; call < 4; call++) {
      host.token({ startNs: 100 * call, endNs: 100 * call + 50, call, tokens: 1, result: call < 3 ? 1 : 0 })
    }
    only.end(1000)
    const { span } = await findView(convert({ name: 'log', source: only.take() }))
    expect(span![0]).toBeGreaterThanOrEqual(1_000_000_000n + 290n)
  })
})

test('a prefill that was aborted is in the time of no decode call', async () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const host = writer.thread(700)
  host.token({ startNs: 0, endNs: 10 * MS, call: 0, tokens: 1 })
  host.token({ startNs: 10 * MS, endNs: 500 * MS, call: 1, tokens: 64, result: 2 })
  host.token({ startNs: 501 * MS, endNs: 510 * MS, call: 2, tokens: 1 })
  writer.end(510 * MS)
  expect((await summarize({ name: 'log', source: writer.take() })).tpotNs).toBe(10 * MS)
})

test('a failed graph says so', async () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const graph = writer.graph('CPU', [])
  writer.thread(700).graph({ startNs: 0, endNs: 10, graph, call: 0, status: 1 })
  writer.end(20)
  const trace = await openTrace(convert({ name: 'log', source: writer.take() }))
  expect(trace.query("select name from slice where category = 'graph'").rows).toEqual([
    ['CPU graph failed (1: aborted)'],
  ])
  trace.close()
})

test('bpftrace: a call that returned another result than 0 has failed, too', async () => {
  const text = 'g2p clock boot\ng2p token 5 1 7 9 1 0\ng2p token 15 1 7 19 1 0\ng2p token 25 1 7 26 1 1\n'
  const { calls, issues, tpotNs } = await summarize({ name: 'log', source: new TextEncoder().encode(text) })
  expect(calls).toMatchObject({ decode: { calls: 2 }, failed: { calls: 1, results: [{ result: 1, calls: 1 }] } })
  expect(tpotNs).toBe(10)
  expect(issues).toMatchObject([{ code: 'call-failed', first: { atNs: 21, at: { line: 4 } } }])
})
