import { describe, expect, test } from '@jest/globals'
import { adviceOf, findings, lookedAt, RULES } from '../../../lib/analysis.ts'
import { analyze, convert, type Finding } from '../../../lib/index.ts'
import { checkedFindings, decodes, type MadeStep, madeRun } from './made-run.ts'

/** Workers with equal work in two matrix products and a norm. */
const even = (workers: number): MadeStep[] => [
  { name: 'norm-0', op: 'RMS_NORM', ns: Array.from({ length: workers }, () => 1000) },
  { name: 'ffn_up-0', op: 'MUL_MAT', ns: Array.from({ length: workers }, (_, i) => 50_000 + 500 * i) },
  { name: 'ffn_out-0', op: 'MUL_MAT', ns: Array.from({ length: workers }, (_, i) => 51_000 - 500 * i) },
]

const CPUS = { cpus: '4' }

describe('findings of runs with known figures', () => {
  test('an even run has none, and its figures are listed', async () => {
    const analysis = await analyze(madeRun({ calls: decodes(20, even(2)), attributes: CPUS }))
    expect(findings(analysis)).toEqual([])
    expect(analysis.findings).toEqual([])
    const figures = lookedAt(analysis).flatMap(({ figures }) => figures.map(({ figure }) => figure))
    expect(figures).toContain('2 workers on 4 CPUs')
    expect(figures.filter((figure) => !/\d|no losses/.test(figure))).toEqual([])
  })

  test('one worker that is always late', async () => {
    const steps = ['attn_norm', 'ffn_up', 'ffn_out'].map((name) => ({
      name: `${name}-0`,
      op: 'MUL_MAT',
      ns: [60_000, 100_000],
    }))
    const found = await checkedFindings(madeRun({ calls: decodes(20, steps), attributes: CPUS }))
    expect(found.map(({ rule }) => rule)).toEqual(['barrier-wait'])
    const [{ sentence, time_ns, confidence, evidence }] = found as [(typeof found)[0]]
    // Of each step, worker 0 waits 40 of 100 µs, worker 1 never: 20 on average.
    expect(time_ns).toBe(20 * 3 * 20_000)
    expect(evidence).toEqual({
      phase: 'decode',
      worker: 1,
      lost_share: 0.2,
      last_share: 1,
      wait_of_all_workers_ns: 20 * 3 * 40_000,
    })
    expect(sentence).toBe(
      '20 % of decode is waiting at barriers: worker 1 arrives last in 100 % of it (after FFN 13 %, norm 6.7 %)',
    )
    expect(confidence).toBe('high')
  })

  test('an operator that one of two workers computes', async () => {
    const steps = [...even(2), { name: 'soft-0', op: 'SOFT_MAX', ns: [40_000, 0] }]
    const [first, ...others] = await checkedFindings(madeRun({ calls: decodes(20, steps), attributes: CPUS }))
    expect(others).toEqual([])
    expect(first).toMatchObject({ rule: 'unbalanced-op', time_ns: 20 * 20_000 })
    expect(first!.sentence).toMatch(/^14 % of decode is lost in soft SOFT_MAX: worker 0 computes alone$/)
  })

  test('more workers than CPUs cover what follows from them', async () => {
    const steps = [0, 1, 2].map((i) => ({ name: `ffn-${i}`, op: 'MUL_MAT', ns: [10_000, 20_000, 90_000] }))
    const found = await checkedFindings(madeRun({ calls: decodes(20, steps), attributes: { cpus: '2' } }))
    expect(found.map(({ rule }) => rule)).toEqual(['more-threads-than-cpus'])
    expect(found[0]!.sentence).toBe('3 workers share 2 CPUs: 89 % of decode is waiting for each other')
  })

  test('a first call that reads its pages', async () => {
    const cold = even(2).map((step, i) => ({ ...step, ns: step.ns.map((ns) => 10 * ns), majorFaults: 20 * i }))
    const calls = [{ phase: 'prefill' as const, tokens: 2, steps: cold }, ...decodes(10, even(2))]
    const found = await checkedFindings(madeRun({ calls, attributes: CPUS }))
    const callNs = 10 * (1000 + 50_500 + 51_000)
    expect(found.map(({ rule }) => rule)).toEqual(['first-call'])
    expect(found[0]).toMatchObject({ time_ns: callNs - 2 * (callNs / 10), confidence: 'high' })
    expect(found[0]!.evidence).toMatchObject({ call_ns: callNs, major_faults: 60, slowest_layer: 0 })
    expect(found[0]!.sentence).toBe(
      'the first prefill call takes 5 × as long as its 2 tokens in decode (1 ms): 60 page faults that read from the disk, most in blk.0',
    )
  })

  test('pages that every call reads again', async () => {
    const steps = even(2).map((step) => ({ ...step, majorFaults: 10 }))
    const found = await checkedFindings(madeRun({ calls: decodes(10, steps), attributes: CPUS }))
    expect(found.map(({ rule }) => rule)).toEqual(['page-faults'])
    expect(found[0]!.evidence).toMatchObject({ phase: 'decode', major_faults: 300 })
  })

  test('calls that compute no graph, and a model that is divided', async () => {
    const outside = decodes(20, even(1), { outsideNs: 60_000 })
    const [first] = await checkedFindings(madeRun({ calls: outside, attributes: CPUS }))
    expect(first).toMatchObject({ rule: 'outside-graphs', time_ns: 20 * 60_000 })
    const divided = decodes(20, even(1), { backend: ['Vulkan0', 80_000] })
    const found = await checkedFindings(madeRun({ calls: divided, attributes: CPUS }))
    expect(found.map(({ rule }) => rule)).toEqual(['divided-model'])
    expect(found[0]!.time_ns).toBe(20 * 80_000)
    expect(found[0]!.sentence).toMatch(/^44 % of decode waits for Vulkan0, 56 % computes on the CPU/)
  })

  test('calls that wait for a backend of another process', async () => {
    const calls = decodes(20, even(1), { backend: ['RPC0[10.0.0.2:50052]', 80_000] })
    const [first, ...others] = await checkedFindings(madeRun({ calls, attributes: CPUS }))
    expect(others).toEqual([])
    expect(first).toMatchObject({ rule: 'remote-wait', time_ns: 20 * 80_000 })
    expect(first!.sentence).toMatch(
      /^44 % of decode waits for RPC0\[10\.0\.0\.2:50052\]: 80 µs of \d+ µs a call; how much /,
    )
  })

  test.each(['synchronize', 'write-log'] as const)('calls that compute no graph, in part for %s', async (outside) => {
    const calls = decodes(20, even(1), { outsideNs: 80_000, outside })
    const found = await checkedFindings(madeRun({ calls, attributes: CPUS }))
    const ns = outside === 'synchronize' ? 80_000 : 60_000
    expect(found.find(({ rule }) => rule === 'outside-graphs')?.time_ns).toBe(20 * ns)
  })

  test.each(['BLAS', 'ZenDNN'])('%s computes on the CPU: nothing waits for it', async (library) => {
    const steps = even(1)
    const made = madeRun({ calls: decodes(20, steps, { backend: [library, 80_000] }), attributes: CPUS })
    expect((await checkedFindings(made)).map(({ rule }) => rule)).not.toContain('divided-model')
    const { call_time } = await analyze(made)
    expect(call_time[0]!.parts.find(({ what }) => what === 'CPU library')?.time_ns).toBe(20 * 80_000)
    expect(call_time[0]!.parts.map(({ what }) => what)).not.toContain('waiting for a backend')
  })

  test('losses are a finding, and make others doubtful', async () => {
    const steps = even(2).map((step) => ({ ...step, ns: [60_000, 100_000] }))
    const found = await checkedFindings(madeRun({ calls: decodes(20, steps), attributes: CPUS, losses: 3 }))
    expect(found.map(({ rule, confidence }) => [rule, confidence])).toEqual([
      ['barrier-wait', 'low'],
      ['losses', 'high'],
    ])
    expect(found[1]!.evidence).toEqual({ losses: 3, codes: 'lost-records' })
  })

  test('what explains little of the run is left out', async () => {
    const outside = { phase: 'prefill' as const, steps: even(1), outsideNs: 60_000 }
    const found = await checkedFindings(madeRun({ calls: [outside, ...decodes(50, even(1))], attributes: CPUS }))
    expect(found).toEqual([])
  })
})

test('a phase at the limit of the memory, against peaks that are given', async () => {
  // 1 MB of weights in 100 µs: 10 GB/s.
  const weights = { name: 'ffn_up-0', op: 'MUL_MAT', ns: [100_000] }
  const analysis = await analyze(madeRun({ calls: decodes(20, [weights]), attributes: CPUS }))
  const speed = { flop: 2e6, bytes: 1e6, bytes_are_max: false, flop_per_s: 20e9, bytes_per_s: 10e9, intensity: 2 }
  const peaks = { peak_flop_per_s: 1e12, peak_bytes_per_s: 12.5e9, ridge: 80, attainable_flop_per_s: 25e9 }
  const shares = {
    mfu_share: 0.02,
    mbu_share: 0.8,
    roof_share: 0.8,
    bound: 'memory' as const,
    margin: 0.025,
    peak_threads: null,
    note: null,
  }
  const call = { scope: 'phase' as const, what: 'decode', phase: 'decode' as const, backend: null }
  const of = { ...call, count: 20, time_ns: 2e6 }
  const [finding] = findings({ ...analysis, rooflines: [{ ...of, ...speed, ...peaks, ...shares }] })
  expect(finding).toMatchObject({ rule: 'roofline', time_ns: 2e6, confidence: 'high' })
  expect(finding!.sentence).toBe("decode is memory-bound: 10 GB/s, 80 % of this machine's peak")
  expect(findings({ ...analysis, rooflines: [{ ...of, ...speed, ...peaks, ...shares, mbu_share: 0.5 }] })).toEqual([])

  // What the machine permits comes after what takes a fifth of the time, ahead of what takes less.
  const rulesWith = async (ns: number) => {
    const uneven = { ...weights, ns: [100_000, ns] }
    const analysis = await analyze(madeRun({ calls: decodes(20, [uneven]), attributes: CPUS }))
    return findings({ ...analysis, rooflines: [{ ...of, ...speed, ...peaks, ...shares }] }).map(({ rule }) => rule)
  }
  expect(await rulesWith(40_000)).toEqual(['unbalanced-op', 'roofline'])
  expect(await rulesWith(75_000)).toEqual(['roofline', 'barrier-wait'])
})

test('tokens that wait between calls', async () => {
  const calls = decodes(20, even(1))
  const [finding] = await checkedFindings(madeRun({ calls, attributes: CPUS, gapNs: 50_000 }))
  expect(finding!.sentence).toMatch(/^33 % of the time per token is between calls: 50 µs of 152 µs$/)
  expect(finding).toMatchObject({ rule: 'between-calls', evidence: { between_ns: 50_000 } })
})

test.each([1000, 50_000])('of a sample, the time between calls is that of all of them (%i ns)', async (gapNs) => {
  const run = () => madeRun({ calls: decodes(150, even(1)), attributes: CPUS, gapNs })
  const between = (found: readonly Finding[]) => found.filter(({ rule }) => rule === 'between-calls')
  const trace = convert(run(), { findings: true })
  let step = await trace.next()
  while (!step.done) step = await trace.next()
  expect(between(step.value[0]!.findings!)).toEqual(between((await analyze(run())).findings))
})

test.each([40, 150, 700])('of a sample of %i calls, a slow first call counts once', async (count) => {
  const calls = decodes(count, even(1)).map((call, i) => ({ ...call, outsideNs: i === 0 ? 3_000_000 : 40_000 }))
  const share = (found: readonly Finding[]) =>
    Number(found.find(({ rule }) => rule === 'outside-graphs')!.evidence['outside_share'])
  const trace = convert(madeRun({ calls, attributes: CPUS }), { findings: true })
  let step = await trace.next()
  while (!step.done) step = await trace.next()
  const whole = share((await analyze(madeRun({ calls, attributes: CPUS }))).findings)
  expect(whole).toBeGreaterThan(0.25)
  expect(Math.abs(share(step.value[0]!.findings!) - whole)).toBeLessThan(0.02)
})

describe('the rules', () => {
  test('are all different, each with limits and their reasons, and what to do', () => {
    expect(new Set(RULES.map(({ id }) => id)).size).toBe(RULES.length)
    for (const { id, limits, advice, covers = [] } of RULES) {
      expect([id, Object.values(limits).every(({ value, why }) => value > 0 && why.length > 20)]).toEqual([id, true])
      expect([id, adviceOf(advice).length > 40]).toEqual([id, true])
      expect([id, covers.filter((covered) => !RULES.some((rule) => rule.id === covered))]).toEqual([id, []])
    }
  })

  test('do not fail on an Analysis without calls', async () => {
    const analysis = await analyze(madeRun({ calls: [] }))
    expect(findings(analysis)).toEqual([])
  })
})

test('TPOT that grows is a finding only where attention grows: else the machine got slower', async () => {
  const growing = (attention: number, other: number, name = 'ffn_up-0') =>
    madeRun({
      calls: [
        { phase: 'prefill', tokens: 16, steps: [{ name: 'ffn_up-0', op: 'MUL_MAT', ns: [500_000, 500_000] }] },
        ...Array.from({ length: 60 }, (_, i) => {
          const step = (name: string, op: string, slope: number) => {
            const ns = 200_000 + slope * i
            return { name, op, ns: [ns, ns] }
          }
          return {
            phase: 'decode' as const,
            steps: [step('kqv_out-0', 'FLASH_ATTN_EXT', attention), step(name, 'MUL_MAT', other)],
          }
        }),
      ],
    })
  const growth = async (input: ReturnType<typeof madeRun>) =>
    (await analyze(input)).findings.filter(({ rule }) => rule === 'context-growth').map(({ sentence }) => sentence)
  expect(await growth(growing(4000, 0))).toEqual([
    expect.stringMatching(/^TPOT grows 4 ms per 1 000 tokens: kqv_out 100 % /),
  ])
  expect(await growth(growing(4000, -2000))).toEqual([
    expect.stringMatching(
      /^TPOT grows 2 ms per 1 000 tokens: kqv_out 100 % of 4 ms, and 2 ms less in what gets faster \(/,
    ),
  ])
  expect(await growth(growing(4000, 4000))).toEqual([expect.stringMatching(/^TPOT grows 8 ms per 1 000 tokens/)])
  expect(await growth(growing(1000, 8000))).toEqual([])
  // A product with weights of attention does not read the cache.
  expect(await growth(growing(1000, 8000, 'Qcur-0'))).toEqual([])
  expect(await growth(growing(1000, 8000, 'kq-0'))).toHaveLength(1)
})

test('several operators that are not split are together the cause of waits at barriers', async () => {
  const alone = (name: string) => ({ name, op: 'ARGSORT', ns: [100_000, 1_000] })
  const steps = [{ name: 'ffn_up-0', op: 'MUL_MAT', ns: [600_000, 600_000] }, ...['a-0', 'b-0', 'c-0'].map(alone)]
  const calls = Array.from({ length: 20 }, () => ({ phase: 'decode' as const, steps }))
  const found = (await analyze(madeRun({ calls }))).findings
  expect(found.map(({ rule }) => rule)).toEqual(['unbalanced-op', 'unbalanced-op', 'unbalanced-op'])
})
