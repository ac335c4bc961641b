import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { type Analysis, analyze } from '../../lib/index.ts'
import { askDevices } from '../../lib/node/record/ask.ts'
import { inputOf } from '../../lib/node.ts'
import type { ModelSpec } from '../llama/gguf.mjs'
import { hasLlama, model, run } from '../llama/testbed.ts'
import { newLog, RECORDER, useRecorder } from './recording.ts'

/** Which weights llama.cpp repacks on this CPU, and why not others, against what it reports itself. */

const llama = hasLlama() ? describe : describe.skip

/** The rows of the output are no multiple of 4, 8, 16 or 32. */
const ODD: ModelSpec = { layers: 2, width: 256, feedForward: 512, heads: 4, kvHeads: 2, vocabulary: 1002, context: 256 }

async function record(args: readonly string[] = []) {
  const { path } = await model(ODD)
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const options = ['--threads', '2', '--decode', '2', ...args]
  const plain = await run(path, [...options, '--verbose'])
  const result = await run(path, options, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
  expect([result.code, result.result?.hash]).toEqual([0, plain.result?.hash])
  await askDevices(log, RECORDER, process.env)
  const { weight_memory } = await analyze(inputOf(log))
  const has = (name: string) => new RegExp(` ${name} model buffer size`).test(plain.stderr)
  return {
    ...weight_memory!,
    has,
    of: (role: string) => weight_memory!.rows.find(({ roles }) => roles.includes(role))!,
  }
}

type Row = NonNullable<Analysis['weight_memory']>['rows'][number]

const isRepacked = ({ reason }: Row) => reason === 'repacked'

llama('memory of weights (needs linux-x64 and cc)', () => {
  useRecorder()

  test('products are repacked where the CPU can; a weight with an odd number of rows is not, and why', async () => {
    const { repacking, rows, has, of } = await record()
    expect(rows.filter(isRepacked).map(({ buffer }) => buffer)).toEqual(repacking.filter(has))
    expect(rows.filter(({ reason }) => reason === 'unknown')).toEqual([])
    expect(of('attn_norm.weight')).toMatchObject({ type: 'f32', tensors: 5, bytes: 5 * 256 * 4 })
    // Without AVX2, no memory takes any of them.
    if (!isRepacked(of('ffn_up.weight'))) return
    const output = of('output.weight')
    expect([output.reason, output.op, output.tensors]).toEqual(['refused', 'MUL_MAT', 1])
    expect(output.refused_by.map(({ memory }) => memory)).toEqual(repacking)
    for (const { decided } of output.refused_by) expect(decided).toMatch(/^1002 rows \(it takes (1008|1024)\)$/)
    expect(of('token_embd.weight')).toMatchObject({ reason: 'refused', op: 'GET_ROWS' })
  })

  test('--no-repack: the program asks for no such memory', async () => {
    const { repacking, rows } = await record(['--no-repack'])
    expect(repacking).toEqual([])
    const reasons = rows.map(({ reason, detail }) => `${reason}: ${detail}`)
    expect(new Set(reasons)).toEqual(new Set(['not-asked: --no-repack']))
  })
})
