import { describe, expect, test } from '@jest/globals'
import { dagOf, diffDags, drawDiff } from '../../lib/analysis.ts'
import { rangesText } from '../../lib/dag/fold.ts'
import { analyze } from '../../lib/index.ts'
import { inputOf } from '../../lib/node.ts'

/** How graphs differ: recorded ones, and ones with known changes. */

type Graph = Parameters<typeof dagOf>[0]
type Node = Graph['nodes'][number]

const graphOf = async (log: Parameters<typeof analyze>[0], call?: number): Promise<Graph> =>
  (await analyze(log, { series: ['graph'], call })).series!.graph!

describe('differences', () => {
  const side = async (path: string, change = (nodes: readonly Node[]) => nodes) => {
    const graph = await graphOf(inputOf(path), 2)
    return { name: path, dag: dagOf({ ...graph, nodes: change(graph.nodes) }) }
  }
  const MOE = 'test/recorded/outside-graphs.ggtrace.gz'
  const changesOf = (diff: ReturnType<typeof diffDags>) =>
    diff.parts.flatMap(({ nodes, layers_b }) =>
      nodes
        .filter(({ change }) => change !== 'same')
        .map(
          ({ change, differs, a, b }) =>
            `${rangesText(layers_b)}: ${change} ${(b ?? a)!.role} ${(b ?? a)!.op} ${differs}`,
        ),
    )

  test('a graph and itself: none', async () => {
    for (const path of [MOE, 'examples/llama.ggtrace.gz', 'test/fixtures/ggtrace/tiny.ggtrace']) {
      const of = await side(path)
      expect(changesOf(diffDags(of, of))).toEqual([])
    }
  })

  test('Llama and Qwen2: biases of Q, K and V, in each layer; and the reverse', async () => {
    const [a, b] = [await side('examples/llama.ggtrace.gz'), await side('examples/qwen2.ggtrace.gz')]
    const structure = (changes: string[]) => changes.filter((text) => !text.includes('changed'))
    const added = (mark: string) =>
      ['0–6', '7'].flatMap((layers) => ['Q', 'V', 'K'].map((of) => `${layers}: ${mark} ${of}cur ADD `))
    expect(structure(changesOf(diffDags(a, b)))).toEqual(added('added'))
    expect(structure(changesOf(diffDags(b, a))).sort()).toEqual(added('removed').sort())
    const drawing = drawDiff(diffDags(a, b), a, b)
    const blue = drawing.edges.filter(({ title }) => title.endsWith('only in b')).map(({ title }) => title)
    expect(blue.slice(0, 6).sort()).toEqual(
      ['Q', 'K', 'V']
        .flatMap((of) => [`${of}cur MUL_MAT → ${of}cur ADD, only in b`, `${of}cur ADD → ${of}cur RESHAPE, only in b`])
        .sort(),
    )
    expect(drawing.groups.flatMap(({ nodes }) => nodes).filter(({ lines }) => lines[0]!.startsWith('+ ')).length).toBe(
      6,
    )
  })

  test('ops, types, shapes and names that differ, of all layers or of one', async () => {
    const a = await side(MOE)
    const b = await side(MOE, (nodes) =>
      nodes.map((node) => {
        if (node.role === 'ffn_moe_swiglu') return { ...node, op: 'GEGLU' }
        if (node.role === 'Vcur' && node.op === 'MUL_MAT' && node.layer === 3)
          return { ...node, type: 'bf16', shape: '512' }
        if (node.role === 'attn_out') return { ...node, name: `output_of-${node.layer}`, role: 'output_of' }
        return node
      }),
    )
    expect(changesOf(diffDags(a, b)).sort()).toEqual(
      [
        ...['0–2, 4', '3', '5'].flatMap((layers) => [
          `${layers}: changed ffn_moe_swiglu GEGLU op`,
          `${layers}: changed output_of MUL_MAT role`,
        ]),
        '3: changed Vcur MUL_MAT type,shape',
      ].sort(),
    )
  })

  test('other numbers of layers: the last corresponds to the last', async () => {
    const a = await side(MOE)
    const of = (layers: readonly number[]) => {
      const isIn = ({ in_layer }: { readonly in_layer: number }) => layers.includes(in_layer)
      const outside = a.dag.nodes.filter((node) => !isIn(node))
      return { name: 'b', dag: { ...a.dag, nodes: a.dag.nodes.filter(isIn), outside } }
    }
    const { parts } = diffDags(a, of([-1, 2, 5]))
    expect(parts.map(({ layers_a, layers_b }) => [rangesText(layers_a), rangesText(layers_b)])).toEqual([
      ['', ''],
      ['0–4', '2'],
      ['5', '5'],
    ])
    expect(parts.flatMap(({ nodes }) => nodes).filter(({ change }) => change !== 'same')).toEqual([])
  })
})
