import { readdirSync } from 'node:fs'
import { beforeAll, expect, test } from '@jest/globals'
import type { KernelTimes, WhatIf } from '../../lib/analysis.ts'
import { at, run, useFolder } from '../cli/helpers.ts'
import { ensureLlama, hasLlama, LIB, model, runner } from '../llama/testbed.ts'

/** Measures ggml's own products of a run that is recorded here, and predicts by them. */

const llamaTest = hasLlama() ? test : test.skip
useFolder()
beforeAll(async () => {
  process.env['XDG_CACHE_HOME'] = at('cache')
  if (hasLlama()) await ensureLlama()
})

/** Beside other programs, products of the run may take more than 2.5 times those that are measured. */
const BY_PRODUCTS =
  /8 of 8 kinds of products by what ggml's own take with q8_0, 1 thread|the calibration does not apply: products of the run take/

/** What a prediction rests on; undefined where other programs disturb the run so much that there is none. */
function basisOf(log: string, type: string): string | undefined {
  const { basis, tpot_ns } = JSON.parse(run(['what-if', log, '--type', type, '--json']).stdout) as WhatIf
  if (tpot_ns.why === null) return basis.join()
  expect(tpot_ns.why).toMatch(/differ by more than half of their time/)
  return undefined
}

llamaTest(
  'peaks --types measures the products of a log with its ggml, keeps them, and what-if predicts by them',
  async () => {
    const shape = { layers: 2, width: 256, feedForward: 512, heads: 4, kvHeads: 2, vocabulary: 512, context: 512 }
    const { path } = await model({ name: 'what-if', ...shape, weights: 'Q4_0' })
    const log = at('run.ggtrace')
    const args = ['--lib', LIB, '--model', path, '--threadpool', '--prompt', '48', '--decode', '40']
    const recorded = run(['record', '-o', log, '--', await runner(), ...args])
    expect(recorded.code).toBe(0)
    expect(basisOf(log, 'q8_0') ?? 'without calibration').toContain('without calibration')
    const types = ['--types', 'q8_0']
    const { stdout, stderr, code } = run(['peaks', log, ...types, '--json'])
    expect(code).toBe(0)
    expect(stderr).toMatch(/measuring \d+ products, about \d+ s/)
    const { products, attention = [], nodes, schema } = JSON.parse(stdout) as KernelTimes
    expect([schema, nodes.map(({ threads }) => threads)]).toEqual(['ggml2perfetto.kernels/1', [1]])
    for (const type of ['q4_0', 'q8_0']) {
      const own = products.filter((product) => product.type === type)
      expect(new Set(own.map(({ tokens }) => tokens))).toEqual(new Set([1, 48]))
      expect(new Set(own.map(({ columns, rows }) => `${columns} ${rows}`))).toEqual(
        new Set(['256 256', '256 128', '256 512', '512 256']),
      )
      for (const { ns, second_ns, best_ns } of own)
        expect([best_ns > 0, ns >= best_ns, second_ns! >= ns]).toEqual([true, true, true])
    }
    // A decode call in the middle, and the prompt.
    expect(attention.map(({ tokens, context }) => [tokens, context > 0])).toEqual([
      [1, true],
      [48, false],
    ])
    for (const { heads, kv_heads, head_size, k_type, ns, best_ns } of attention)
      expect([heads, kv_heads, head_size, k_type, ns >= best_ns && best_ns > 0]).toEqual([4, 2, 64, 'f16', true])
    expect(
      readdirSync(at('cache/ggml2perfetto')).filter((name) => /^kernels-[0-9a-f]{16}\.json$/.test(name)),
    ).toHaveLength(1)
    const after = basisOf(log, 'q8_0')
    if (after !== undefined) expect(after).toMatch(BY_PRODUCTS)
    const ofThree = run(['peaks', log, '--types', 'q4_0', '--batch', '3', '--json'])
    const several = (JSON.parse(ofThree.stdout) as KernelTimes).attention!.filter(({ sequences }) => sequences)
    expect(several.map(({ tokens, sequences, cache }) => [tokens, sequences, cache])).toEqual([[3, 3, 256]])
    const text = run(['peaks', log, '--types', 'q4_0', '--threads', '1'])
    expect(text.stdout).toMatch(/\n {2}q4_0 256 × 512 +\w+ +1 +1 +/)
    const missing = run(['peaks', log, '--types', 'q8_0', '--ggml', at('nothing')])
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot load libggml-base.so[\s\S]*hint: --ggml/),
    ])
    const unknown = run(['peaks', log, '--types', 'iq2_xxs'])
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/without an importance matrix: iq2_xxs/)])
  },
)

llamaTest('peaks --types measures weights in the memory of those of the run', async () => {
  const shape = { layers: 2, width: 256, feedForward: 512, heads: 4, kvHeads: 2, vocabulary: 512, context: 512 }
  const { path } = await model({ name: 'what-if', ...shape, weights: 'Q4_0' })
  const buffersOf = async (...options: string[]) => {
    const log = at(`memory${options.length}.ggtrace`)
    const args = ['--lib', LIB, '--model', path, '--threadpool', '--prompt', '16', '--decode', '24', ...options]
    expect(run(['record', '-o', log, '--', await runner(), ...args]).code).toBe(0)
    const { products } = JSON.parse(run(['peaks', log, '--types', 'q4_0', '--json']).stdout) as KernelTimes
    return new Set(products.filter(({ type }) => type === 'q4_0').map(({ buffer }) => buffer)) // with those of earlier logs
  }
  const usual = await buffersOf()
  expect(usual).not.toContain('CPU')
  expect(await buffersOf('--no-repack')).toContain('mapped file')
  expect(await buffersOf('--no-repack', '--no-mmap')).toContain('CPU')
})

llamaTest('peaks --types measures products of experts, of as many as in the run and of others', async () => {
  const shape = { layers: 2, width: 256, feedForward: 256, heads: 4, kvHeads: 2, vocabulary: 512, context: 512 }
  const { path } = await model({ name: 'experts', ...shape, experts: 8, expertsUsed: 2, weights: 'Q4_0' })
  const log = at('experts.ggtrace')
  const args = ['--lib', LIB, '--model', path, '--threadpool', '--prompt', '16', '--decode', '24']
  expect(run(['record', '-o', log, '--', await runner(), ...args]).code).toBe(0)
  const { stdout, code } = run(['peaks', log, '--types', 'q4_0', '--experts', '4', '--json'])
  expect(code).toBe(0)
  const { products } = JSON.parse(stdout) as KernelTimes
  const ofExperts = products.filter(({ experts }) => experts === 8)
  expect(new Set(ofExperts.map(({ used, tokens }) => `${used} ${tokens}`))).toEqual(
    new Set(['2 1', '2 16', '4 1', '4 16']),
  )
  for (const { ns, best_ns } of ofExperts) expect([best_ns > 0, ns >= best_ns]).toEqual([true, true])
})
