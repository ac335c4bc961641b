import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { scaling, threadScaling } from '../../lib/analysis.ts'
import { type SweptRun, sweep } from '../../lib/analyze/scaling/sweep.ts'
import { fitUsl } from '../../lib/analyze/scaling/usl.ts'
import { type Analysis, analyze } from '../../lib/index.ts'
import { type Call, eventsOf, logOf } from './workers-log.ts'

/** Runs of one program with several numbers of threads. */

const PROMPT_NS = 960e6

/** A run whose decode call takes so long, with two roles; each worker computes its part of them. */
function runOf(workers: number, decodeNs: number, kqvNs: number): Promise<Analysis> {
  const call = (phase: 'prefill' | 'decode', from: number, ns: number): Call => ({
    ...{ phase, at: [from, from + ns] },
    parts: Array.from({ length: workers }, (_, worker) => worker).flatMap((worker) => [
      { worker, node: 'ffn_up-0', at: [from, from + ns - kqvNs, from + ns - kqvNs] as const },
      { worker, node: 'kqv-0', at: [from + ns - kqvNs, from + ns, from + ns] as const },
    ]),
  })
  const calls = [
    call('prefill', 0, PROMPT_NS / workers),
    ...Array.from({ length: 5 }, (_, i) => {
      return call('decode', PROMPT_NS / workers + i * decodeNs, decodeNs)
    }),
  ]
  return analyze(logOf((names) => eventsOf(names, calls), { name: `${workers}.ggtrace` }))
}

/** Milliseconds of a decode; `kqv` always takes 2 of them. */
const DECODE_MS = new Map([
  [1, 20],
  [2, 11],
  [4, 8],
  [6, 7.8],
  [8, 8],
])

describe('scaling', () => {
  test('speed-up, gain, and the knee', async () => {
    const runs = await Promise.all([...DECODE_MS].map(([n, ms]) => runOf(n, ms * 1e6, 2e6)))
    const { decode, prefill, roles, undetermined, runs: named } = scaling(runs.toReversed())
    expect(named[0]).toEqual({ name: '8.ggtrace', decode_workers: 8, prefill_workers: 8, disturbed_by: [] })
    expect(undetermined).toEqual([])
    expect(decode!.counts.map(({ workers, tokens_per_s }) => [workers, Math.round(1e6 / tokens_per_s)])).toEqual(
      [...DECODE_MS].map(([n, ms]) => [n, ms * 1000]),
    )
    const one = 1000 / 20
    const gain = (from: number, to: number) =>
      (1000 / DECODE_MS.get(to)! - 1000 / DECODE_MS.get(from)!) / (to - from) / one
    const [first, ...others] = decode!.counts
    expect(first).toMatchObject({ speedup: 1, efficiency: 1, gain_share: null })
    expect(others.map(({ gain_share }) => gain_share)).toEqual(
      [gain(1, 2), gain(2, 4), gain(4, 6), gain(6, 8)].map((share) => expect.closeTo(share, 9)),
    )
    expect(gain(2, 4)).toBeGreaterThan(0.1) // a thread still pays here
    expect(gain(4, 6)).toBeLessThan(0.1)
    expect(decode!.knee).toBe(4)
    expect(prefill!.knee).toBeNull()
    expect(prefill!.counts.map(({ efficiency }) => efficiency)).toEqual(Array(5).fill(expect.closeTo(1, 9)))
    expect(prefill!.fit).toMatchObject({ contention: expect.closeTo(0, 9), coherency: expect.closeTo(0, 9) })
    expect(prefill!.fit!.r2).toBeCloseTo(1, 9)
    expect(roles.map(({ role, knee }) => [role, knee])).toEqual([
      ['ffn_up', 4],
      ['kqv', 1], // the same with any number
    ])
    expect(decode!.fit!.r2).toBeGreaterThan(0.97)
    expect(decode!.fit!.workers_of_peak).toBeGreaterThan(4)
    expect(decode!.fit!.workers_of_peak).toBeLessThan(9)
  })

  test('of one number of workers is not known; of two it has no fit', async () => {
    const [one, same, two] = await Promise.all([runOf(1, 20e6, 2e6), runOf(1, 10e6, 2e6), runOf(2, 10e6, 2e6)])
    const alone = scaling([one, same])
    expect([alone.decode, alone.prefill, alone.roles]).toEqual([null, null, []])
    expect(alone.undetermined.map(({ what }) => what)).toEqual(['scaling.decode', 'scaling.prefill'])
    const both = scaling([one, same, two])
    expect(both.decode!.counts[0]!.tokens_per_s).toBeCloseTo((50 + 100) / 2, 6)
    expect([both.decode!.fit, both.decode!.knee]).toEqual([null, null])
    expect(both.undetermined.map(({ what }) => what)).toEqual(['scaling.decode.fit', 'scaling.prefill.fit'])
    expect(scaling([]).decode).toBeNull()
  })
})

describe('the finding', () => {
  const found = async (times: readonly (readonly [workers: number, ms: number])[]) =>
    scaling(await Promise.all(times.map(([n, ms]) => runOf(n, ms * 1e6, 2e6)))).findings

  test('says from which number on more threads do not pay, with R²', async () => {
    const [finding, ...others] = await found([...DECODE_MS])
    expect(others).toEqual([]) // prefill scales perfectly
    expect(finding).toMatchObject({ rule: 'thread-scaling', confidence: 'high', time_ns: 0 })
    expect(finding!.sentence).toMatch(
      /^more than 4 threads do not pay in decode: 125 tok\/s with 4, 125 with 8 \(R² (0\.9[89]|1\.00) of 5 numbers of threads\)$/,
    )
    expect(finding!.evidence).toMatchObject({ phase: 'decode', threads: 4, next_threads: 6, most_threads: 8 })
    expect(finding!.evidence['gain_of_next_share']).toBeCloseTo((1000 / 7.8 - 1000 / 8) / 2 / 50, 9)
    expect(finding!.check).toEqual({
      command: 'ggml2perfetto stats 1.ggtrace 2.ggtrace 4.ggtrace 6.ggtrace 8.ggtrace',
      evidence: 'threads',
    })
  })

  test('is not made where each thread pays, where two numbers were run, or where no law fits', async () => {
    const twice = [1, 2, 4, 8].map((n) => [n, 20 / n] as const)
    expect(await found(twice)).toEqual([])
    expect(threadScaling.look(scaling(await Promise.all(twice.map(([n, ms]) => runOf(n, ms * 1e6, 1e6)))))).toEqual([
      {
        figure: expect.stringMatching(
          /^each further thread of decode pays, up to 8: R² 1\.00 of 4 numbers of threads$/,
        ),
      },
      { figure: expect.stringMatching(/^each further thread of prefill pays/) },
    ])
    expect(
      await found([
        [1, 20],
        [2, 20],
      ]),
    ).toEqual([])
    // The law has three parameters: it describes any three speeds, so none is fitted to them.
    const three = await Promise.all(
      (
        [
          [1, 20],
          [2, 11],
          [8, 11],
        ] as const
      ).map(([n, ms]) => runOf(n, ms * 1e6, 2e6)),
    )
    const { decode, findings, undetermined } = scaling(three)
    expect([decode!.fit, decode!.knee, findings]).toEqual([null, null, []])
    expect(undetermined).toContainEqual({
      what: 'scaling.decode.fit',
      why: 'at least 4 numbers of workers are necessary, found 3',
    })
    // Faster, slower, faster: the gain of the second number is below the limit, but nothing is a law.
    expect(
      await found([
        [1, 20],
        [2, 40],
        [4, 8],
        [8, 30],
        [16, 6],
      ]),
    ).toEqual([])
  })

  test('of speeds that no law describes: only that the most threads are clearly slower than the fastest number', async () => {
    const [finding, ...others] = await found([
      [1, 2],
      [2, 1.2],
      [3, 900],
      [4, 1000],
    ])
    expect(others).toEqual([])
    expect(finding).toMatchObject({
      sentence: expect.stringMatching(
        /^decode is slower with more than 2 threads: 833 tok\/s with 2, 1 with 4; no law of the number of threads describes the speeds of decode: R² -/,
      ),
      confidence: 'low',
      evidence: { threads: 2, next_threads: 3, most_threads: 4 },
    })
    expect(finding!.evidence).not.toHaveProperty('contention_share') // of a law that does not describe them
    const [ofThree] = await found([
      [1, 2],
      [2, 1.2],
      [3, 900],
    ])
    expect(ofThree!.sentence).toMatch(/^decode: 833 tok\/s with 2, 1\.1 with 3 \(0\.00×\): three numbers/)
  })

  test('is doubtful where runs were disturbed', async () => {
    const runs = await Promise.all([...DECODE_MS].map(([n, ms]) => runOf(n, ms * 1e6, 2e6)))
    const [of] = runs[4]!.findings
    const disturbed = { ...runs[3]!, findings: [{ ...of!, rule: 'preempted' }] }
    const { findings, runs: named } = scaling([...runs.slice(0, 3), disturbed, runs[4]!])
    expect(named.map(({ disturbed_by }) => disturbed_by)).toEqual([[], [], [], ['preempted'], []])
    expect(findings[0]).toMatchObject({ confidence: 'low' })
    expect(findings[0]!.confidence_reason).toContain('1 of 5 runs were disturbed (preempted)')
  })
})

describe('a sweep', () => {
  const runsOf = (times: readonly (readonly [workers: number, ms: number])[]) =>
    Promise.all(
      times.map(async ([workers, ms]) => ({ value: `${workers}`, analysis: await runOf(workers, ms * 1e6, 2e6) })),
    )
  const decodeOf = (runs: readonly SweptRun[]) => sweep(runs).phases.find(({ phase }) => phase === 'decode')!
  /** With calls that take so long in each phase. */
  const lasting = ({ value, analysis }: SweptRun, ns: number): SweptRun => ({
    value,
    analysis: { ...analysis, call_time: analysis.call_time.map((time) => ({ ...time, time_ns: ns })) },
  })
  /** With so many CPUs, and a finding that it was disturbed. */
  const disturbed = (
    { value, analysis }: SweptRun,
    cpus: number,
    rule = 'preempted',
    cpuTime: number | null = null,
  ) => {
    const finding = {
      ...{ rule, sentence: '', time_ns: 1, confidence: 'high' as const, confidence_reason: '' },
      advice: '',
    }
    const limits = { cpus, cpu_time: cpuTime, throttled_share: null, throttled_ns: null, memory_bytes: null }
    const findings = [{ ...finding, evidence: {}, check: { evidence: '' } }]
    return { value, analysis: { ...analysis, findings, run: { ...analysis.run, limits } } }
  }

  test('recommends the smallest number that is as fast as the fastest, and says whether that is certain', async () => {
    const runs = await runsOf([
      [1, 20],
      [2, 10.1],
      [4, 10],
      [4, 10.05],
      [2, 10.05],
      [1, 20.1],
    ])
    expect(decodeOf(runs).recommended).toMatchObject({ value: '2', rival: { value: '4' }, is_certain: true })
    const wide = await runsOf([
      [1, 20],
      [2, 9],
      [4, 10],
      [4, 14],
      [2, 13],
      [1, 20.1],
    ])
    const { recommended } = decodeOf(wide)
    expect(recommended).toMatchObject({ value: '2', is_certain: false })
    expect(recommended!.rival.factor_max).toBeGreaterThan(1.03)
    expect(decodeOf(runs.slice(0, 3)).recommended).toMatchObject({ rival: { factor_max: Infinity }, is_certain: false })
  })

  test('leaves out disturbed runs, and recommends nothing where too few are left', async () => {
    const runs = await runsOf([
      [1, 20],
      [2, 11],
      [1, 20.1],
      [2, 11.1],
      [1, 20.2],
      [2, 11.2],
    ])
    const once = runs.map((run, i) => (i === 1 ? disturbed(run, 2) : run))
    expect(sweep(once)).toMatchObject({ disturbed: [{ value: '2', rules: ['preempted'] }], lacking: [] })
    expect(decodeOf(once)).toMatchObject({ values: [{}, { speeds: [expect.anything(), expect.anything()] }] })
    expect(decodeOf(once).recommended?.value).toBe('2')
    const twice = once.map((run, i) => (i === 3 ? disturbed(run, 2) : run))
    expect(sweep(twice).lacking).toEqual(['2'])
    expect(decodeOf(twice).recommended).toBeNull()
  })

  test('what more threads than CPUs do to each other is no disturbance', async () => {
    const [one, two] = await runsOf([
      [1, 20],
      [2, 40],
    ])
    for (const rule of ['preempted', 'cpu-limit', 'blocked-workers']) {
      for (const [cpus, cpuTime] of [
        [1, null],
        [2, 1],
        [2, 1.5],
      ] as const) {
        expect(sweep([one!, disturbed(two!, cpus, rule, cpuTime)]).disturbed).toEqual([])
        const longer = lasting(disturbed(two!, cpus, rule, cpuTime), 2e9)
        expect(decodeOf([one!, longer]).recommended?.value).toBe('1')
      }
      expect(sweep([disturbed(one!, 1, rule), two!]).lacking).toEqual(['1'])
      expect(sweep([one!, disturbed(two!, 2, rule)]).lacking).toEqual(['2'])
    }
    expect(sweep([one!, disturbed(two!, 1, 'page-faults')]).lacking).toEqual(['2'])
  })

  test('under a limit of CPU time, short runs show what it permits at once', async () => {
    const [one, two] = await runsOf([
      [1, 20],
      [2, 10],
    ])
    const limited = disturbed(two!, 2, 'cpu-limit', 1)
    expect(decodeOf([one!, lasting(limited, 1.9e9)])).toMatchObject({ recommended: null, short: ['2'] })
    expect(decodeOf([one!, lasting(limited, 2e9)])).toMatchObject({ recommended: { value: '2' }, short: [] })
    // Without more workers than it permits, and without a limit.
    expect(decodeOf([one!, disturbed(two!, 2, 'none', 2)]).short).toEqual([])
    expect(decodeOf([one!, disturbed(two!, 1, 'none')]).short).toEqual([])
  })

  test('runs of other models are not compared', async () => {
    const [one, two] = await runsOf([
      [1, 20],
      [2, 10],
    ])
    const other = { value: '2', analysis: { ...two!.analysis, run: { ...two!.analysis.run, layers: 9 } } }
    const [first] = [{ value: '1', analysis: { ...one!.analysis, run: { ...one!.analysis.run, layers: 8 } } }]
    expect(sweep([first!, other]).differences).toEqual([expect.objectContaining({ what: 'layers' })])
    expect(decodeOf([first!, other]).recommended).toBeNull()
  })
})

describe('the fit', () => {
  const speed = (n: number, l: number, s: number, k: number) => (l * n) / (1 + s * (n - 1) + k * n * (n - 1))
  const COUNTS = fc.uniqueArray(fc.integer({ min: 1, max: 64 }), { minLength: 4, maxLength: 8 })

  test('finds the parameters of exact speeds', () => {
    const share = (max: number) => fc.double({ min: 0, max, noNaN: true })
    const property = (counts: number[], l: number, s: number, k: number) => {
      const fit = fitUsl(counts.map((n) => ({ n, x: speed(n, l, s, k) })))!
      expect(fit.r2).toBeGreaterThan(1 - 1e-6)
      for (const n of counts) {
        const found = speed(n, fit.tokens_per_s_of_one, fit.contention, fit.coherency)
        expect(found / speed(n, l, s, k)).toBeCloseTo(1, 5)
      }
    }
    fc.assert(fc.property(COUNTS, fc.double({ min: 0.1, max: 1e4, noNaN: true }), share(0.5), share(0.05), property))
  })

  test('has no negative parameter', () => {
    const noise = fc.array(fc.double({ min: 0.5, max: 2, noNaN: true }), { minLength: 8, maxLength: 8 })
    const property = (counts: number[], factors: number[]) => {
      const fit = fitUsl(counts.map((n, i) => ({ n, x: speed(n, 10, 0.1, 0.001) * factors[i]! })))
      expect(fit).not.toBeNull()
      expect(Math.min(fit!.contention, fit!.coherency, fit!.tokens_per_s_of_one)).toBeGreaterThanOrEqual(0)
      expect(fit!.r2).toBeLessThanOrEqual(1)
    }
    fc.assert(fc.property(COUNTS, noise, property))
  })

  test("is Amdahl's law where speeds are", () => {
    const fit = fitUsl([1, 2, 4, 8].map((n) => ({ n, x: 100 / (0.2 + 0.8 / n) })))!
    expect([fit.contention, fit.coherency, fit.workers_of_peak]).toEqual([
      expect.closeTo(0.2, 6),
      expect.closeTo(0, 6),
      fit.coherency === 0 ? null : expect.any(Number),
    ])
  })
})
