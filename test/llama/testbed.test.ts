import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { layoutOf, type Preset, presets, writeModel } from './gguf.mjs'
import { ensureLlama, hasLlama, model, run, runNode } from './testbed.ts'

/** Proves the test bed itself: what the recorder's tests build on. */

const llamaTest = hasLlama() ? test : test.skip
const tiny: readonly Preset[] = ['tinyDense', 'tinyMoe']

describe('models with random weights', () => {
  const small = {
    layers: 1,
    width: 64,
    feedForward: 96,
    heads: 2,
    kvHeads: 1,
    vocabulary: 300,
    context: 128,
    experts: 3,
    expertsUsed: 2,
  }

  test('are the same bytes for the same spec, others for another seed, and leave no temporary file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ggml2perfetto-test-'))
    try {
      const written = await writeModel(small, join(folder, 'a.gguf'))
      await writeModel(small, join(folder, 'b.gguf'))
      await writeModel({ ...small, seed: 2 }, join(folder, 'c.gguf'))
      const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => readFile(join(folder, `${name}.gguf`))))
      expect(a!.equals(b!)).toBe(true)
      expect(a!.equals(c!)).toBe(false)
      expect(a!.length).toBe(written.size)
      expect(c!.length).toBe(written.size)
      expect((await readdir(folder)).sort()).toEqual(['a.gguf', 'b.gguf', 'c.gguf'])
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('lie without holes: each tensor begins at the next multiple of 32', () => {
    const { head, tensors, size } = layoutOf(small)
    let next = head.length
    for (const tensor of tensors) {
      expect(tensor.offset).toBe(next)
      next = Math.ceil((tensor.offset + tensor.size) / 32) * 32
    }
    expect(size).toBe(next)
  })

  test('of a shape that llama.cpp cannot run are refused', async () => {
    await expect(writeModel({ ...small, width: 65 }, '/nowhere')).rejects.toThrow('width 65 is no multiple of 32')
    await expect(writeModel({ ...small, kvHeads: 3 }, '/nowhere')).rejects.toThrow('3 kvHeads do not divide 2 heads')
  })

  test('have the sizes that their names promise', () => {
    const parameters = (preset: Preset) => layoutOf(presets[preset]).parameters
    expect(parameters('tinyDense')).toBeLessThan(30e6)
    expect(parameters('tinyMoe')).toBeLessThan(80e6)
    expect(Math.round(parameters('big') / 1e8)).toBe(11)
    expect(Math.round(layoutOf(presets.big).size / 1e6)).toBe(620)
  })
})

describe('llama.cpp (needs linux-x64 and cc)', () => {
  beforeAll(async () => {
    if (hasLlama()) await ensureLlama()
  })

  llamaTest.each(tiny)('decodes %s, twice to the same bit, on one thread and on two', async (preset) => {
    const { path } = await model(preset)
    // Workers of the context's own: those made anew for each graph wait long for each other on a busy machine.
    for (const args of [
      ['--threads', '1'],
      ['--threads', '2', '--threadpool'],
    ]) {
      const [first, second] = [await run(path, args), await run(path, args)]
      expect([first.stderr, first.code, first.signal]).toEqual(['', 0, null])
      expect(first.result?.hash).toMatch(/^[0-9a-f]{16}$/)
      expect(second.result).toEqual({ ...first.result, pid: expect.any(Number) })
      const tokens = first.result!.tokens[0]![0]!
      expect(tokens).toHaveLength(8)
      expect(new Set(tokens).size).toBeGreaterThan(2) // random weights, yet no fixed point
    }
  })

  llamaTest.each(tiny)('sees the tensors of %s where we wrote them', async (preset) => {
    const { path, tensors, size } = await model(preset)
    expect((await stat(path)).size).toBe(size)
    const found = await run(path, ['--tensors'])
    expect(found.tensors.map(({ name, type, shape, offset, size }) => ({ name, type, shape, offset, size }))).toEqual(
      tensors.map(({ name, type, shape, offset, size }) => {
        return { name, type: type.toLowerCase(), shape: [...shape, 1, 1, 1].slice(0, 4), offset, size }
      }),
    )
  })

  llamaTest('tells the chosen experts of each token and computes the same', async () => {
    const { path, spec } = await model('tinyMoe')
    const args = ['--prompt', '5', '--decode', '3']
    const [plain, told] = [await run(path, args), await run(path, [...args, '--topk'])]
    expect(told.result?.hash).toBe(plain.result?.hash)
    expect(plain.topk).toEqual([])
    expect(told.topk.map(({ call, layer }) => [call, layer])).toEqual(
      [0, 1, 2, 3].flatMap((call) => Array.from({ length: spec.layers }, (_, layer) => [call, layer])),
    )
    for (const { call, layer, ids } of told.topk) {
      expect(ids).toHaveLength(call === 0 && layer < spec.layers - 1 ? 5 : 1)
      for (const chosen of ids) {
        expect(new Set(chosen).size).toBe(spec.expertsUsed)
        expect(chosen.every((id) => id >= 0 && id < spec.experts!)).toBe(true)
      }
    }
    expect(new Set(told.topk.flatMap(({ ids }) => ids.flat())).size).toBe(spec.experts)
  })

  llamaTest('computes the same with other hosts: no mmap, own workers, fresh threads, a warm-up', async () => {
    const { path } = await model('tinyMoe')
    const plain = await run(path)
    for (const option of ['--no-mmap', '--threadpool', '--change-threads', '--warmup']) {
      expect([option, (await run(path, [option])).result?.hash]).toEqual([option, plain.result?.hash])
    }
  })

  llamaTest('tells when each call began and ended, and on which thread', async () => {
    const { path } = await model('tinyDense')
    const { calls, lines } = await run(path, ['--times', '--decode', '3', '--change-threads'])
    expect(lines.map(({ event }) => event)).toEqual(['load', 'call', 'call', 'call', 'call', 'result'])
    expect(calls.map(({ kind, tokens }) => [kind, tokens])).toEqual([
      ['prompt', 8],
      ['decode', 1],
      ['decode', 1],
      ['decode', 1],
    ])
    expect(new Set(calls.map(({ tid }) => tid)).size).toBe(4)
    for (const [index, { start, end }] of calls.entries()) {
      expect(end).toBeGreaterThan(start)
      expect(start).toBeGreaterThan(calls[index - 1]?.end ?? 0)
    }
  })

  llamaTest('decodes several contexts at once and several sequences in a batch', async () => {
    const { path } = await model('tinyMoe')
    const plain = await run(path)
    const two = await run(path, ['--contexts', '2', '--times'])
    expect(two.result?.tokens[0]).toEqual(plain.result?.tokens[0])
    expect(two.result?.tokens[1]).not.toEqual(plain.result?.tokens[0])
    expect(new Set(two.calls.map(({ tid }) => tid)).size).toBe(2)
    const three = await run(path, ['--parallel', '3', '--times'])
    expect(three.result?.tokens[0]).toHaveLength(3)
    expect(three.result?.tokens[0]?.[0]).toEqual(plain.result?.tokens[0]?.[0])
    expect(three.calls.map(({ tokens }) => tokens)).toEqual([24, 3, 3, 3, 3, 3, 3, 3, 3])
  })

  llamaTest('decodes the same tokens in Node, through the addon of node-llama-cpp', async () => {
    const { path } = await model('tinyMoe')
    const [plain, node] = [await run(path), await runNode(path, ['--times'])]
    expect([node.stderr, node.code]).toEqual(['', 0])
    expect(node.result?.tokens).toEqual(plain.result?.tokens)
    expect(node.calls).toHaveLength(9)
  })

  llamaTest('says what was wrong with its options or its model', async () => {
    const wrong = await run('/nowhere.gguf')
    expect([wrong.code, wrong.result]).toEqual([1, undefined])
    expect(wrong.stderr).toContain('run: llama.cpp does not load the model: /nowhere.gguf')
    expect((await run('/nowhere.gguf', ['--threads', 'x'])).stderr).toBe('run: wrong or no number: --threads\n')
    expect((await run('/nowhere.gguf', ['--bogus'])).stderr).toBe('run: unknown option: --bogus\n')
  })

  llamaTest('runs with a preloaded library', async () => {
    const { path } = await model('tinyDense')
    const { code, result, stderr } = await run(path, [], { preload: '/nowhere/shim.so' })
    expect([code, result?.tokens[0]?.[0]?.length]).toEqual([0, 8])
    expect(stderr).toContain('/nowhere/shim.so') // the loader's warning
  })
})
