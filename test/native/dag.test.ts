import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { type Dag, dagOf, diffDags } from '../../lib/analysis.ts'
import { fold } from '../../lib/dag/fold.ts'
import { analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'
import type { Preset } from '../llama/gguf.mjs'
import { type GraphNodeLine, hasLlama, model, run } from '../llama/testbed.ts'
import { inParts, someOf } from '../long.ts'
import { newLog, RECORDER, useRecorder } from './recording.ts'

/** Graphs of recorded runs of llama.cpp, against the source lists that the very program prints. */

const ARGS = ['--threads', '2', '--threadpool', '--prompt', '6', '--decode', '2', '--nodes']

/** The graph of a call, from the log, and the nodes that the program printed. */
async function recorded(preset: Preset, call: number, args = ARGS): Promise<{ dag: Dag; lines: GraphNodeLine[] }> {
  const log = newLog()
  mkdirSync(dirname(log), { recursive: true })
  const { path } = await model(preset)
  const { code, stderr, lines } = await run(path, args, { preload: RECORDER, env: { GGML2PERFETTO_OUT: log } })
  expect([code, stderr]).toEqual([0, ''])
  const { series } = await analyze(inputOf(log), { series: ['graph'], call })
  const nodes = lines.filter((line) => line.event === 'node').filter((line) => line.call === call)
  return { dag: dagOf(series!.graph!), lines: nodes }
}

const llama = hasLlama() ? describe : describe.skip

llama('graphs of recorded runs', () => {
  useRecorder()

  const CALLS: readonly (readonly [Preset, number])[] = [
    ['tinyDense', 1],
    ['tinyMoe', 1],
    ['tinyMoe', 0],
    ['tinyQwen2', 2],
  ]
  inParts(test).each(someOf(CALLS, 4, 1))(
    '%s, call %i: the edges are the source lists of the program, tensor for tensor',
    async (preset, call) => {
      const { dag, lines } = await recorded(preset, call)
      const text = ({ name, op }: { readonly name: string; readonly op: string }) => `${name} ${op}`
      expect(dag.nodes.length).toBe(lines.length)
      // Nodes correspond by what they are and by what they read: from the last node up, each tensor to exactly one.
      const listOf = new Map(lines.map(({ node, sources }) => [node.id, sources]))
      const tensors = new Map(
        [...dag.nodes, ...dag.leaves.map((leaf) => ({ ...leaf, op: '' }))].map((of) => [of.id, of]),
      )
      const sourcesOf = (id: number) =>
        dag.edges.filter(({ to, kind }) => to === id && kind === 'source').map(({ from }) => from)
      const same = new Map<number, string>()
      const stack: [number, GraphNodeLine['node']][] = [[dag.nodes.at(-1)!.id, lines.at(-1)!.node]]
      const compare = () => {
        for (let top = stack.pop(); top; top = stack.pop()) {
          const [id, tensor] = top
          if (same.has(id)) {
            expect(same.get(id)).toBe(tensor.id)
            continue
          }
          same.set(id, tensor.id)
          expect(text(tensors.get(id)!)).toBe(text(tensor))
          const [found, expected] = [id >= 0 ? sourcesOf(id) : [], listOf.get(tensor.id) ?? []]
          expect(found.length).toBe(expected.length)
          for (const [i, source] of found.entries()) stack.push([source, expected[i]!])
        }
      }
      compare()
      // What writes to a cache is read by no node: those nodes have names of their own.
      const byText = new Map(lines.map(({ node }) => [text(node), node]))
      for (const node of dag.nodes.filter(({ op }) => op === 'SET_ROWS')) {
        stack.push([node.id, byText.get(text(node))!])
        compare()
      }
      expect(same.size).toBe(dag.nodes.length + dag.leaves.length)
      expect(new Set(same.values()).size).toBe(same.size)
      expect(dag.edges.filter(({ kind }) => kind === 'source').length).toBe(
        lines.reduce((sum, { sources }) => sum + sources.length, 0),
      )
      // Attention reads what was just written to the caches.
      const layers = new Set(dag.nodes.map(({ in_layer }) => in_layer).filter((layer) => layer >= 0)).size
      expect(dag.edges.filter(({ kind }) => kind === 'memory').length).toBe(2 * layers)
    },
  )

  test('a prompt in micro-batches: graph runs of 8, 8 and 4 tokens', async () => {
    const { dag } = await recorded('tinyDense', 0, ['--prompt', '20', '--ubatch', '8', '--decode', '1'])
    const shapes = dag.nodes.filter(({ name }) => name === 'embd').map(({ run, shape }) => [run, shape])
    expect(shapes).toEqual([
      [0, '512×8'],
      [1, '512×8'],
      [2, '512×4'],
    ])
    const layers = fold(dag).flatMap(({ layers, runs, parts, nodes }) =>
      layers.length > 1 ? [{ runs, parts, count: nodes.length }] : [],
    )
    expect(layers.map(({ parts }) => parts).reduce((a, b) => a + b)).toBeGreaterThanOrEqual(3 * 7)
    expect(new Set(layers.flatMap(({ runs }) => runs))).toEqual(new Set([0, 1, 2]))
    expect(Math.max(...layers.map(({ count }) => count))).toBeLessThan(50)
  })

  test('Qwen2 adds a bias to Q, K and V of each layer; all else is as in Llama', async () => {
    const [a, b] = [await recorded('tinyDense', 1), await recorded('tinyQwen2', 1)]
    const { parts } = diffDags({ name: 'a', dag: a.dag }, { name: 'b', dag: b.dag })
    const nodes = parts.flatMap((part) => part.nodes.map((node) => ({ ...node, layers: part.layers_b.length })))
    const count = (change: string) =>
      nodes.filter((node) => node.change === change).reduce((sum, of) => sum + of.layers, 0)
    expect([count('added'), count('removed')]).toEqual([24, 0])
    const added = nodes.filter(({ change }) => change === 'added').map((node) => node.b!)
    expect(new Set(added.map(({ role, op, sources }) => `${role} ${op}: ${sources.join(', ')}`))).toEqual(
      new Set(['Q', 'K', 'V'].map((of) => `${of}cur ADD: ${of}cur MUL_MAT, weight attn_${of.toLowerCase()}.bias`)),
    )
    const changed = nodes.filter(
      ({ change, differs }) => change === 'changed' && differs.some((key) => key !== 'sources' && key !== 'role'),
    )
    expect(changed).toEqual([])
  })
})
