import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { fitUsl } from '../../lib/analyze/usl.ts'
import { type Analysis, analyze, scaling } from '../../lib/index.ts'
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
    expect(named[0]).toEqual({ name: '8.ggtrace', decode_workers: 8, prefill_workers: 8 })
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
    expect(both.decode!.fit).toBeNull()
    expect(both.undetermined.map(({ what }) => what)).toEqual(['scaling.decode.fit', 'scaling.prefill.fit'])
    expect(scaling([]).decode).toBeNull()
  })
})

describe('the fit', () => {
  const speed = (n: number, l: number, s: number, k: number) => (l * n) / (1 + s * (n - 1) + k * n * (n - 1))
  const COUNTS = fc.uniqueArray(fc.integer({ min: 1, max: 64 }), { minLength: 3, maxLength: 8 })

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
