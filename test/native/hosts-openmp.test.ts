import { beforeAll, describe, expect, test } from '@jest/globals'
import { canBuild, OPENMP, ownCpu } from '../llama/own-cpu.ts'
import { ensureLlama, model } from '../llama/testbed.ts'
import { expectCalls, expectTrace, NANO_MOE, readLog, recordHosts, useRecorder } from './recording.ts'

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
})
