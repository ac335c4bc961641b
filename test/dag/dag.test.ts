import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Dag, dagOf, draw, METRICS, type MetricName, toDot } from '../../lib/analysis.ts'
import type { TensorEvent } from '../../lib/core.ts'
import { graphRuns, inLayers } from '../../lib/dag/dag.ts'
import { sizeOf } from '../../lib/dag/draw.ts'
import { fold, rangesText } from '../../lib/dag/fold.ts'
import { valueText } from '../../lib/dag/metrics.ts'
import { analyze, eventsOf, Names } from '../../lib/index.ts'
import { drawSvg, inputOf } from '../../lib/node.ts'
import { inParts, isLong } from '../long.ts'

/** Graphs as nodes and edges: against the definitions of logs, and by hand. */

type Graph = Parameters<typeof dagOf>[0]
type Node = Graph['nodes'][number]

const graphOf = async (log: Parameters<typeof analyze>[0], call?: number): Promise<Graph> =>
  (await analyze(log, { series: ['graph'], call })).series!.graph!

/** Of one analysis; no test changes it. */
let ofMoe: Promise<Graph> | undefined
const moe = () => (ofMoe ??= graphOf(inputOf('examples/moe.ggtrace.gz')))

/** Source lists of all that a call computes, from the events of the log alone: `name op shape <- name op shape #index`. */
async function listsOf(path: string, call: number): Promise<string[]> {
  const names = new Names()
  const tensors: TensorEvent[] = []
  const computed = new Set<number>()
  for await (const batch of eventsOf(inputOf(path), names)) {
    for (const event of batch) {
      if (event.kind === 'tensor') tensors[event.id] = event
      if (event.kind === 'operator' && event.call === call)
        for (const id of [event.tensor, event.fusedTo]) if (id !== undefined) computed.add(id)
    }
  }
  const text = (id: number) => `${names.text(tensors[id]!.name)} ${names.text(tensors[id]!.op)}`.trim()
  // A set is visited in the order of insertion, with what is added meanwhile.
  for (const id of computed)
    for (const source of tensors[id]!.sources) if (tensors[source]!.sources.length > 0) computed.add(source)
  return [...computed].flatMap((id) => tensors[id]!.sources.map((source, i) => `${text(id)} <- ${text(source)} #${i}`))
}

const named = ({ nodes, leaves, outside }: Dag) => {
  const all = [...nodes, ...outside, ...leaves.map((leaf) => ({ ...leaf, op: '' }))]
  const byId = new Map(all.map(({ id, name, op }) => [id, `${name} ${op}`.trim()]))
  return (id: number) => byId.get(id)!
}

test.each([
  ['examples/moe.ggtrace.gz', 2],
  ['examples/moe.ggtrace.gz', 0],
  ['examples/llama.ggtrace.gz', 1],
  ['examples/qwen2.ggtrace.gz', 1],
  ['test/fixtures/ggtrace/tiny.ggtrace', 0],
])('%s, call %i: edges are the source lists of the log', async (path, call) => {
  const dag = dagOf(await graphOf(inputOf(path), call))
  const name = named(dag)
  const edges = dag.edges.filter(({ kind }) => kind === 'source')
  expect(edges.map(({ from, to, source }) => `${name(to)} <- ${name(from)} #${source}`).sort()).toEqual(
    (await listsOf(path, call)).sort(),
  )
})

test('an edge through memory leads to what reads a cache, where the source list does not', async () => {
  const dag = dagOf(await moe())
  const name = named(dag)
  const memory = dag.edges.filter(({ kind }) => kind === 'memory').map(({ from, to }) => `${name(from)} > ${name(to)}`)
  expect(memory).toEqual(
    [0, 1, 2, 3, 4, 5].flatMap((layer) =>
      ['k', 'v'].map((of) => `cache_${of}_l${layer} (view) SET_ROWS > node_${21 + 47 * layer} FLASH_ATTN_EXT`),
    ),
  )
})

test('a range: its nodes, what they read, and nothing else', async () => {
  const graph = await moe()
  const whole = dagOf(graph)
  const part = dagOf(graph, { layers: [1, 1], nodes: [50, 60] })
  expect(part.nodes.map(({ id }) => id)).toEqual([50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60])
  expect(part.edges).toEqual(whole.edges.filter(({ to }) => to >= 50 && to <= 60))
  expect(part.outside.map(({ name }) => name)).toEqual(['attn_norm-1'])
  expect(part.leaves.map(({ name }) => name).sort()).toEqual(
    [
      'blk.1.attn_q.weight',
      'blk.1.attn_k.weight',
      'blk.1.attn_v.weight',
      'inp_pos',
      'attn_inp_k_idxs',
      'cache_k_l1',
    ].sort(),
  )
  expect(dagOf(graph, { layers: [7, 9] }).nodes).toEqual([])
})

test('nodes without a layer in their name are in that of their weights, or of the nodes around them', async () => {
  const { nodes } = dagOf(await moe())
  expect(
    nodes.filter(({ layer, in_layer }) => layer !== in_layer).map(({ name, in_layer }) => [name, in_layer]),
  ).toEqual([
    ['node_259', 5],
    ['node_260', 5],
  ])
  expect(nodes.filter(({ in_layer }) => in_layer < 0).map(({ name }) => name)).toEqual([
    'embd',
    'norm',
    'result_norm',
    'result_output',
  ])
  const made = [
    [-1, 0, []],
    [2, 0, []],
    [-1, 0, []],
    [-1, 0, [-2]],
    [2, 0, []],
    [-1, 0, []],
    [3, 0, []],
    [-1, 1, []],
    [2, 1, []],
  ] as const
  const nodes9 = made.map(([layer, run, sources]) => ({ ...nodes[0]!, layer, run, sources }))
  expect(inLayers({ nodes: nodes9, leaves: [{ layer: 2 } as Graph['leaves'][number]] })).toEqual([
    -1, 2, 2, 2, 2, -1, 3, -1, 2,
  ])
})

test('a graph run begins where the first node of the one before occurs again', () => {
  const of = (names: string, run = 0) =>
    names.split(' ').map((text): Node => {
      const [name, layer = '-1'] = text.split('-')
      return { ...({ kind: 'operator', op: 'ADD', run } as Node), name: text, layer: Number(layer), role: name! }
    })
  expect(graphRuns([...of('embd a-0 a-1 out embd a-0 a-1 out embd'), ...of('embd a-0', 1)])).toEqual([
    ...[0, 0, 0, 0, 1, 1, 1, 1, 2],
    ...[3, 3],
  ])
  expect(graphRuns(of('norm-0 a-0 norm-0 b-0 a-1 norm-0 a-0'))).toEqual([0, 0, 0, 0, 0, 1, 1])
})

test('layers of the same structure fold into one, with the mean of each figure', async () => {
  const dag = dagOf(await moe())
  const patterns = fold(dag)
  expect(patterns.map(({ layers, parts, nodes }) => [rangesText(layers), parts, nodes.length])).toEqual([
    ['', 1, 4],
    ['0–4', 5, 47],
    ['5', 1, 49],
  ])
  expect(patterns.reduce((sum, { parts, nodes }) => sum + parts * nodes.length, 0)).toBe(dag.nodes.length)
  const folded = patterns[1]!.nodes.find(({ mean: { role, op } }) => role === 'ffn_moe_up' && op === 'MUL_MAT_ID')!
  const all = dag.nodes.filter(({ role, op, in_layer }) => role === 'ffn_moe_up' && op === 'MUL_MAT_ID' && in_layer < 5)
  const times = all.map(({ wall_ns }) => wall_ns!)
  expect(folded.ids).toEqual(all.map(({ id }) => id))
  expect(folded.mean.wall_ns).toBeCloseTo(times.reduce((a, b) => a + b) / 5, 6)
  expect([folded.slowest_ns, folded.slowest_layer]).toEqual([Math.max(...times), times.indexOf(Math.max(...times))])
  const bytes = all.reduce((sum, { bytes_read, bytes_written }) => sum + bytes_read! + bytes_written!, 0)
  expect(folded.mean.gb_per_s).toBeCloseTo(bytes / times.reduce((a, b) => a + b), 6)
  expect(rangesText([0, 1, 3, 4, 5, 9])).toBe('0, 1, 3–5, 9')
})

describe('drawings', () => {
  const options = { name: 'moe' }

  test('DOT has every node and each edge on a line of its own', async () => {
    const dag = dagOf(await moe())
    const dot = toDot(draw(dag, options))
    const id = (of: number) => (of >= 0 ? `n${of}` : `leaf${-2 - of}`)
    expect(
      [...dot.matchAll(/^\s*(\w+) \[label=/gm)]
        .map(([, node]) => node!)
        .filter((node) => node !== 'graph')
        .sort(),
    ).toEqual([...dag.nodes, ...dag.leaves].map((of) => id(of.id)).sort())
    const lines = [...dot.matchAll(/^\s*(\w+) -> (\w+)( \[style=dashed\])?$/gm)]
    expect(lines.map(([, from, to, dashed]) => `${from} ${to} ${dashed ? 'memory' : 'source'}`)).toEqual(
      dag.edges.map(({ from, to, kind }) => `${id(from)} ${id(to)} ${kind}`),
    )
  })

  test('without views, edges lead to what can be reached through views only', async () => {
    const dag = dagOf(await moe())
    const { edges, groups } = draw(dag, { ...options, views: false, weights: false })
    const views = new Set(dag.nodes.filter(({ kind }) => kind === 'view').map(({ id }) => id))
    const weights = new Set(dag.leaves.filter(({ kind }) => kind === 'weight').map(({ id }) => id))
    const behind = (id: number): number[] =>
      views.has(id) ? dag.edges.filter(({ to }) => to === id).flatMap(({ from }) => behind(from)) : [id]
    const id = (of: number) => (of >= 0 ? `n${of}` : `leaf${-2 - of}`)
    const expected = dag.edges
      .filter(({ to }) => !views.has(to))
      .flatMap(({ from, to, kind }) =>
        behind(from)
          .filter((of) => !weights.has(of))
          .map((of) => `${id(of)} ${id(to)} ${kind === 'memory'}`),
      )
    expect(new Set(edges.map(({ from, to, isDashed }) => `${from} ${to} ${isDashed}`))).toEqual(new Set(expected))
    const drawn = groups.flatMap(({ nodes }) => nodes.map((node) => node.id))
    expect(drawn.filter((node) => node.startsWith('n')).length).toBe(dag.nodes.length - views.size)
  })

  test('collapsed: each pattern once; arrows to the next layer do not order the layout', async () => {
    const drawing = draw(dagOf(await moe()), { ...options, collapse: true })
    expect(drawing.groups.map(({ title, nodes }) => [title, nodes.length]).slice(0, 3)).toEqual([
      [undefined, 4],
      ['layers 0–4: 5 × this, with the mean of each figure', 47],
      ['layer 5', 49],
    ])
    expect(drawing.edges.filter(({ isLoose }) => isLoose).map(({ title }) => title)).toEqual([
      'l_out-0 ADD → norm-0 RMS_NORM, f32 1024\nin the next layer',
      'l_out-0 ADD → ffn_inp-0 ADD, f32 1024\nin the next layer',
    ])
    expect(sizeOf(drawing).nodes).toBeLessThan(150)
  })

  test('SVG: a title for each node and edge, a title and a description; the same each time', async () => {
    const dag = dagOf(await moe(), { layers: [2, 2] })
    const drawing = draw(dag, { ...options, edgeShapes: true })
    const svg = await drawSvg(drawing)
    expect(await drawSvg(drawing)).toBe(svg)
    const titles = [...svg.matchAll(/<g id="[^"]*" class="(node|edge)" role="img">\n<title>([^<]*)<\/title>/g)]
    const { nodes, edges } = sizeOf(drawing)
    expect([
      titles.filter(([, kind]) => kind === 'node').length,
      titles.filter(([, kind]) => kind === 'edge').length,
    ]).toEqual([nodes, edges])
    expect(titles.filter(([, , title]) => title === '' || /^(n|leaf)\d+(-|$)/.test(title!))).toEqual([])
    expect(svg).toMatch(
      /<svg [^>]*role="graphics-document document"[^>]*>\n<title id="dag-title">moe: call 2 \(decode, 1 token\)<\/title>\n<desc id="dag-description">A graph of 47 nodes/,
    )
    const up = dag.nodes.find(({ name }) => name === 'ffn_moe_up-2')!
    expect(svg).toContain(
      `<title>ffn_moe_up-2 MUL_MAT_ID, f32 1536×2, MoE, layer 2\norder: ${up.order}\ntime: ${valueText(up.wall_ns!, 'ns')}`,
    )
  })

  inParts(test)('any name can be drawn, and is what the title shows', async () => {
    const graph = await moe()
    const texts = fc.array(fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }), fc.string({ maxLength: 20 })), {
      minLength: 3,
      maxLength: 3,
    })
    await fc.assert(
      fc.asyncProperty(texts, async ([first, second, third]) => {
        const nodes = graph.nodes
          .slice(0, 3)
          .map((node, i): Node => ({ ...node, name: [first!, second!, third!][i]!, op: i === 1 ? third! : node.op }))
        const svg = await drawSvg(draw(dagOf({ ...graph, nodes }), { name: second! }))
        const decoded = [...svg.matchAll(/class="node" role="img">\n<title>([^<]*)<\/title>/g)].map(([, title]) =>
          title!.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))),
        )
        const isPlain = /^[\u0020-\ud7ff]*$/.test(first!) && !/[\u007f-\u009f]/.test(first!)
        if (isPlain)
          expect(
            decoded.some((title) => title.startsWith([first!, graph.nodes[0]!.op].filter(Boolean).join(' '))),
          ).toBe(true)
        // Well-formed: no bare & or <, no characters that XML does not have.
        expect(/&(?!#?\w+;)/.exec(svg)?.[0]).toBeUndefined()
        // biome-ignore lint/suspicious/noControlCharactersInRegex: XML cannot contain them
        expect(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(svg)).toBe(false)
      }),
      { numRuns: isLong ? 60 : 12 },
    )
  })

  test('each figure colours nodes, and its legend reaches from the least to the most', async () => {
    const recorded = dagOf(await moe())
    const on = (kind: string, time_ns: number) => ({ kind, executions: 1, time_ns })
    const nodes = recorded.nodes.map((node) => ({ ...node, by_core_kind: [on('P', 9), on('E', node.id)] }))
    const dag = { ...recorded, nodes }
    for (const colorBy of Object.keys(METRICS) as MetricName[]) {
      const { legend } = draw(dag, { ...options, colorBy })
      const { of, unit, scale } = METRICS[colorBy]
      const values = dag.nodes
        .map(of)
        .filter((value) => value !== null && (scale === 'linear' || value > 0)) as number[]
      expect([legend.cells[0]!.label, legend.cells.at(-1)!.label]).toEqual(
        [Math.min(...values), Math.max(...values)].map((value) => valueText(value, unit)),
      )
    }
    const values = { title: 'ipc', of: ({ name }: { readonly name: string }) => (name === 'Qcur-0' ? 3 : undefined) }
    const { legend, groups } = draw(dag, { ...options, values })
    expect([legend.title, legend.cells.map(({ label }) => label)]).toEqual(['ipc, linear scale', ['3']])
    expect(groups.flatMap(({ nodes }) => nodes).filter(({ fill }) => fill === legend.cells[0]!.fill).length).toBe(3)
  })
})
