import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { summarize } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { installed } from '../../scripts/headline-figures/npm.mjs'
import { hasLlama, model } from '../llama/testbed.ts'
import { expectSameTimes, newLog, RECORDER, readLog, useRecorder } from './recording.ts'

/** A host that contains llama.cpp itself, whose C functions are bound inside it: @fugood/llama.node of npm. */

const HOST = fileURLToPath(new URL('../../scripts/headline-figures/fugood.cjs', import.meta.url))
const llama = hasLlama() ? describe : describe.skip

llama('@fugood/llama.node (needs linux-x64, npm)', () => {
  useRecorder()
  let folder: string | undefined
  beforeAll(async () => {
    folder = await installed('@fugood/llama.node').catch(() => undefined)
  })

  async function recorded() {
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const env = { ...process.env, LD_PRELOAD: RECORDER, GGML2PERFETTO_OUT: log }
    const { path } = await model('tinyDense')
    const { stdout, status } = spawnSync(process.execPath, [HOST, folder!, path], { env, encoding: 'utf8' })
    expect(status).toBe(0)
    return { log, timings: JSON.parse(/^\{"prompt_n".*$/m.exec(stdout)![0]) as Record<string, number> }
  }

  test('its warm-up is one, by the clearing of the memory after it; its prompt takes as long as it says', async () => {
    if (folder === undefined) return console.warn('not tested: npm does not provide @fugood/llama.node')
    await expectSameTimes(async () => {
      const { log, timings } = await recorded()
      const calls = (await readLog(log)).of('token').sort((a, b) => a.startNs - b.startNs)
      expect(calls.slice(0, 3).map(({ phase, tokens }) => `${phase} ${tokens}`)).toEqual([
        'warm-up 2',
        `prefill ${timings['prompt_n']}`,
        'decode 1',
      ])
      return [(await summarize(inputOf(log))).calls.ttft_ns! / 1e6 / timings['prompt_ms']!]
    }, 0.05)
  })
})
