import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { cudaEnvironment, hasLlama, LIB, model, runLeaving } from '../llama/testbed.ts'
import { newLog, RECORDER, readLog } from '../native/recording.ts'
import { BED, type Environment, useBed } from './recording.ts'

/** A real program whose callbacks leave llama_decode while llama.cpp's CUDA backend computes: what the device does is of the right calls. */

const LEFT = -0x8000_0000
const WAYS = ['call', 'call', 'throw', 'call', 'jump', 'deep-call', 'deep-throw', 'call', 'deep-jump', 'deep-call']
const ABORTS = ['call', 'call', 'abort', 'call', 'deep-call', 'deep-abort', 'call']
const NO_EVALUATION = { LEAVING_WITHOUT_EVALUATION: '1' }

const cuda = hasLlama() ? describe : describe.skip

cuda('calls on CUDA that are left, on a GPU that does not exist (needs linux-x64, cc, c++ and make)', () => {
  useBed()

  const record = async (steps: readonly string[], env: Environment) => {
    const { path } = await model('tinyDense')
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const list = join(dirname(log), 'list.jsonl')
    const host = { ...cudaEnvironment(BED), LEAVING_GPU_LAYERS: '99', ...env }
    const plain = await runLeaving([LIB, path, ...steps], { env: host })
    const traced = { ...host, GGML2PERFETTO_OUT: log, BED_LOG: list }
    const run = await runLeaving([LIB, path, ...steps], { env: traced, preload: RECORDER })
    const outcome = ({ code, stderr, calls, failed }: typeof run) => [code, stderr, calls.length, failed.length]
    expect(outcome(run)).toEqual(outcome(plain))
    const listed = readFileSync(list, 'utf8').trimEnd().split('\n').length
    return { log, listed, recording: await readLog(log) }
  }

  test.each<readonly [how: string, steps: readonly string[], env: Environment]>([
    ['by the eval callback', WAYS, {}],
    ['by the eval callback, without CUDA graphs', WAYS, { GGML_CUDA_DISABLE_GRAPHS: '1' }],
    ['by the eval callback, with two devices', WAYS, { BED_DEVICES: '2' }],
    ['by the abort callback of layers on the CPU', ABORTS, { ...NO_EVALUATION, LEAVING_GPU_LAYERS: '3' }],
  ])('%s: calls, graph runs and kernels are those of calls in peace', async (_, steps, env) => {
    const { log, listed, recording } = await record(steps, env)
    const { of, text } = recording
    const isWhole = steps.map((step) => step.endsWith('call'))
    expect(of('token').map(({ batch }) => batch!.result)).toEqual(isWhole.map((whole) => (whole ? 0 : LEFT)))
    expect(of('gpu').length).toBe(listed)

    /** What the device did in a call: by node, in its order. The first calls fill caches, and capture graphs. */
    const workOf = (call: number) =>
      of('gpu')
        .filter((work) => work.call === call)
        .toSorted((a, b) => a.startNs - b.startNs)
        .map(({ what, name, node }) => [
          what,
          text(name),
          node?.tensor === undefined ? '' : text(recording.tensor(node.tensor).name),
        ])
    const graphsOf = (call: number) => of('graph').filter((run) => run.call === call).length
    const calls = steps.flatMap((_, call) => (isWhole[call] && call > 0 ? [call] : []))
    const [peaceful, ...others] = calls
    expect(workOf(peaceful!).length).toBeGreaterThan(50)
    for (const call of others) {
      expect(graphsOf(call)).toBe(graphsOf(peaceful!))
      expect(workOf(call)).toEqual(workOf(peaceful!))
    }
    for (const [call, whole] of isWhole.entries())
      if (!whole) expect(workOf(call).length).toBeLessThan(workOf(peaceful!).length)

    const { failures, issues } = await summarize(inputOf(log))
    const left = isWhole.filter((whole) => !whole).length
    expect(failures).toEqual([{ result: LEFT, meaning: 'left by an exception or longjmp', calls: left }])
    expect(issues.map(({ code, count }) => [code, count])).toEqual([['call-failed', left]])
  })

  test.each([
    ['around graph runs', {}],
    ['around nodes', { GGML2PERFETTO_GPU_EVENTS: '1' }],
  ])('times by events %s: each is of its call', async (_, more) => {
    const { recording } = await record(WAYS, { BED_FAULT: 'busy-cupti', ...more })
    const { of } = recording
    expect(of('token').map(({ batch }) => batch!.result)).toEqual(
      WAYS.map((step) => (step.endsWith('call') ? 0 : LEFT)),
    )
    const spans = (call: number) => of('gpu').filter((span) => span.call === call).length
    for (const call of [3, 5, 7, 9]) expect([call, spans(call)]).toEqual([call, spans(1)])
    expect(spans(1)).toBeGreaterThan(0)
  })
})
