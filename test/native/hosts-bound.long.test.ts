import { beforeAll, describe, expect, test } from '@jest/globals'
import { Inferred } from '../../lib/core.ts'
import { CLANG, canBuild, NO_INTERPOSITION, ownCpu, type Way } from '../llama/own-cpu.ts'
import { ensureLlama, hasLlama, model } from '../llama/testbed.ts'
import { NANO_MOE, readLog, recordHosts, useRecorder } from './recording.ts'

/** A ggml-cpu whose own calls do not pass the dynamic linker, all or some of them: times are right, or marked. */
const bound = hasLlama() ? describe : describe.skip
const WORKERS = 2

bound('a ggml-cpu of our own', () => {
  useRecorder()
  beforeAll(() => ensureLlama())

  const recordCalls = async (way: Way) => {
    const { path } = await model(NANO_MOE)
    const steps = ['load', 0, path, 'open', 0, WORKERS, 'decode', 0, 5, 'close', 0, 'exit', 3]
    const lib = await ownCpu(way)
    const { log, result } = await recordHosts(steps, { lib, env: { GGML2PERFETTO_STATES: '0' } })
    const recording = await readLog(log)
    expect([result.code, recording.issues]).toEqual([3, []])
    const facts = Object.assign({}, ...[...recording.of('input'), ...recording.of('facts')].map((e) => e.attributes))
    return { recording, calls: result.calls, facts: facts as Readonly<Record<string, string>> }
  }
  // gcc does the same with that flag; where there is clang, that is tried.
  const way = canBuild(CLANG) ? CLANG : NO_INTERPOSITION

  test(`by ${way.cc}: barriers are inlined, so ends are inferred; no node is missing`, async () => {
    const { recording, calls, facts } = await recordCalls(way)
    expect(facts['operators.end']).toMatch(/^inferred/)
    const { of } = recording
    const operators = of('operator')
    expect(operators.every(({ inferred }) => (inferred & Inferred.End) !== 0)).toBe(true)
    for (const graph of of('graph')) {
      const inside = operators.filter(({ startNs, endNs }) => startNs >= graph.startNs && endNs <= graph.endNs)
      const ofWorker = (ith: number) => inside.filter(({ worker }) => worker === ith)
      for (const worker of [0, 1]) {
        const mine = ofWorker(worker)
        expect(mine.length).toBeGreaterThan(20)
        // One behind the other, without a gap, to the end of the graph.
        for (const [i, { endNs }] of mine.entries()) expect(endNs).toBe(mine[i + 1]?.startNs ?? graph.endNs)
      }
      expect(ofWorker(1).map(({ tensor }) => tensor)).toEqual(ofWorker(0).map(({ tensor }) => tensor))
    }
    expect(of('token').map(({ tokens }) => tokens)).toEqual(calls.map(({ tokens }) => tokens))
  })
})
