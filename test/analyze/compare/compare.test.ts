import { beforeAll, describe, expect, test } from '@jest/globals'
import { compareRuns, gateOf } from '../../../lib/analysis.ts'
import { type Analysis, analyze } from '../../../lib/index.ts'
import { inputOf } from '../../../lib/node.ts'
import { normals } from './normals.ts'

/** Runs made from a recorded one: its times, varied by known factors. */

let recorded: Analysis
beforeAll(async () => {
  recorded = await analyze(inputOf('examples/moe.ggtrace.gz'))
})

/** Factors of five runs: some per cent of noise, with a geometric mean of 1. */
const NOISE = [1.01, 0.98, 1.015, 0.995, 1 / (1.01 * 0.98 * 1.015 * 0.995)]

interface Made {
  /** All times. */
  readonly by?: number
  /** Those of the operators of a role. */
  readonly role?: string
  readonly roleBy?: number
}

function run({ by = 1, role, roleBy = 1 }: Made): Analysis {
  const { calls, call_time, operators, workers } = recorded
  const rows = operators.rows.map((row, i) => {
    const noise = 1 + 0.003 * Math.sin(i + 1000 * by)
    const factor = by * noise * (row.role === role ? roleBy : 1)
    // Without a distribution, the sum counts.
    return {
      ...row,
      operator_time_ns: row.operator_time_ns * factor,
      duration: null,
      buckets: null,
      preempted_ns: 0,
      blocked_ns: 0,
    }
  })
  return {
    ...recorded,
    calls: { ...calls, ttft_ns: calls.ttft_ns! * by, tpot_ns: calls.tpot_ns! * by, tpot: null },
    call_time: call_time.map((of) => ({
      ...of,
      parts: of.parts.map((part) => ({ ...part, time_ns: part.time_ns * by })),
    })),
    operators: { ...operators, rows },
    workers,
    first_calls: [],
  }
}

const side = (made: Made = {}, factors = NOISE) => ({
  name: 'side',
  runs: factors.map((by) => run({ ...made, by: by * (made.by ?? 1) })),
})

test('a slower role is named first among operators, with an interval that contains the change; nothing else is', () => {
  const { effects } = compareRuns(side(), side({ role: 'ffn_moe_up', roleBy: 1.15 }, [...NOISE].reverse()))
  const roles = effects.filter(({ group }) => group === 'role')
  expect(roles[0]).toMatchObject({ name: 'ffn_moe_up MUL_MAT_ID', verdict: 'slower' })
  for (const { name, low_share, high_share, verdict } of roles) {
    const change = name.startsWith('ffn_moe_up') ? 0.15 : 0
    expect([name, low_share! <= change && change <= high_share!]).toEqual([name, true])
    if (change === 0) expect([name, verdict]).toEqual([name, 'unclear'])
  }
  expect(effects.filter(({ verdict, group }) => verdict === 'slower' && group === 'speed')).toEqual([])
})

test('the other way round, the same is faster, by the inverse', () => {
  const [a, b] = [side(), side({ by: 1.2 })]
  const [there, back] = [compareRuns(a, b), compareRuns(b, a)]
  for (const of of there.effects) {
    const other = back.effects.find(
      ({ group, phase, name }) => group === of.group && phase === of.phase && name === of.name,
    )!
    if (of.change_share === null) continue
    expect((1 + of.change_share) * (1 + other.change_share!)).toBeCloseTo(1, 9)
    expect((1 + of.low_share!) * (1 + other.high_share!)).toBeCloseTo(1, 9)
    expect(other.verdict.replace('faster', 'slower')).toBe(of.verdict)
  }
})

test('a run with itself: all effects are 1, and the same', () => {
  const same = side()
  const { effects, differences, findings, is_comparable } = compareRuns(same, same)
  expect(effects.every(({ change_share, verdict }) => Math.abs(change_share!) < 1e-12 && verdict !== 'slower')).toBe(
    true,
  )
  expect([differences, findings, is_comparable]).toEqual([[], [], true])
})

test('of 40 comparisons of equal sides none names a change or a finding; 5 % are found in most', () => {
  const normal = normals(45)
  const found = { ...recorded.findings[0]!, rule: 'barrier-wait', sentence: 'waits', evidence: { phase: 'decode' } }
  // Speeds that vary by 1 %, and a finding that every other run has.
  const noisy = (by = 1) => {
    const { runs } = side(
      { by },
      Array.from({ length: 5 }, () => Math.exp(0.01 * normal())),
    )
    return {
      name: 'side',
      runs: runs.map((run) => (normal() > 0 ? { ...run, findings: [...run.findings, found] } : run)),
    }
  }
  let planted = 0
  for (let i = 0; i < 40; i++) {
    const { verdict, effects, findings } = compareRuns(noisy(), noisy())
    expect(verdict).toMatch(/^(no difference of decode above|not certain: decode may take) /)
    expect(effects.filter(({ verdict }) => verdict === 'slower' || verdict === 'faster')).toEqual([])
    expect(findings.filter(({ change }) => change === 'appeared' || change === 'vanished')).toEqual([])
    const slower = compareRuns(noisy(), noisy(1.05))
    if (/^decode .* slower than "side" \(certain/.test(slower.verdict)) planted++
  }
  expect(planted).toBeGreaterThanOrEqual(30)
})

test('the first decode, a single call of each run, names no change', () => {
  const [call] = recorded.first_calls.filter(({ phase }) => phase === 'decode')
  const firstOf = (ms: readonly number[]) => ({
    name: 'side',
    runs: side().runs.map((run, i) => ({ ...run, first_calls: [{ ...call!, time_ns: ms[i]! * 1e6 }] })),
  })
  // Of ten recorded runs of one program beside others, by turns.
  const { effects, verdict } = compareRuns(
    firstOf([75.8, 30.5, 30.1, 30.3, 70.6]),
    firstOf([2.04, 2.1, 5.87, 1.97, 1.93]),
  )
  expect(effects.find(({ name }) => name === 'first decode')!.verdict).toBe('maybe faster')
  expect(verdict).toMatch(/^no difference/)
})

/** Times of a part of prefill in the runs of a side, in units of 10 µs; 0: the run does not have it. */
const sideWithPart = (what: 'preempted' | 'allocate', times: readonly number[], by = 1) => ({
  name: 'side',
  runs: side({ by }).runs.map((run, i) => ({
    ...run,
    call_time: run.call_time.map((time) => {
      const others = time.parts.filter((part) => part.what !== what)
      const part = { what, time_ns: times[i]! * 10_000, share: 0 }
      return { ...time, parts: time.phase === 'prefill' && times[i]! > 0 ? [...others, part] : others }
    }),
  })),
})

test('time without a CPU, which other programs took, names no change', () => {
  const verdictOf = (before: readonly number[], after: readonly number[], by = 1) => {
    const { verdict, effects } = compareRuns(sideWithPart('preempted', before), sideWithPart('preempted', after, by))
    const part = effects.find(({ name, phase }) => name === 'preempted' && phase === 'prefill')!
    const named = effects.filter(({ verdict }) => /^(slower|faster|new|gone)$/.test(verdict))
    return [part.verdict, named.filter(({ name }) => name !== 'preempted').length > 0, /certain: /.test(verdict)]
  }
  // Of ten recorded runs of one program, by turns, each.
  for (const [before, after] of [
    [
      [65, 23.4, 72.5, 133.2, 85.2],
      [67.2, 184.6, 147.8, 0, 255.7],
    ],
    [
      [0, 21.3, 76.4, 0, 0],
      [241.4, 0, 195.9, 0, 0],
    ],
    [
      [61.8, 66.9, 0, 163.2, 131.7],
      [0, 0, 0, 0, 0],
    ],
  ] as const)
    expect(verdictOf(before, after)).toEqual(['unclear', false, false])
  // What all runs of one side have and none of the other, or a hundred times of it, is shown as perhaps.
  const some = [61.8, 66.9, 70, 163.2, 131.7]
  expect(verdictOf(some, [0, 0, 0, 0, 0])).toEqual(['maybe faster', false, false])
  expect(verdictOf([0, 0, 0, 0, 0], some)).toEqual(['maybe slower', false, false])
  expect(
    verdictOf(
      some,
      some.map((time) => 100 * time),
    ),
  ).toEqual(['maybe slower', false, false])
  // It does not hide what the program itself lost.
  expect(verdictOf(some, some, 1.5)).toEqual([expect.any(String), true, true])
})

test('a part that some runs have and others have not is no change, until equal sides would hardly differ so', () => {
  const verdictOf = (before: readonly number[], after: readonly number[]) =>
    compareRuns(sideWithPart('allocate', before), sideWithPart('allocate', after)).effects.find(
      ({ name, phase }) => name === 'allocate' && phase === 'prefill',
    )!
  const nothing = [0, 0, 0, 0, 0]
  const unclear = { verdict: 'unclear', change_share: null, low_share: null, high_share: null }
  expect(verdictOf([300, 310, 0, 305, 300], nothing)).toMatchObject({ ...unclear, runs_before: 4, runs_after: 0 })
  expect(verdictOf([300, 310, 0, 305, 300], [900, 910, 905, 905, 900])).toMatchObject(unclear)
  expect(verdictOf(nothing, [300, 310, 290, 305, 300])).toMatchObject({ verdict: 'new', change_share: null })
  expect(verdictOf([300, 310, 290, 305, 300], nothing)).toMatchObject({ verdict: 'gone' })
})

test('what only one side has stays, without a change', () => {
  const without = side().runs.map((run) => ({
    ...run,
    operators: { ...run.operators, rows: run.operators.rows.filter(({ role }) => role !== 'ffn_moe_up') },
  }))
  const { effects } = compareRuns({ name: 'a', runs: without }, side())
  const added = effects.filter(({ verdict }) => verdict === 'new')
  expect([...new Set(added.map(({ name }) => name))]).toEqual(['ffn_moe_up MUL_MAT_ID'])
  expect(
    added.every(
      ({ before, change_share, runs_before }) => before === null && change_share === null && runs_before === 0,
    ),
  ).toBe(true)
})

test('another prompt, other threads, another machine are obstacles; another build is a difference', () => {
  const { run: facts, calls } = recorded
  const other = (change: Partial<Analysis>) => side().runs.map((run) => ({ ...run, ...change }))
  const compared = (change: Partial<Analysis>) => compareRuns(side(), { name: 'b', runs: other(change) })
  expect(compared({ run: { ...facts, build: '0.26.0' } })).toMatchObject({
    is_comparable: true,
    differences: [{ what: 'build', before: '0.25.1', after: '0.26.0', is_obstacle: false }],
  })
  expect(compared({ run: { ...facts, workers: 4, cpu: 'Other' } }).differences.map(({ what }) => what)).toEqual([
    'workers',
    'CPU',
  ])
  const slow = (calls: number) => ({
    name: 'slow calls',
    runs: other({ run: { ...facts, left_out: { calls, time_ns: 1e9, limit: '200 ms' } } }),
  })
  expect(compareRuns(slow(1000), slow(70)).differences).toMatchObject([{ what: 'calls left out', is_obstacle: true }])
  const prefill = { calls: 1, tokens: 512 }
  const prompt = compared({ calls: { ...calls, by_phase: { ...calls.by_phase, prefill } } })
  expect([prompt.is_comparable, prompt.differences[0]!.what]).toEqual([false, 'prompt'])
})

test('lengths of answers that vary on both sides are a difference, and no obstacle', () => {
  const lengths = (of: readonly number[]) => ({
    name: 'side',
    runs: side().runs.map((run, i) => {
      const decode = { calls: of[i % of.length]!, tokens: of[i % of.length]! }
      return { ...run, calls: { ...run.calls, by_phase: { ...run.calls.by_phase, decode } } }
    }),
  })
  expect(compareRuns(lengths([60, 61]), lengths([60, 64]))).toMatchObject({
    is_comparable: true,
    differences: [{ what: 'decode calls', before: '60; 61', after: '60; 64', is_obstacle: false }],
  })
  expect(compareRuns(lengths([60, 61]), lengths([128])).is_comparable).toBe(false)
})

test('findings that equal sides would hardly have so unequally', () => {
  const found = { ...recorded.findings[0]!, rule: 'barrier-wait', sentence: 'waits', evidence: { phase: 'decode' } }
  const sideWith = (count: number, runs: number) => ({
    name: 'side',
    runs: side({}, NOISE.slice(0, runs)).runs.map((run, i) =>
      i < count ? { ...run, findings: [...run.findings, found] } : run,
    ),
  })
  const changeOf = (before: number, after: number, runs = 5) =>
    compareRuns(sideWith(before, runs), sideWith(after, runs)).findings.map(({ change }) => change)
  expect(compareRuns(sideWith(0, 5), sideWith(5, 5)).findings).toEqual([
    { rule: 'barrier-wait', phase: 'decode', change: 'appeared', sentence: 'waits', runs_before: 0, runs_after: 5 },
  ])
  expect(changeOf(5, 0)).toEqual(['vanished'])
  expect(changeOf(0, 3, 3)).toEqual(['maybe appeared'])
  expect(changeOf(1, 0, 1)).toEqual(['maybe vanished'])
  for (const [before, after] of [
    [2, 3],
    [0, 4],
    [3, 1],
    [0, 3],
  ] as const)
    expect([before, after, changeOf(before, after)]).toEqual([before, after, []])
})

describe('the gate', () => {
  const answer = (by: number, limit: number, factors = NOISE) =>
    gateOf(compareRuns(side({}, factors), side({ by }, factors)), limit).answer

  test('within, worse, inconclusive', () => {
    expect(answer(1, 0.05)).toBe('within')
    expect(answer(0.8, 0.05)).toBe('within')
    expect(answer(1.2, 0.05)).toBe('worse')
    expect(answer(1.05, 0.05)).toBe('inconclusive')
  })

  test('agrees with the verdict of each figure', () => {
    for (const by of [1.04, 1.06, 1.08, 1.1, 1.12]) {
      const comparison = compareRuns(side(), side({ by }))
      const { answer } = gateOf(comparison, 0.001)
      const isNamed = comparison.effects.some(({ group, verdict }) => group === 'speed' && verdict === 'slower')
      expect([by, answer]).toEqual([by, isNamed ? 'worse' : 'inconclusive'])
    }
  })

  test('two runs a side, and sides that are not comparable, are inconclusive', () => {
    expect(answer(1.5, 0.05, [1, 1.01])).toBe('inconclusive')
    const other = side({ by: 2 }).runs.map((run) => ({ ...run, run: { ...run.run, workers: 7 } }))
    expect(gateOf(compareRuns(side(), { name: 'b', runs: other }), 0.05)).toMatchObject({
      answer: 'inconclusive',
      why: expect.stringMatching(/workers: 2 and 7/),
    })
  })
})
