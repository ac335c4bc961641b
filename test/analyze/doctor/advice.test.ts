import { expect, test } from '@jest/globals'
import { analyze } from '../../../lib/analysis.ts'
import { adviceFor, judgedRun } from '../../../lib/analyze/doctor/advice.ts'
import { sweep } from '../../../lib/analyze/scaling/sweep.ts'
import { inputOf } from '../../../lib/node.ts'
import { runOfCalls } from '../../cli/runs.ts'

const WITH_SERIES = { series: ['calls', 'steps'] } as const

/** Runs with 1, 2 and 4 threads, whose decode calls take so long. */
const runsOf = (ms: readonly [number, number, number]) =>
  Promise.all(
    [1, 2, 4].map(async (threads, i) => ({
      value: `${threads}`,
      analysis: await analyze({ name: `t${threads}`, source: runOfCalls(100 + i, ms[i]!) }, WITH_SERIES),
    })),
  )

test('another number of threads than the usual one: what it gives was measured', async () => {
  const runs = await runsOf([30, 10, 15])
  const swept = sweep(runs)
  const judged = judgedRun(runs, swept)
  expect(judged.value).toBe('2')
  const [first] = adviceFor(judged.analysis, swept, 4, {})
  expect(first).toMatchObject({ rule: null, by: 'measured', explains_share: null })
  expect(first!.sentence).toMatch(/^decode is 50\.0 % faster with -t 2 than with -t 4/)
  expect(first!.gives).toEqual(['decode 66.7 → 100 tok/s'])
})

test('no advice about threads where the usual number is as fast as the best', async () => {
  const runs = await runsOf([30, 20, 10])
  const swept = sweep(runs)
  expect(judgedRun(runs, swept).value).toBe('4')
  expect(adviceFor(judgedRun(runs, swept).analysis, swept, 4, {}).filter(({ rule }) => rule === null)).toEqual([])
})

test('a finding that can be taken out has a prediction, others the time that they explain', async () => {
  const analysis = await analyze(inputOf('test/printed/logs/before.ggtrace.gz'), WITH_SERIES)
  const runs = [{ value: '2', analysis }]
  const advice = adviceFor(analysis, sweep(runs), 2, {})
  expect(advice.map(({ rule }) => rule)).toEqual([...new Set(analysis.findings.map(({ rule }) => rule))])
  const preempted = advice.find(({ rule }) => rule === 'preempted')!
  expect(preempted.by).toBe('predicted')
  expect(preempted.gives[0]).toMatch(/→/)
  expect(preempted.phase).toBe('decode')
  expect(preempted.explains_share).toBeGreaterThan(0)
  expect(preempted.explains_share).toBeLessThanOrEqual(1)
})

test('at the limit of the memory: what a smaller type and a batch would give', async () => {
  const log = 'test/printed/logs/after.ggtrace.gz'
  const { rooflines } = await analyze(inputOf(log), WITH_SERIES)
  const { bytes_per_s } = rooflines.find(({ scope, phase }) => scope === 'phase' && phase === 'decode')!
  // A machine whose memory this run uses up.
  const peaks = {
    ...{ device: null, flop_per_s: 1e14, flop_type: 'f32', int8_op_per_s: 1e14, bytes_per_s: 1.2 * bytes_per_s! },
    ...{ origin: 'given' as const, source: 'test' },
  }
  const analysis = await analyze(inputOf(log), { ...WITH_SERIES, peaks })
  const advice = adviceFor(analysis, sweep([{ value: '2', analysis }]), 2, {})
  const limit = advice.find(({ rule }) => rule === 'roofline')!
  expect([limit.by, limit.explains_share]).toEqual(['predicted', null])
  expect(limit.gives.at(-1)).toMatch(/^4 sequences at once: decode .* → /)
})
