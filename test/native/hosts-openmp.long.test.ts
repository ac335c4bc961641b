import { beforeAll, describe, expect, test } from '@jest/globals'
import { lookedAt, RULES } from '../../lib/analysis.ts'
import { analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { canBuild, OPENMP, ownCpu } from '../llama/own-cpu.ts'
import { ensureLlama, model } from '../llama/testbed.ts'
import { CPUS } from '../machine.ts'
import { perfTest } from './as-user.ts'
import { expectCalls, expectTrace, NANO_MOE, readLog, recordHosts, useRecorder } from './recording.ts'
import '../live.ts'

/** A ggml with OpenMP: the threads are libgomp's, are not ended between graphs, and wait at its barriers. */
const openmp = canBuild(OPENMP) ? describe : describe.skip

openmp('OpenMP (needs c++ with -fopenmp)', () => {
  useRecorder()
  let lib = ''
  beforeAll(async () => {
    await ensureLlama()
    lib = await ownCpu(OPENMP)
  })

  /** Five calls on so many workers. They sleep at barriers, so that many of them do not slow each other down. */
  const recordCalls = async (workers: number) => {
    const { path } = await model(NANO_MOE)
    const steps = ['load', 0, path, 'open', 0, workers, 'decode', 0, 5, 'close', 0, 'exit', 3]
    const { log, result } = await recordHosts(steps, {
      lib,
      env: { OMP_WAIT_POLICY: 'passive', GGML2PERFETTO_STATES: '0' },
    })
    const recording = await readLog(log)
    expect([result.code, recording.issues]).toEqual([3, []])
    expect(new Set(recording.of('operator').map(({ tid }) => tid)).size).toBe(workers)
    await expectTrace(log, recording)
    return { recording, calls: result.calls }
  }

  // Its threads are alive when the program ends: what they did last is written for them.
  test.each([2, 64])('%i workers: each operator of each call, on each of them', async (workers) => {
    const { recording, calls } = await recordCalls(workers)
    expectCalls(recording, calls, () => workers)
    const waits = recording.of('operator').filter(({ endNs, waitEndNs }) => waitEndNs > endNs)
    expect(waits.length).toBeGreaterThan(100)
  })

  /** The analysis of calls on so many workers, with states of threads. */
  const analysed = async (workers: number, env: Record<string, string>) => {
    const { path } = await model(NANO_MOE)
    const steps = ['load', 0, path, 'open', 0, workers, 'decode', 0, 40, 'close', 0, 'exit', 3]
    return await analyze(inputOf((await recordHosts(steps, { lib, env })).log))
  }

  // A barrier of libgomp blocks workers within operators, too.
  perfTest.each(['', 'major-faults'])(
    'workers that are blocked wait for no page (counters: "%s")',
    async (counters) => {
      const analysis = await analysed(CPUS.length + 2, { GGML2PERFETTO_COUNTERS: counters })
      expect(analysis.findings.filter(({ rule }) => rule === 'page-faults')).toEqual([])
      expect(analysis.findings.filter(({ sentence }) => /waits for pages|as page faults/.test(sentence))).toEqual([])
      const figures = lookedAt(analysis).find(({ rule }) => rule === 'blocked-workers')!.figures
      expect(figures.length).toBeGreaterThan(0)
      for (const { figure } of figures)
        expect(figure).toMatch(
          /(?:in operators \(|mostly all at once \(stopped, )barrier or lock: [\d.]+ major page faults a call\)/,
        )
    },
  )

  const twoCpus = CPUS.length > 1 ? perfTest : test.skip
  twoCpus('threads that sleep at barriers: by the variable that makes them (needs two CPUs)', async () => {
    const passive = await analysed(2, { OMP_WAIT_POLICY: 'passive' })
    // On a busy machine, what takes the CPUs is named instead: the rule itself is asked.
    const rule = RULES.find(({ id }) => id === 'passive-waiting')!
    const [finding] = rule.look(passive).flatMap(({ finding }) => finding ?? [])
    expect(finding!.sentence).toMatch(/waiting at barriers, with OMP_WAIT_POLICY=passive: workers sleep there \d+ % /)
    expect(finding!.evidence['asleep_share']).toBeGreaterThan(0.05)
    const active = await analysed(2, { OMP_WAIT_POLICY: 'active' })
    expect(active.findings.filter(({ rule }) => rule === 'passive-waiting')).toEqual([])
  })
})
