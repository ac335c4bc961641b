import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { inputOf } from '../../lib/node.ts'
import type { Preset } from '../llama/gguf.mjs'
import { ensureLlama, hasLlama, model, run, vulkanEnvironment } from '../llama/testbed.ts'
import { inParts, someOf } from '../long.ts'
import { expectPossible, livesIn, memoryOf } from '../timeline/lives.ts'
import { newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** What ggml's allocator really did, as lifetimes: possible at every instant, for dense and MoE models. */

async function record(preset: Preset, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const { path } = await model(preset)
  const options = { preload: RECORDER, env: { GGML2PERFETTO_OUT: log, ...env } }
  const { code, stderr } = await run(path, args, options)
  expect([code, stderr]).toEqual([0, ''])
  return log
}

/** Runs of graphs in a log: the first split of each. */
const runsIn = async (log: string) => (await readLog(log)).of('graph').filter(({ split }) => split === 0).length

const llama = hasLlama() ? describe : describe.skip
const vulkan = hasLlama() && vulkanEnvironment ? test : test.skip

llama('lifetimes in a recorded run of llama.cpp', () => {
  useRecorder()

  const RUNS: [Preset, string[], arenas: number][] = [
    ['tinyDense', ['--threads', '2', '--threadpool', '--prompt', '8', '--decode', '3'], 1],
    ['tinyDense', ['--threads', '2', '--prompt', '40', '--decode', '2', '--ubatch', '16'], 1],
    ['tinyMoe', ['--threads', '2', '--threadpool', '--prompt', '8', '--decode', '3', '--no-repack'], 1],
    ['tinyMoe', ['--threads', '2', '--prompt', '20', '--decode', '2', '--ubatch', '7', '--warmup'], 1],
    ['tinyMoe', ['--threads', '1', '--parallel', '3', '--prompt', '4', '--decode', '2'], 1],
    ['tinyDense', ['--threads', '1', '--contexts', '2', '--prompt', '4', '--decode', '3'], 2],
  ]

  inParts(test).each(someOf(RUNS, 3, 1))(
    '%s %j: no two live tensors share memory, all lie within the arena',
    async (preset, args, arenas) => {
      const log = await record(preset, args)
      const lines = await memoryOf(inputOf(log).source)
      expect(Object.keys(expectPossible(lines))).toHaveLength(arenas)
      const lives = livesIn(lines)
      const runs = await runsIn(log)
      expect(runs).toBeGreaterThan(2)
      // Once in each run, in the way that llama.cpp builds its graphs; logits where any are wanted.
      const times = (name: string) => lives.filter(({ tensor }) => tensor === name).length
      expect([times('inp_tokens'), times('embd'), times('ffn_inp-0')]).toEqual([runs, runs, runs])
      expect(times('result_output')).toBeGreaterThan(0)
      // Everything that is computed is read, but for what the host fetches, and what is left of a graph without outputs.
      const unread = lives.filter(({ inferred }) => inferred?.includes('last read'))
      expect(new Set(unread.map(({ tensor }) => tensor.replace(/\d+$/, '')))).toEqual(
        new Set(args.includes('--ubatch') ? ['attn_out-'] : []),
      )
    },
  )

  vulkan('of which layers are computed elsewhere: the CPU keeps what is copied until then', async () => {
    await ensureLlama({ vulkan: true })
    const args = [
      '--threads',
      '2',
      '--threadpool',
      '--prompt',
      '3',
      '--decode',
      '2',
      '--no-repack',
      '--gpu-layers',
      '2',
    ]
    const log = await record('tinyDense', args, { ...vulkanEnvironment })
    const lines = await memoryOf(inputOf(log).source)
    expectPossible(lines)
    const lives = livesIn(lines)
    expect(lives.length).toBeGreaterThan(100)
  })
})
