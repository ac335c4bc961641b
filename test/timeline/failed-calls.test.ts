import { describe, expect, test } from '@jest/globals'
import { type GgtraceToken, GgtraceWriter } from '../../lib/core.ts'
import { type ConvertOptions, convert, summarize } from '../../lib/index.ts'
import { openTrace } from '../../lib/node.ts'
import { findView } from '../../lib/sql.ts'
import { drawn, type Shown } from '../printing-sink.ts'

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

const linesOf = (rows: RegExp, args: Shown['args'] = [], options: ConvertOptions = {}) =>
  drawn(log, options, { rows, args })

describe('a log whose context was overrun', () => {
  test('failed calls have names of their own, and are not numbered as decode calls', async () => {
    expect(await linesOf(/^Tokens/)).toEqual([
      'Tokens | 0–20000000 prefill (4 tokens) · 20 ms',
      'Tokens | 21000000–30000000 decode 1 · 9 ms',
      'Tokens | 31000000–40000000 decode 2 · 9 ms',
      'Tokens | 41000000–50000000 decode 3 · 9 ms',
      'Tokens | 51000000–51010000 decode failed (1: no slot in the KV cache)',
      'Tokens | 52010000–61010000 decode 4 · 9 ms',
      'Tokens | 62010000–92010000 prefill failed (2: aborted)',
      'Tokens | 93010000–93020000 decode failed (-3: fatal error)',
      'Tokens | 94020000–94030000 encode failed (-1: error)',
      'Tokens | 95030000–95031000 decode failed (1: no slot in the KV cache)',
      'Tokens | 96031000–96032000 decode failed (1: no slot in the KV cache)',
      'Tokens | 97032000–97033000 decode failed (1: no slot in the KV cache)',
      'Tokens | 98033000–98034000 decode failed (1: no slot in the KV cache)',
      'Tokens | 99034000–99035000 decode failed (1: no slot in the KV cache)',
    ])
  })

  test('their arguments have the result and its meaning, and no rate', async () => {
    const lines = await linesOf(/^Tokens/, ['call', 'n_tokens', 'result', 'result_meaning', 'tok_per_s'])
    const remain = 'ubatches that were processed remain in the memory of the context'
    expect(lines.filter((line) => line.includes('failed')).map((line) => line.replace(/.*{(.*)}/, '$1'))).toEqual([
      'call: 4, n_tokens: 1, result: 1, result_meaning: no slot in the KV cache; nothing was computed',
      `call: 6, n_tokens: 8, result: 2, result_meaning: aborted; ${remain}`,
      `call: 7, n_tokens: 1, result: -3, result_meaning: fatal error; ${remain}`,
      'call: 8, n_tokens: 4, result: -1, result_meaning: error; the memory is as before the call',
      ...[9, 10, 11, 12, 13].map(
        (call) =>
          `call: ${call}, n_tokens: 1, result: 1, result_meaning: no slot in the KV cache; nothing was computed`,
      ),
    ])
    expect(lines[0]).toBe('Tokens | 0–20000000 prefill (4 tokens) · 20 ms {call: 0, n_tokens: 4, tok_per_s: 200}')
  })

  test('they have no tok/s, and leave the KV cache as it was', async () => {
    expect(await linesOf(/^tok|KV cache/)).toEqual([
      'tok/s | 0 = 200',
      'tok/s | 20000000 = 0',
      `tok/s | 21000000 = ${1e9 / (9 * MS)}`,
      'tok/s | 30000000 = 0',
      `tok/s | 31000000 = ${1e9 / (9 * MS)}`,
      'tok/s | 40000000 = 0',
      `tok/s | 41000000 = ${1e9 / (9 * MS)}`,
      'tok/s | 50000000 = 0',
      `tok/s | 52010000 = ${1e9 / (9 * MS)}`,
      'tok/s | 61010000 = 0',
      'KV cache: cells used (inferred) | 20000000 = 4',
      'KV cache: cells used (inferred) | 30000000 = 5',
      'KV cache: cells used (inferred) | 40000000 = 6',
      'KV cache: cells used (inferred) | 50000000 = 7',
      'KV cache: cells used (inferred) | 61010000 = 9',
    ])
  })

  test('phases do not count them: they have one of their own', async () => {
    expect(await linesOf(/^Phase/, ['calls', 'n_tokens'])).toEqual([
      'Phase | 0–20000000 prefill {calls: 1, n_tokens: 4}',
      'Phase | 21000000–50000000 decode {calls: 3, n_tokens: 3}',
      'Phase | 51000000–51010000 failed {calls: 1}',
      'Phase | 52010000–61010000 decode {calls: 1, n_tokens: 1}',
      'Phase | 62010000–99035000 failed {calls: 8}',
    ])
  })

  test('each is an issue where it happened', async () => {
    const lines = await linesOf(/^Issues/, ['code', 'detail'])
    expect(lines).toHaveLength(9)
    const issue = (atNs: number, detail: string) =>
      `Issues | ${atNs} failed call {detail: ${detail}, code: call-failed}`
    expect(lines.slice(0, 4)).toEqual([
      issue(51010000, 'llama_decode returned 1: no slot in the KV cache (call 4)'),
      issue(92010000, 'llama_decode returned 2: aborted (call 6)'),
      issue(93020000, 'llama_decode returned -3: fatal error (call 7)'),
      issue(94030000, 'llama_encode returned -1: error (call 8)'),
    ])
  })

  test('the summary counts them by result, and no time is of them', async () => {
    const { calls, failures, issues } = await summarize(log)
    expect(calls).toMatchObject({
      by_phase: { prefill: { calls: 1, tokens: 4 }, decode: { calls: 4, tokens: 4 } },
      failed: 9,
    })
    expect(failures).toEqual([
      { result: 1, meaning: 'no slot in the KV cache', calls: 6 },
      { result: -3, meaning: 'fatal error', calls: 1 },
      { result: -1, meaning: 'error', calls: 1 },
      { result: 2, meaning: 'aborted', calls: 1 },
    ])
    expect(calls.ttft_ns).toBe(20 * MS)
    // 3 × 10 ms, and the fourth, which had to wait for the call that failed: 11.01 ms.
    expect(calls.tpot_ns).toBeCloseTo((3 * 10 * MS + 11.01 * MS) / 4, 6)
    expect(issues).toMatchObject([{ code: 'call-failed', count: 9, hint: expect.stringContaining('context') }])
  })

  test('--tokens goes by the number of the call, which counts them', async () => {
    expect(await linesOf(/^Tokens/, [], { tokens: [4, 5] })).toEqual([
      'Tokens | 51000000–51010000 decode failed (1: no slot in the KV cache)',
      'Tokens | 52010000–61010000 decode 4 · 9 ms',
    ])
  })

  test('the attributes of the trace have them apart', async () => {
    const trace = await openTrace(convert(log))
    expect(trace.problems()).toEqual([])
    const { rows } = trace.query(`select name, ifnull(int_value, str_value) from metadata
      where name glob '*_calls' order by name`)
    trace.close()
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
  expect((await summarize({ name: 'log', source: writer.take() })).calls.tpot_ns).toBe(10 * MS)
})

test('a failed graph says so', async () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const graph = writer.graph('CPU', [])
  writer.thread(700).graph({ startNs: 0, endNs: 10, graph, call: 0, status: 1 })
  writer.end(20)
  expect(await drawn({ name: 'log', source: writer.take() })).toEqual(['Graphs | 0–10 CPU graph failed (1: aborted)'])
})

test('bpftrace: a call that returned another result than 0 has failed, too', async () => {
  const text = 'g2p clock boot\ng2p token 5 1 7 9 1 0\ng2p token 15 1 7 19 1 0\ng2p token 25 1 7 26 1 1\n'
  const { calls, failures, issues } = await summarize({ name: 'log', source: new TextEncoder().encode(text) })
  expect(calls).toMatchObject({ by_phase: { decode: { calls: 2 } }, failed: 1 })
  expect(failures).toMatchObject([{ result: 1, calls: 1 }])
  expect(calls.tpot_ns).toBe(10)
  expect(issues).toMatchObject([{ code: 'call-failed', first: { atNs: 21, at: { line: 4 } } }])
})
