import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { type Analysis, analyze, type Finding } from '../../../lib/index.ts'
import type { FunctionPurpose, Phase, TraceEvent } from '../../../lib/model/events.ts'
import { inputOf } from '../../../lib/node.ts'
import { ROOT } from '../../tables/of-logs.ts'
import { logOf } from './made-requests.ts'

const S = 1e9
const FIXTURE = join(ROOT, 'test/fixtures/session/run.ggtrace.gz')

const fn = (what: FunctionPurpose, from: number, to: number): TraceEvent => {
  const times = { startNs: from * S, endNs: to * S }
  return { kind: 'function', what, name: 0, ...times, tid: 1, context: 0, sequence: -1, output: -1, value: -1 }
}

const call = (number: number, phase: Phase, tokens: number, from: number, to: number, context = 7): TraceEvent => {
  const span = { sequence: 0, position: phase === 'decode' ? 9 : 0, tokens }
  const batch = {
    function: 'llama_decode',
    areAllOutput: false,
    isLeftOut: false,
    result: 0,
    spans: [span],
    context,
  } as const
  return { kind: 'token', call: number, phase, tokens, startNs: from * S, endNs: to * S, tid: 1, inferred: 0, batch }
}

const clear = (at: number): TraceEvent => {
  const all = { sequence: -1, to: -1, from: -1, end: -1, delta: 0, isDone: true }
  return { kind: 'sequence', what: 'clear', atNs: at * S, tid: 1, context: 7, ...all }
}

const analysed = (events: readonly TraceEvent[]): Promise<Analysis> => analyze(logOf(() => [...events]))
const partsOf = ({ first_token }: Analysis) =>
  first_token!.parts.map(({ what, time_ns, before_ns }) => [what, time_ns && time_ns / S, before_ns && before_ns / S])

const START = [
  fn('map', 0, 3),
  fn('load-model', 0, 4),
  fn('reserve', 4.5, 5),
  fn('create-context', 4, 6),
  call(-1, 'warm-up', 2, 6, 7),
]

test('a waterfall of what was recorded: shares sum to 1, the time between parts is apart', async () => {
  const calls = [call(0, 'prefill', 4, 17, 18), call(1, 'prefill', 4, 18.5, 19), call(2, 'decode', 1, 20, 21)]
  const analysis = await analysed([...START, ...calls, call(3, 'decode', 1, 21, 30)])
  expect(partsOf(analysis)).toEqual([
    ['load', 4, null],
    ['context', 2, 0],
    ['warm-up', 1, 0],
    ['prefill', 2, 10],
    ['first decode', 1, 1],
  ])
  const { time_ns, parts } = analysis.first_token!
  expect(time_ns).toBe(10 * S)
  expect(parts.map(({ share }) => share)).toEqual([0.4, 0.2, 0.1, 0.2, 0.1])
  expect(parts.map(({ stages }) => stages.map(({ stage, time_ns }) => [stage, time_ns / S]))).toEqual([
    [
      ['map', 3],
      ['load-model', 1],
    ],
    [
      ['reserve', 0.5],
      ['create-context', 1.5],
    ],
    [],
    [],
    [],
  ])
  expect(parts[3]!.time_ns).toBe(analysis.calls.ttft_ns)
})

test('each part has its findings', async () => {
  const { findings, first_token } = await analysed([...START, call(0, 'prefill', 4, 8, 9), call(1, 'decode', 1, 9, 10)])
  expect(findings.map(({ rule }: Finding) => rule)).toEqual(['slow-load'])
  expect(first_token!.parts.map(({ findings }) => findings)).toEqual([['slow-load'], [], [], [], []])
})

test('only the first load, context and prompt count', async () => {
  const first = [...START, call(0, 'prefill', 4, 8, 9), call(1, 'decode', 1, 9, 10)]
  const once = await analysed(first)
  const again = [fn('load-model', 20, 50), fn('create-context', 50, 60), call(2, 'prefill', 4, 60, 70)]
  expect((await analysed([...first, ...again, call(3, 'decode', 1, 70, 80)])).first_token).toEqual(once.first_token)
})

test('the context of a draft model makes no first token', async () => {
  const drafts = [call(1, 'prefill', 4, 9, 10, 8), call(2, 'decode', 1, 10, 11, 8)]
  const analysis = await analysed([...START, call(0, 'prefill', 4, 8, 9), ...drafts, call(3, 'decode', 1, 12, 14)])
  expect(partsOf(analysis).slice(3)).toEqual([
    ['prefill', 1, 1],
    ['first decode', 2, 3],
  ])
})

test('what was not recorded is null: prompts of a benchmark are no first token', async () => {
  const prompts = [call(0, 'prefill', 4, 8, 9), clear(9.5), call(1, 'prefill', 4, 10, 11), clear(11.5)]
  for (const more of [[], [call(2, 'decode', 1, 12, 13)]])
    expect(partsOf(await analysed([...START, ...prompts, ...more])).slice(2)).toEqual([
      ['warm-up', 1, 0],
      ['prefill', null, null],
      ['first decode', null, null],
    ])
  const { first_token } = await analysed([call(0, 'prefill', 4, 8, 9)])
  expect(first_token).toBeNull()
})

test("a recording, and a server's log, which has the prompt of its first request only", async () => {
  const recorded = await analyze(inputOf(FIXTURE))
  const parts = recorded.first_token!.parts
  expect(parts.map(({ time_ns }) => time_ns !== null)).toEqual([true, true, false, true, true])
  const sum = (at: number) => parts[at]!.time_ns!
  expect(sum(0) + sum(1)).toBe(recorded.load!.time_ns)
  expect(sum(3)).toBe(recorded.calls.ttft_ns)
  const served = await analyze(inputOf(join(ROOT, 'test/fixtures/server/v0.7.0-lv4.log')), { series: ['requests'] })
  const [first] = served.series!.requests!.rows.toSorted((a, b) => a.start_ns! - b.start_ns!)
  expect(served.first_token!.parts.map(({ time_ns, is_inferred }) => [time_ns, is_inferred])).toEqual([
    ...[
      [null, false],
      [null, false],
      [null, false],
    ],
    [first!.parts!.prefill_ns, true],
    [null, false],
  ])
})
