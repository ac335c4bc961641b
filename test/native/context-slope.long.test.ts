import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, test } from '@jest/globals'
import { analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import { ensureLlama, hasLlama, model, run } from '../llama/testbed.ts'
import { newLog, RECORDER, useRecorder } from './recording.ts'
import '../live.ts'

/** What the log of a real run with a growing context contains: of its model, and what grows in it. */

/** Attention is most of its time once the context is long: its other products are small, its heads many. */
const ATTENTIVE = { layers: 2, width: 256, feedForward: 64, heads: 8, kvHeads: 8, vocabulary: 260, context: 2048 }
const [PROMPT, DECODE] = [8, 1800]
const llamaTest = hasLlama() ? test : test.skip

if (hasLlama()) useRecorder()

llamaTest(
  'a run with a growing context: attention is what TPOT grows by, and the weights are those of the file',
  async () => {
    await ensureLlama()
    const file = await model(ATTENTIVE)
    const log = newLog()
    mkdirSync(dirname(log), { recursive: true })
    const args = ['--prompt', `${PROMPT}`, '--decode', `${DECODE}`, '--threadpool']
    const { code } = await run(file.path, args, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
    expect(code).toBe(0)

    const { run: facts, calls } = await analyze(inputOf(log))
    const bytes = file.tensors.reduce((sum, { size }) => sum + size, 0)
    expect([facts.parameters, facts.weights!.reduce((sum, { bytes }) => sum + bytes, 0)]).toEqual([
      file.parameters,
      bytes,
    ])
    expect(facts).toMatchObject({ model_files: [file.path], layers: 2, workers: 1, level: 'op', architecture: null })
    expect(Object.fromEntries(facts.weights!.map(({ type, tensors }) => [type.toUpperCase(), tensors]))).toEqual({
      F32: file.tensors.filter(({ type }) => type === 'F32').length,
      Q4_0: file.tensors.filter(({ type }) => type === 'Q4_0').length,
    })

    const { slope } = calls
    expect(slope).toMatchObject({
      ...{ points: DECODE - 1, left_out: 1, from_tokens: PROMPT + 1, to_tokens: PROMPT + DECODE - 1 },
      ...{ positions: 'recorded', sequences_max: 1 },
    })
    const { call, parts, points } = slope!.operators!
    expect(points).toBe(DECODE - 1)
    expect(parts.reduce((sum, part) => sum + part.ms_per_1000_tokens, 0)).toBeCloseTo(call.ms_per_1000_tokens, 9)
    const [most] = parts
    expect(most).toMatchObject({ op: 'FLASH_ATTN_EXT', block: 'attention' })
    // Five standard errors: not by chance, on a busy machine either.
    expect(most!.ms_per_1000_tokens).toBeGreaterThan(5 * most!.standard_error_ms)
    expect(most!.ms_per_1000_tokens).toBeGreaterThan(0.5 * call.ms_per_1000_tokens)
  },
)
