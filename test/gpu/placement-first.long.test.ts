import { mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from '@jest/globals'
import type { Analysis, Finding } from '../../lib/index.ts'
import { run, useFolder } from '../cli/helpers.ts'
import { FIRST } from '../first.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import { cudaEnvironment, hasLlama, LIB, model, runner } from '../llama/testbed.ts'
import { newLog } from '../native/recording.ts'
import { BED, type Environment, useBed } from './recording.ts'

/**
 * Models of which CUDA's real backend (README.md) computes a part only: `record` and `why` first name where the rest is, and no launches, for which
 * the GPU waits, too. Wholly on a GPU, it is the launches that such small models wait for.
 */

useFolder()
const SMALL: ModelSpec = {
  ...{ layers: 8, width: 256, feedForward: 512, heads: 4, kvHeads: 2, vocabulary: 1400, context: 512 },
}
const WIDE: ModelSpec = { ...SMALL, width: 512, feedForward: 2048, heads: 8 }
const MOE: ModelSpec = { ...WIDE, feedForward: 1024, experts: 8, expertsUsed: 2 }
const ALL = ['--gpu-layers', '99']

const linux = hasLlama() ? test : test.skip

function printed(args: readonly string[]): string {
  const { code, stdout } = run(args)
  expect(code).toBe(0)
  return stdout
}

async function recorded(spec: ModelSpec, args: readonly string[], env: Environment) {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const { path } = await model(spec)
  readFileSync(path) // from here on it is in the page cache
  const program = [await runner(), '--lib', LIB, '--model', path, '--threads', '1', '--prompt', '8', '--decode', '30']
  const { code, stderr } = run(['record', '-o', log, '--', ...FIRST, ...program, ...args], {
    env: { ...cudaEnvironment(BED), ...env },
  })
  expect([code, stderr]).toEqual([0, expect.stringContaining(`wrote ${log}`)])
  const why = JSON.parse(printed(['why', log, '--json'])) as Finding[]
  const { gpu } = JSON.parse(printed(['stats', log, '--json'])) as Analysis
  const last = stderr.split('\n').find((line) => line.startsWith('why: '))!
  return { why, last, gpu: gpu! }
}

useBed()

linux.each<readonly [string, ModelSpec, readonly string[], Environment, string, RegExp]>([
  [
    '5 of 8 layers on the CPU',
    WIDE,
    ['--gpu-layers', '4'],
    {},
    'layers-on-cpu',
    /^5 layers of 8 \(0–4\) are on the CPU although CUDA0 was there /,
  ],
  [
    'experts on the CPU',
    MOE,
    [...ALL, '--on-cpu', 'ffn_.*_exps'],
    {},
    'moved-operators',
    /^MUL_MAT_ID of 8 layers runs on the CPU: 8 of 18 splits, /,
  ],
  [
    'the output matrix on the CPU',
    { ...WIDE, vocabulary: 32_000 },
    [...ALL, '--on-cpu', '^output.weight'],
    {},
    'divided-model',
    /^\d+ % of decode waits for CUDA0, \d+ % computes on the CPU: /,
  ],
  [
    'two GPUs by layers',
    { ...WIDE, weights: 'F16' },
    ALL,
    { BED_DEVICES: '2' },
    'gpu-turns',
    /^GPU 1 waits for GPU 0 \d+ % of the time, GPU 0 for GPU 1 \d+ %: layers 0–4 are on CUDA0, 5–7 on CUDA1$/,
  ],
  [
    'all on one GPU, kernel by kernel',
    SMALL,
    ALL,
    { GGML_CUDA_DISABLE_GRAPHS: '1' },
    'gpu-launches',
    /^GPU 0 waits for launches \d+ % of the time: /,
  ],
])('%s (needs linux-x64, cc, c++ and make)', async (_, spec, args, env, rule, sentence) => {
  const { why, last, gpu } = await recorded(spec, args, env)
  expect([why[0]!.rule, why[0]!.sentence]).toEqual([rule, expect.stringMatching(sentence)])
  expect(last.slice('why: '.length)).toMatch(sentence)
  expect(why.filter((finding) => finding.rule === 'gpu-launches').length).toBe(rule === 'gpu-launches' ? 1 : 0)
  for (const { calls } of gpu.devices) {
    // What a GPU waits for while it is idle: each time once.
    const sum = calls!.host_wait!.reduce((total, { time_ns }) => total + time_ns, 0)
    expect(sum).toBeCloseTo(calls!.idle!.host_wait.time_ns, -2)
  }
})
