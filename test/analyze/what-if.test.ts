import { describe, expect, test } from '@jest/globals'
import { type Analysis, analyze, readAnalysis, type WhatIf, whatIf } from '../../lib/analysis.ts'
import type { Input } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { run } from '../cli/helpers.ts'
import { type MadeCall, madeRun } from './findings/made-run.ts'

/** Real runs: 32 decode calls and nothing else, undisturbed; one of 3 calls that lost CPUs. */
const AFTER = 'test/printed/logs/after.ggtrace.gz'
const PREEMPTED = 'test/recorded/preempted.ggtrace.gz'
/** A prompt of 64 tokens and 40 decode calls, some of which lost the CPU. */
const PROMPT = 'test/recorded/prompt.ggtrace.gz'

const HERE = { cwd: process.cwd() }
const PROMPT_TOKENS = 64
/** Attention that grows by 1 000 ns a token from 200 000 on, and another operator. */
const grown = (count: number, nsOf = (context: number) => 200_000 + 1000 * context): Input => {
  const steps = (ns: number): MadeCall['steps'] => [
    { name: 'kqv_out-0', op: 'FLASH_ATTN_EXT', ns: [ns] },
    { name: 'ffn_norm-0', op: 'RMS_NORM', ns: [300_000] },
  ]
  const prompt: MadeCall = { phase: 'prefill', tokens: PROMPT_TOKENS, steps: steps(2_080_000) }
  const decode = (i: number): MadeCall => ({ phase: 'decode', steps: steps(nsOf(PROMPT_TOKENS + i)) })
  return madeRun({ calls: [prompt, ...Array.from({ length: count }, (_, i) => decode(i))] })
}

/** The calls of a run, in which a step takes 10 µs or as many ns as its weight has elements, by this factor. */
function retimed(analysis: Analysis, factorOf: (call: number, group: number) => number): Analysis {
  const { calls, steps } = analysis.series!
  const { groups } = steps!
  const made = steps!.calls.map((call, i) => {
    const ns = call.steps.map((count, group) => count * (groups[group]!.weight_elements || 10_000) * factorOf(i, group))
    const times = { time_ns: ns, compute_ns: ns, undisturbed_ns: ns, quiet_ns: ns, quiet_steps: call.steps }
    return { ...call, ...times, preempted_outside_ns: 0, preempted_before_ns: 0 }
  })
  const nsOf = new Map(made.map(({ call, time_ns }) => [call, time_ns.reduce((sum, ns) => sum + ns, 1000)]))
  const rows = calls!.rows.map((row) => {
    const time_ns = nsOf.get(row.call) ?? row.time_ns
    return { ...row, time_ns, tpot_ns: row.tpot_ns === null ? null : time_ns }
  })
  const ttft_ns = rows.find(({ phase }) => phase === 'prefill')!.time_ns
  return {
    ...analysis,
    calls: { ...analysis.calls, ttft_ns },
    series: { ...analysis.series, calls: { ...calls!, rows }, steps: { ...steps!, calls: made } },
  }
}

const ofAttention = ({ parts }: WhatIf, phase: string) =>
  parts.find((part) => part.phase === phase && part.op === 'FLASH_ATTN_EXT')!

test('a longer context adds the growth of attention in the run, and nothing to other operators', async () => {
  const result = await whatIf(grown(64), { context: 164 })
  const { tpot_ns, decode_tokens_per_s, basis } = result
  expect(ofAttention(result, 'decode').then_ns - ofAttention(result, 'decode').now_ns).toBeCloseTo(100_000, 0)
  expect(tpot_ns.expected! - tpot_ns.now!).toBeCloseTo(100_000, -2)
  expect(tpot_ns.low).toBeLessThan(tpot_ns.expected!)
  expect(tpot_ns.high).toBeGreaterThan(tpot_ns.expected!)
  expect(decode_tokens_per_s.expected! * tpot_ns.expected!).toBeCloseTo(1e9, 0)
  expect(basis.join()).toContain('164 to 227 tokens of context: growth of attention in the run, at 64 to 127')
})

test('of a longer prompt, attention grows by the positions that its tokens see, other work by tokens', async () => {
  const analysis = retimed(await analyze(await inputOf(PROMPT), { series: ['calls', 'steps'] }), () => 1)
  const { tokens } = analysis.series!.calls!.rows.find(({ phase }) => phase === 'prefill')!
  const longer = 4 * tokens!
  const { parts, ttft_ns } = await whatIf(analysis, { context: longer })
  const seen = (length: number) => (length * (length + 1)) / 2
  for (const { phase, what, op, role, type, now_ns, then_ns } of parts) {
    if (phase !== 'prefill' || what !== 'operators') continue
    // Only the last token has outputs.
    if (role === 'result_output') {
      expect(then_ns).toBe(now_ns)
      continue
    }
    const isAttention = op === 'FLASH_ATTN_EXT' || op === 'SOFT_MAX' || (op === 'MUL_MAT' && type === '')
    expect(then_ns / now_ns).toBeCloseTo(isAttention ? seen(longer) / seen(tokens!) : 4, 6)
  }
  expect(ttft_ns.expected! / ttft_ns.now!).toBeGreaterThan(4)
})

test('the further beyond the run, the wider the interval', async () => {
  const log = await analyze(grown(64), { series: ['calls', 'steps'] })
  const width = async (context: number) => {
    const { low, expected, high } = (await whatIf(log, { context })).tpot_ns
    return (high! - low!) / expected!
  }
  const widths = [await width(80), await width(300), await width(800)]
  expect(widths).toEqual(widths.toSorted((a, b) => a - b))
})

test('a change that does nothing predicts the run itself, exactly, from logs and from a stored Analysis', async () => {
  const analysis = await analyze(await inputOf(AFTER), { series: ['calls', 'steps'] })
  const { tpot_ns } = analysis.calls
  const same = { now: tpot_ns, expected: tpot_ns, low: tpot_ns, high: tpot_ns, why: null }
  const stored = await readAnalysis(JSON.stringify(analysis))
  for (const from of [analysis, stored, await inputOf(AFTER)]) {
    const unchanged = await whatIf(from, { without: ['preempted', 'faults'] })
    expect(unchanged.tpot_ns).toEqual(same)
    expect(unchanged.is_unchanged).toBe(true)
    expect(unchanged.sentence).toContain(
      'no change, as no call lost a CPU and no call had page faults that read: decode 1 883 tok/s',
    )
  }
  expect((await whatIf(grown(64), { context: PROMPT_TOKENS })).is_unchanged).toBe(true)
})

test('without preemption: the steps of a real run lose what their threads lost, and all else remains', async () => {
  const analysis = await analyze(await inputOf(PREEMPTED), { series: ['calls', 'steps'] })
  const { ttft_ns, parts, tpot_ns } = await whatIf(analysis, { without: ['preempted'] })
  expect(ttft_ns.expected).toBeLessThan(ttft_ns.now!)
  expect(ttft_ns.low).toBeLessThan(ttft_ns.expected!)
  expect(tpot_ns.why).toBe('2 decode calls with operators and a known context; at least 16 are necessary')
  for (const { then_ns, now_ns } of parts) expect(then_ns).toBeLessThanOrEqual(now_ns)
  const { calls, steps } = analysis.series!
  for (const { call, time_ns, undisturbed_ns } of steps!.calls) {
    const sum = time_ns.reduce((sum, ns) => sum + ns, 0)
    expect(sum).toBeLessThanOrEqual(calls!.rows.find((row) => row.call === call)!.time_ns * 1.02)
    for (const [group, ns] of undisturbed_ns.entries()) expect(ns).toBeLessThanOrEqual(time_ns[group]!)
  }
})

test('without preemption: calls that lost the CPU take what the others take', async () => {
  const { tpot_ns, decode_tokens_per_s, basis } = await whatIf(await inputOf(PROMPT), { without: ['preempted'] })
  const analysis = await analyze(await inputOf(PROMPT), { series: ['calls', 'steps'] })
  const lost = new Set(
    analysis.series!.steps!.calls.flatMap(({ call, time_ns, undisturbed_ns, ...lost }) => {
      const isLost = lost.preempted_outside_ns + lost.preempted_before_ns > 0
      return isLost || undisturbed_ns.some((ns, i) => ns < time_ns[i]!) ? [call] : []
    }),
  )
  const times = analysis.series!.calls!.rows.flatMap(({ call, phase, tpot_ns }) =>
    phase === 'decode' && tpot_ns !== null && !lost.has(call) ? [tpot_ns] : [],
  )
  expect(tpot_ns.expected).toBeLessThan(tpot_ns.now! / 2)
  expect(tpot_ns.low).toBeLessThan(times.toSorted((a, b) => a - b)[times.length >> 1]!)
  expect(tpot_ns.expected! / (times.reduce((sum, ns) => sum + ns, 0) / times.length)).toBeCloseTo(1, 0)
  expect(decode_tokens_per_s.low! * tpot_ns.high!).toBeCloseTo(1e9, 0)
  expect(basis.join()).toMatch(/decode calls of 40 lost their CPUs/)
})

describe('without preemption, where every call lost its CPU', () => {
  const [NS, LOST] = [300_000, 2_000_000]
  const step = (i: number) => ({ name: `ffn_up-${i}`, op: 'MUL_MAT', ns: [NS, NS] })
  /** Each time another one of four steps is disturbed. */
  const runOf = (disturbed: (step: MadeCall['steps'][number]) => MadeCall['steps'][number]) =>
    madeRun({
      calls: Array.from({ length: 40 }, (_, call) => ({
        phase: 'decode' as const,
        steps: [0, 1, 2, 3].map((i) => (i === call % 4 ? disturbed(step(i)) : step(i))),
      })),
    })

  test.each<[what: string, disturbed: Parameters<typeof runOf>[0]]>([
    [
      'a step takes what others of its group take, not what a worker takes that computed for both',
      (made) => ({ ...made, ns: [2 * NS, NS + LOST], lostNs: [0, LOST] }),
    ],
    ['nothing remains of what is lost between two steps', (made) => ({ ...made, lostBeforeNs: LOST })],
  ])('%s', async (_, disturbed) => {
    const { tpot_ns, basis } = await whatIf(runOf(disturbed), { without: ['preempted'] })
    expect(tpot_ns.now).toBeGreaterThan(4 * NS + 0.9 * LOST)
    expect(tpot_ns.expected! / (4 * NS)).toBeCloseTo(1, 2)
    // What the other program costs besides is not known.
    expect(tpot_ns.low! / tpot_ns.expected!).toBeLessThan(0.7)
    expect(basis.join('\n')).toMatch(/what they cost besides, by caches or a shared core, is between 0 and 40 %/)
  })
})

test('a prompt that lost nothing differs as two starts of the program do, where decode calls change', async () => {
  const analysis = await analyze(await inputOf(PROMPT), { series: ['calls', 'steps'] })
  const steps = analysis.series!.steps!
  const [prompt, ...others] = steps.calls
  const undisturbed = { undisturbed_ns: prompt!.time_ns, preempted_outside_ns: 0, preempted_before_ns: 0 }
  const calls = [{ ...prompt!, ...undisturbed }, ...others]
  const made = { ...analysis, series: { ...analysis.series, steps: { ...steps, calls } } }
  const { is_unchanged, tpot_ns, ttft_ns, basis } = await whatIf(made, { without: ['preempted'] })
  expect(is_unchanged).toBe(false)
  expect(basis.join('\n')).toMatch(/prefill: no change acts on it; two starts of the program differ by ± \d+ %/)
  expect(tpot_ns.expected).toBeLessThan(tpot_ns.now!)
  expect(ttft_ns.expected).toBe(ttft_ns.now)
  expect(ttft_ns.high! / ttft_ns.now!).toBeGreaterThanOrEqual(1.07)
  expect(ttft_ns.now! / ttft_ns.low!).toBeCloseTo(ttft_ns.high! / ttft_ns.now!, 9)
})

describe('the interval of a TTFT from a single call', () => {
  const errorOf = async (factorOf: (call: number, role: string) => number) => {
    const analysis = await analyze(await inputOf(PROMPT), { series: ['calls', 'steps'] })
    const { groups } = analysis.series!.steps!
    const made = retimed(analysis, (call, group) => (call === 0 ? 5 : 1) * factorOf(call, groups[group]!.role))
    const { ttft_ns, basis } = await whatIf(made, { context: 256 })
    const error = Number(/prefill: of 1 call, ± (\d+) %/.exec(basis.join('\n'))![1]) / 100
    expect(ttft_ns.high! / ttft_ns.expected!).toBeGreaterThan(1 + error)
    expect(ttft_ns.expected! / ttft_ns.low!).toBeGreaterThan(1 + error)
    return error
  }

  test('is 7 % at least', async () => expect(await errorOf(() => 1)).toBe(0.07))

  test('is as wide as stretches of decoding differ that take as long', async () => {
    const error = await errorOf((call) => (call > 0 && Math.floor(call / 6) % 2 === 1 ? 1.5 : 1))
    // 1 and 1.5 around 1.25
    expect([error > 0.15, error < 0.5]).toEqual([true, true])
  })

  test('is as wide as steps differ that compute the same', async () => {
    const error = await errorOf((_, role) => (role === 'ffn_up' ? 1.5 : 1))
    expect([error > 0.15, error < 0.5]).toEqual([true, true])
  })
})

test.each<[refused: string, why: RegExp, log: () => Input, changes: Parameters<typeof whatIf>[1]]>([
  ['few calls', /^8 decode calls .* at least 16/, () => grown(8), { context: 100 }],
  ['a far context', /more than 8 times the longest one of the run, 127 tokens/, () => grown(64), { context: 2000 }],
  ['no states of threads', /does not contain when threads lost/, () => grown(64), { without: ['preempted'] }],
  ['no counts of faults', /does not contain page faults/, () => grown(64), { without: ['faults'] }],
  [
    'growth that is not clear',
    /growth with the context is not clear/,
    () => grown(16, (context) => 200_000 + ((context * 7919) % 97) * 4000),
    { context: 400 },
  ],
])('cannot say, and says why: %s', async (_, why, log, changes) => {
  const { tpot_ns, sentence } = await whatIf(log(), changes)
  expect(tpot_ns).toMatchObject({ expected: null, low: null, high: null })
  expect(tpot_ns.why).toMatch(why)
  expect(sentence).toMatch(/cannot say|TTFT/)
})

test('TTFT cannot be said of a run whose only prompt is the first call that is taken out', async () => {
  const { ttft_ns } = await whatIf(await inputOf(PROMPT), { without: ['first-call'] })
  expect(ttft_ns.why).toMatch(/only 0 prefill calls after the first/)
})

test('the command prints the answer first, JSON as the library returns it, and refuses no change', async () => {
  const text = await run(['what-if', AFTER, '--context', '200'], HERE)
  expect(text.code).toBe(0)
  expect(text.stdout).toMatch(/^decode 1 883 → [\d ]+ \([\d ]+ to [\d ]+\) tok\/s, TPOT 531 µs → /)
  expect(text.stdout).toContain('TTFT: cannot say: no prompt before the first decode')
  const json = await run(['what-if', AFTER, '--context', '200', '--json'], HERE)
  expect(JSON.parse(json.stdout)).toEqual(await whatIf(await inputOf(AFTER), { context: 200 }))
  const none = await run(['what-if', AFTER], HERE)
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('no change is given')])
})
