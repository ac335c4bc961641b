import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { describe, expect, test } from '@jest/globals'
import type { Model, ModelSpec } from '../llama/gguf.mjs'
import { type Call, hasLlama, model } from '../llama/testbed.ts'
import { inLong, inParts, someOf } from '../long.ts'
import {
  callNumber,
  expectCalls,
  expectTrace,
  expectWeights,
  NANO,
  NANO_MOE,
  type Recording,
  readLog,
  recordHosts,
  useRecorder,
} from './recording.ts'

/** Several models in one process, at once and one after the other; and a large one. */
const llama = hasLlama() ? describe : describe.skip

/** Each call read the weights of the model that it was made with. */
function expectModels(recording: Recording, calls: readonly Call[], modelOf: (call: Call, index: number) => Model) {
  for (const [i, call] of calls.entries()) expectWeights(recording, callNumber(recording, call), modelOf(call, i))
}

llama('several models (needs linux-x64 and cc)', () => {
  useRecorder()

  test('that decode at the same time, dense and MoE, each in changing threads, stay apart', async () => {
    const [dense, moe] = [await model({ ...NANO, layers: 3 }), await model(NANO_MOE)]
    const both = ['load', 0, dense.path, 'load', 1, moe.path, 'open', 0, 1, 'open', 1, 2]
    const steps = [...both, 'all', 2, 'decode', 1, 1, 'decode', 0, 1, 'all', 2, 'close', 0, 'close', 1, 'exit', 2]
    const { log, result } = await recordHosts(steps)
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    expect(result.calls).toHaveLength(10)
    expect(new Set(result.calls.map(({ tid }) => tid)).size).toBe(5)
    expectCalls(recording, result.calls, ({ context }) => [1, 2][context]!)
    expectModels(recording, result.calls, ({ context }) => [dense, moe][context]!)
    const ofMoe = result.calls.filter(({ context }) => context === 1).map((call) => callNumber(recording, call))
    expect(new Set(recording.of('experts').map(({ call }) => call))).toEqual(new Set(ofMoe))
    await expectTrace(log, recording)
  })

  test('a node has the sources of its own batch, where another batch leaves its struct as it was', async () => {
    const { path } = await model(NANO)
    const { log } = await recordHosts(['load', 0, path, 'open', 0, 1, 'decode', 0, 4])
    const { of, tensor, text } = await readLog(log)
    const nodes = of('operator').map(({ call, tensor: id }) => ({ call, node: tensor(id) }))
    const stores = nodes.filter(({ node }) => text(node.op) === 'SET_ROWS')
    const stored = stores.map(({ call, node }) => [call, tensor(node.sources[0]!).ne![1]])
    // A prompt of two tokens, then one at a time.
    expect(stored.filter(([call]) => call === 0).map(([, rows]) => rows)).toEqual([2, 2])
    expect(stored.filter(([call]) => call! > 0).every(([, rows]) => rows === 1)).toBe(true)
    const computed = (call: number) => new Set(nodes.filter((each) => each.call === call).map(({ node }) => node.id))
    const roots = stores.filter(({ call }) => call === 2).map(({ node }) => tensor(node.sources[0]!))
    const through = roots.map((source) => (computed(2).has(source.id) ? source.id : source.sources[0]!))
    expect(through.every((id) => computed(2).has(id) || computed(2).has(tensor(id).sources[0]!))).toBe(true)
  })

  /** The tensors that a call fetched are nodes that it computed. */
  function expectFetched({ of, tensor, text }: Recording, calls: readonly Call[]): void {
    const nodes = of('operator').map(({ call, tensor, fusedTo }) => ({ call, ids: [tensor, fusedTo] }))
    const fetched = of('copy').filter(({ what }) => what === 'get')
    const found = of('token').map(({ call, startNs, endNs }) => {
      const own = new Set(nodes.flatMap((node) => (node.call === call ? node.ids : [])))
      const within = fetched.filter((copy) => copy.startNs >= startNs && copy.endNs <= endNs)
      return within.map(({ tensor: id }) => [text(tensor(id).name), own.has(id)])
    })
    expect(found).toEqual(calls.map(() => [['result_output', true]]))
  }

  test('batches of two sizes in turns, whose graphs share memory: logits are those of the node just computed', async () => {
    // So deep that sources of sources of the last node do not end before the first layers.
    const { path } = await model({ ...NANO, layers: 8 })
    const turns = Array.from({ length: 4 }, () => ['prompt', 0, 'decode', 0, 2]).flat()
    const { log, result } = await recordHosts(['load', 0, path, 'open', 0, 2, ...turns, 'close', 0])
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    expectCalls(recording, result.calls, () => 2)
    expectFetched(recording, result.calls)
  })

  test('other contexts come and go while one computes its graph again: its logits are those of its last node', async () => {
    const [deep, other] = [await model({ ...NANO, layers: 8 }), await model(NANO_MOE)]
    const guest = ['open', 1, 1, 'decode', 1, 1, 'decode', 0, 1, 'close', 1]
    const turns = Array.from({ length: 3 }, () => [...guest, 'decode', 0, 2]).flat()
    const loads = ['load', 0, deep.path, 'load', 1, other.path, 'open', 0, 1, 'decode', 0, 2]
    const { log, result } = await recordHosts([...loads, ...turns, 'close', 0])
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    expectCalls(recording, result.calls, () => 1)
    expectFetched(recording, result.calls)
  })

  test('a cast, which ggml makes a source of its own, has the other source only, and its graph is defined once', async () => {
    const { path } = await model(NANO)
    const steps = ['load', 0, path, 'floats', 0, 'open', 0, 2, 'decode', 0, 3, 'prompt', 0, 'decode', 0, 3, 'close', 0]
    const { log, result } = await recordHosts(steps)
    const recording = await readLog(log)
    const { of, tensors, tensor, text, issues } = recording
    expect(issues).toEqual([])
    expectCalls(recording, result.calls, () => 2)
    const casts = tensors.filter(({ op }) => text(op) === 'CPY')
    expect(casts.map(({ sources }) => sources.map((id) => text(tensor(id).op)))).toEqual(casts.map(() => ['PERMUTE']))
    const cast = of('operator').filter(({ tensor: id }) => casts.includes(tensor(id)))
    // Of the keys and of the values, on two workers.
    expect(cast).toHaveLength(2 * 2 * result.calls.length)
    expect(casts).toHaveLength(2)
  })

  /** The same shapes, at other places of the file. */
  const SWAPPED: ModelSpec = {
    ...NANO,
    layers: 2,
    width: 256,
    feedForward: 512,
    heads: 4,
    kvHeads: 2,
    vocabulary: 1024,
  }
  const pair = async () => [
    await model({ ...SWAPPED, name: 'a' }),
    await model({ ...SWAPPED, name: 'b'.repeat(5000), seed: 2 }),
  ]

  // Sooner or later a tensor of one model lies where a tensor of another lay, and looks the same.
  const MALLOCS: readonly (readonly [how: string, env: Record<string, string>])[] = [
    ['malloc as it is', {}],
    ['malloc that gives all back', { MALLOC_MMAP_THRESHOLD_: '4096' }],
  ]
  inParts(test).each(someOf(MALLOCS, 2, 1))(
    'one after the other, at addresses that are used again (%s)',
    async (_, env) => {
      const models = await pair()
      const order = Array.from({ length: 40 }, (_, i) => models[(0b1101001101 >> (i % 10)) & 1]!)
      const swaps = order.flatMap(({ path }) => ['load', 0, path, 'open', 0, 1, 'decode', 0, 2, 'close', 0, 'free', 0])
      const { log, result } = await recordHosts(swaps, { env })
      const recording = await readLog(log)
      expect(recording.issues).toEqual([])
      expectCalls(recording, result.calls, () => 1)
      expectModels(recording, result.calls, (_, index) => order[index >> 1]!)
      const addresses = recording.of('tensor').map(({ address }) => address)
      expect(new Set(addresses).size).toBeLessThan(addresses.length / 2)
      await expectTrace(log, recording)
    },
  )

  inLong(test)('a cache where the file of a freed model was mapped is a cache', async () => {
    const [moe, dense] = [await model('tinyMoe'), await model('tinyDense')]
    const freed = ['load', 1, moe.path, 'load', 0, dense.path, 'open', 0, 2, 'decode', 0, 1, 'close', 0, 'free', 0]
    const env = { MALLOC_MMAP_THRESHOLD_: '65536' }
    const { log, result } = await recordHosts([...freed, 'open', 1, 2, 'decode', 1, 2, 'close', 1], { env })
    const recording = await readLog(log)
    expect(recording.issues).toEqual([])
    expectCalls(recording, result.calls, () => 2)
    expectModels(recording, result.calls, ({ context }) => [dense, moe][context]!)
  })
})

inLong(llama)('a model of a billion parameters (needs linux-x64 and cc)', () => {
  useRecorder()

  const hasRoom = () => {
    const { bavail, bsize } = statfsSync(tmpdir())
    return bavail * bsize > 1.5e9
  }
  const roomy = hasRoom() ? test : test.skip

  roomy(
    'is recorded whole, with the weights where the file has them (needs 1.5 GB in the temporary folder)',
    async () => {
      const big = await model('big')
      const { log, result } = await recordHosts(['load', 0, big.path, 'open', 0, 2, 'decode', 0, 2, 'close', 0])
      const recording = await readLog(log)
      expect(recording.issues).toEqual([])
      expect(result.calls).toHaveLength(2)
      expectCalls(recording, result.calls, () => 2)
      expectModels(recording, result.calls, () => big)
      await expectTrace(log, recording)
    },
  )
})
