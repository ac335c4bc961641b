import { writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { GgtraceWriter } from '../../lib/core.ts'
import { at, run, useFolder } from './helpers.ts'

/** What the summary says about calls of the model. */

useFolder()

const MS = 1e6

test('calls that failed are told apart, with their result, an issue and a hint', () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const host = writer.thread(700)
  const results = [...Array(7).fill(0), ...Array(1200).fill(1)]
  for (const [call, result] of results.entries()) {
    host.token({ startNs: call * 10 * MS, endNs: (call * 10 + 9) * MS, call, tokens: call === 0 ? 16 : 1, result })
  }
  writer.end(20_000 * MS)
  writeFileSync(at('overrun.ggtrace'), writer.take())
  const { code, stdout } = run(['overrun.ggtrace'])
  expect(code).toBe(0)
  expect(stdout).toContain(
    'overrun.ggtrace: 7 calls: prefill 16 tokens, decode 6 tokens · 1 200 calls failed (result 1: no slot in the KV cache)\n',
  )
  expect(stdout).toContain('TPOT 10 ms · 100 tok/s decode')
  expect(stdout).toMatch(
    /! 1 200 × failed call: first at byte \d+ \(0x[0-9a-f]+\): llama_decode returned 1: no slot in the KV cache/,
  )
  expect(stdout).toMatch(/ {2}hint: result 1: enlarge the context/)
  const info = run(['info', 'overrun.ggtrace', '--json'])
  expect(JSON.parse(info.stdout).calls.failed).toBe(1200)
  // Numbers of calls count those that failed.
  expect(run(['overrun.ggtrace', '--tokens', '1206']).code).toBe(0)
  expect(run(['overrun.ggtrace', '--tokens', '1207']).stderr).toContain('the log has the calls 0..1206')
})

test('TPOT is that of a sequence and tok/s that of all, and the number of sequences says how they fit', () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const host = writer.thread(700)
  for (let call = 0; call < 9; call++) {
    const [tokens, at] = call === 0 ? [3, 0] : [1, 2 + call]
    const spans = [0, 1, 2, 3].map((sequence) => ({ sequence, position: at, tokens }))
    host.token({ startNs: (call * 415 + 1) * MS, endNs: (call + 1) * 415 * MS, call, tokens: 4 * tokens, spans })
  }
  writer.end(4000 * MS)
  writeFileSync(at('parallel.ggtrace'), writer.take())
  expect(run(['parallel.ggtrace']).stdout).toContain('TPOT 415 ms · 9.64 tok/s decode (4 sequences)\n')
  expect(run(['info', 'parallel.ggtrace']).stdout).toMatch(
    /^ {2}TPOT {7}415 ms per token of a sequence · 9\.64 tok\/s decode \(4 sequences\)$/m,
  )
})

test('steps of a serving engine are calls, too: convert and info tell of them', () => {
  const annotation = (ts: number) => ({
    cat: 'user_annotation',
    name: 'execute_2_context_0(0)_generation_2(2)',
    ts,
    dur: 10,
  })
  const launched = (ts: number, correlation: number) => [
    { cat: 'cuda_runtime', name: 'cudaGraphLaunch', ts, dur: 2, args: { correlation } },
    { cat: 'kernel', name: 'gemm', ts: ts + 50, dur: 40, tid: 7, args: { device: 0, stream: 7, correlation } },
  ]
  const events = [0, 100, 200].flatMap((ts, i) => [annotation(ts), ...launched(ts + 1, i + 1)])
  const traceEvents = events.map((event) => ({ ph: 'X', pid: 1, tid: 2, ...event }))
  writeFileSync(at('vllm.json'), JSON.stringify({ schemaVersion: 1, baseTimeNanoseconds: 1000, traceEvents }))
  const { stdout } = run(['vllm.json'])
  expect(stdout).toMatch(
    /^decode 20 000 tok\/s \(only 3 calls were recorded\)\nvllm\.json: 3 kernels, .*\n {2}3 calls: decode 6 tokens in 3 calls\n/,
  )
  expect(stdout).toContain('  TPOT 100 µs · 20 000 tok/s decode (2 sequences)\n')
  expect(run(['info', 'vllm.json']).stdout).toMatch(/^ {2}TPOT +100 µs per token of a sequence · 20 000 tok\/s decode/m)
})

test('speculative decoding: a row and a line for the target and for the draft', () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  const host = writer.thread(700)
  const [target, draft] = [0x1000, 0x2000]
  let call = 0
  const decode = (fromMs: number, toMs: number, context: number, position: number, tokens = 1) =>
    host.token({
      startNs: fromMs * MS,
      endNs: toMs * MS,
      call: call++,
      tokens,
      spans: [{ sequence: 0, position, tokens }],
      context,
      areAllOutput: tokens > 1 && position > 0,
    })
  decode(0, 10, target, 0, 8)
  decode(10, 12, draft, 0, 8)
  for (const [i, position] of [8, 10, 13].entries()) {
    decode(12 + 10 * i, 14 + 10 * i, draft, position)
    decode(14 + 10 * i, 16 + 10 * i, draft, position + 1)
    decode(16 + 10 * i, 22 + 10 * i, target, position, 3)
  }
  decode(42, 46, target, 16)
  writer.end(50 * MS)
  writeFileSync(at('speculation.ggtrace'), writer.take())
  const { stdout } = run(['speculation.ggtrace'])
  expect(stdout).toContain('\n  TTFT 12 ms · TPOT 3.78 ms · 265 tok/s decode\n') // 9 tokens in 34 ms
  expect(stdout).toContain('\n  target: 5 calls · TTFT 10 ms · TPOT 3.78 ms · 265 tok/s decode\n  draft: 7 calls · ')
  const names = run([
    'query',
    'speculation.ggtrace.pftrace',
    "select t.name, count(*) as n from track t join slice s on s.track_id = t.id where s.category = 'token' group by 1 order by 1",
  ]).stdout
  expect(names.split('\n').slice(2, 4)).toEqual([
    expect.stringMatching(/^Tokens: draft +7$/),
    expect.stringMatching(/^Tokens: target +5$/),
  ])
})

test('a log without calls, or without operators, says why, and what to do', () => {
  const writer = new GgtraceWriter({ originNs: 1n, blockBytes: 4096 })
  writer.run({ level: 'op' })
  writer.type(0, 'f32')
  const graph = writer.graph('CUDA0', [writer.tensor({ name: 'x-0' })])
  writer.thread(700).graph({ startNs: MS, endNs: 2 * MS, graph, call: 0xffffffff })
  writer.end(3 * MS)
  writeFileSync(at('graphs.ggtrace'), writer.take())
  const { code, stdout } = run(['graphs.ggtrace'])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^graphs\.ggtrace: no llama_decode calls\n/)
  expect(stdout).toContain(
    '\n  note: no calls of llama.cpp were seen: the program uses ggml alone, or libllama is built into it',
  )
  expect(stdout).toContain(
    '\n  note: operators of CUDA0 were not seen: there is no operator hook; record --sync computes',
  )
})
