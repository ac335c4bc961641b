import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { cudaEnvironment, ensureLlama, hasLlama, LIB, model, runLeaving, vulkanEnvironment } from '../llama/testbed.ts'
import { inFolder, newLog, RECORDER, type Recording, readLog, useRecorder } from '../native/recording.ts'
import { BED, type Environment, useBed } from './recording.ts'

/** A real program whose callbacks leave llama_decode while llama.cpp's CUDA backend computes: what the device does is of the right calls. */

const LEFT = -0x8000_0000

/** A copy: where another test has a return probe on a function of the recorder's file, no exception gets past that function, in any process. */
function ownRecorder(): string {
  const path = inFolder('own-recorder.so')
  copyFileSync(RECORDER, path)
  return path
}

const WAYS = ['call', 'call', 'throw', 'call', 'jump', 'deep-call', 'deep-throw', 'call', 'deep-jump', 'deep-call']
const ABORTS = ['call', 'call', 'abort', 'call', 'deep-call', 'deep-abort', 'call']
const NO_EVALUATION = { LEAVING_WITHOUT_EVALUATION: '1' }

/** Runs the program with and without the recorder, to the same end, and reads the log. */
async function record(steps: readonly string[], env: Environment) {
  const { path } = await model('tinyDense')
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const list = join(dirname(log), 'list.jsonl')
  const host = { LEAVING_GPU_LAYERS: '99', ...env }
  const plain = await runLeaving([LIB, path, ...steps], { env: host })
  const traced = { ...host, GGML2PERFETTO_OUT: log, BED_LOG: list }
  const run = await runLeaving([LIB, path, ...steps], { env: traced, preload: ownRecorder() })
  const outcome = ({ code, stderr, calls, failed }: typeof run) => [code, stderr, calls.length, failed.length]
  expect(outcome(run)).toEqual(outcome(plain))
  return { log, list, recording: await readLog(log) }
}

const isWhole = (step: string) => step.endsWith('call')
const resultsOf = (steps: readonly string[]) => steps.map((step) => (isWhole(step) ? 0 : LEFT))

/** The same graph runs and work of devices in each whole call behind the first one, which fills caches, and captures graphs. */
function expectPeace(steps: readonly string[], { of, text, tensor }: Recording): void {
  expect(of('token').map(({ batch }) => batch!.result)).toEqual(resultsOf(steps))
  const workOf = (call: number) =>
    of('gpu')
      .filter((work) => work.call === call)
      .toSorted((a, b) => a.startNs - b.startNs)
      .map(({ what, name, node }) => [what, text(name), node && text(tensor(node.tensor).name)])
  const graphsOf = (call: number) => of('graph').filter((run) => run.call === call).length
  const [peaceful, ...others] = steps.flatMap((step, call) => (isWhole(step) && call > 0 ? [call] : []))
  expect(workOf(peaceful!).length).toBeGreaterThan(50)
  for (const call of others) {
    expect(graphsOf(call)).toBe(graphsOf(peaceful!))
    expect(workOf(call)).toEqual(workOf(peaceful!))
  }
  for (const [call, step] of steps.entries())
    if (!isWhole(step)) expect(workOf(call).length).toBeLessThan(workOf(peaceful!).length)
}

const cuda = hasLlama() ? describe : describe.skip

cuda('calls on CUDA that are left, on a GPU that does not exist (needs linux-x64, cc, c++ and make)', () => {
  useBed()

  test.each<readonly [how: string, steps: readonly string[], env: Environment]>([
    ['by the eval callback', WAYS, {}],
    ['by the eval callback, without CUDA graphs', WAYS, { GGML_CUDA_DISABLE_GRAPHS: '1' }],
    ['by the eval callback, with two devices', WAYS, { BED_DEVICES: '2' }],
    ['by the abort callback of layers on the CPU', ABORTS, { ...NO_EVALUATION, LEAVING_GPU_LAYERS: '3' }],
  ])('%s: calls, graph runs and kernels are those of calls in peace', async (_, steps, env) => {
    const { log, list, recording } = await record(steps, { ...cudaEnvironment(BED), ...env })
    expect(recording.of('gpu').length).toBe(readFileSync(list, 'utf8').trimEnd().split('\n').length)
    expectPeace(steps, recording)
    const { failures, issues } = await summarize(inputOf(log))
    const left = steps.filter((step) => !isWhole(step)).length
    expect(failures).toEqual([{ result: LEFT, meaning: 'left by an exception or longjmp', calls: left }])
    expect(issues.map(({ code, count }) => [code, count])).toEqual([['call-failed', left]])
  })

  test.each([
    ['around graph runs', {}],
    ['around nodes', { GGML2PERFETTO_GPU_EVENTS: '1' }],
  ])('times by events %s: each is of its call', async (_, more) => {
    const { recording } = await record(WAYS, { ...cudaEnvironment(BED), BED_FAULT: 'busy-cupti', ...more })
    const { of } = recording
    expect(of('token').map(({ batch }) => batch!.result)).toEqual(resultsOf(WAYS))
    const spans = (call: number) => of('gpu').filter((span) => span.call === call).length
    for (const call of [3, 5, 7, 9]) expect([call, spans(call)]).toEqual([call, spans(1)])
    expect(spans(1)).toBeGreaterThan(0)
  })
})

const vulkan = hasLlama() && vulkanEnvironment ? describe : describe.skip

vulkan('calls on Vulkan that are left (needs linux-x64, cc, c++ and mesa-vulkan-drivers)', () => {
  useRecorder()

  test('by the eval callback: graph runs and work of the device are those of calls in peace', async () => {
    await ensureLlama({ vulkan: true })
    const { recording } = await record(WAYS, vulkanEnvironment || {})
    expectPeace(WAYS, recording)
  })
})
