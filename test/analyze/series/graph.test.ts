import { beforeAll, describe, expect, test } from '@jest/globals'
import { type OperatorEvent, type TensorEvent, UNKNOWN } from '../../../lib/core.ts'
import {
  type Analysis,
  analyze,
  convert,
  type EventInput,
  eventsOf,
  Names,
  type TraceEvent,
} from '../../../lib/index.ts'
import { inputOf, openTrace } from '../../../lib/node.ts'
import { inLong } from '../../long.ts'
import { smallRun } from '../memory/small-run.ts'

/** The graph of a call, against the definitions of the log alone, against SQL over its trace, and against runs that were made by hand. */

type Graph = NonNullable<NonNullable<Analysis['series']>['graph']>
type Node = Graph['nodes'][number]

const graphOf = async (log: Parameters<typeof analyze>[0], call?: number): Promise<Graph> =>
  (await analyze(log, { series: ['graph'], call })).series!.graph!

const byId =
  ({ nodes, leaves }: Graph) =>
  (id: number) =>
    id >= 0 ? nodes[id]! : leaves[-2 - id]!

/** Definitions of a log, and its operators of worker 0 in one call. */
async function recorded(path: string, call: number) {
  const names = new Names()
  const tensors: TensorEvent[] = []
  const operators: OperatorEvent[] = []
  for await (const batch of eventsOf(inputOf(path), names)) {
    for (const event of batch) {
      if (event.kind === 'tensor') tensors[event.id] = event
      if (event.kind === 'operator' && event.worker === 0 && event.call === call) operators.push(event)
    }
  }
  return { names, tensors, operators: operators.sort((a, b) => a.startNs - b.startNs) }
}

// A dense model, and a mixture of experts with fused nodes.
describe.each([
  ['test/fixtures/ggtrace/tiny.ggtrace', 0],
  ['examples/moe.ggtrace.gz', 2],
  ['examples/moe.ggtrace.gz', 0],
])('%s, call %i', (path, call) => {
  let graph: Graph
  let log: Awaited<ReturnType<typeof recorded>>
  beforeAll(async () => {
    graph = await graphOf(inputOf(path), call)
    log = await recorded(path, call)
  })

  test('each operator in its order, each node with its recorded source list', () => {
    const { names, tensors, operators } = log
    const own = graph.nodes.filter(({ kind }) => kind === 'operator')
    const results = operators.map(({ tensor, fusedTo }) => names.text(tensors[fusedTo ?? tensor]!.name))
    expect(own.map(({ name }) => name)).toEqual(results)
    expect(own.map(({ order }) => order)).toEqual(results.map((_, i) => i))
    const nodeOf = byId(graph)
    const text = (name: string, op: string, sources: readonly string[]) => `${name} ${op} <- ${sources.join(', ')}`
    const lists = new Set(
      tensors.map(({ name, op, sources }) =>
        text(
          names.text(name),
          names.text(op),
          sources.map((id) => names.text(tensors[id]!.name)),
        ),
      ),
    )
    const shown = graph.nodes.map(({ name, op, sources }) =>
      text(
        name,
        op,
        sources.map((id) => nodeOf(id).name),
      ),
    )
    expect(shown.filter((list) => !lists.has(list))).toEqual([])
    // All sources of what was computed are there, those of fused nodes and of views, too.
    const wanted = operators.reduce((sum, { tensor, fusedTo = tensor }) => {
      const ids = fusedTo === tensor ? [tensor] : [tensor, fusedTo]
      return sum + ids.reduce((sum, id) => sum + tensors[id]!.sources.length, 0)
    }, 0)
    const found = graph.nodes
      .filter(({ kind }) => kind !== 'view')
      .reduce((sum, { sources }) => sum + sources.length, 0)
    expect(found).toBe(wanted)
    expect(graph.nodes.every(({ id, sources }) => sources.every((source) => source < id && source !== -1))).toBe(true)
  })

  test('reads from the operators that wrote to the memory of its sources', () => {
    const { names, tensors, operators } = log
    // Views are known by their memory here, not by what they are views of: the latest writer of these bytes.
    const place = ({ buffer, offset }: TensorEvent) => `${buffer}@${offset}`
    const writers = new Map<string, string>()
    const expected: string[] = []
    for (const { tensor, fusedTo = tensor } of operators) {
      const [first, last] = [tensors[tensor]!, tensors[fusedTo]!]
      const name = names.text(last.name)
      const sources = [...first.sources, ...(first === last ? [] : last.sources)].filter((id) => id !== first.id)
      const from = new Set(sources.map((id) => writers.get(place(tensors[id]!))))
      for (const writer of from) if (writer !== undefined) expected.push(`${writer} > ${name}`)
      writers.set(place(last), name)
    }
    const found = graph.nodes.flatMap(({ name, reads_from }) =>
      reads_from.map((id) => `${graph.nodes[id]!.name} > ${name}`),
    )
    expect(found.sort()).toEqual(expected.sort())
    expect(found.length).toBeGreaterThan(operators.length / 2)
  })

  test('times, workers and their imbalance are those of the trace', async () => {
    const trace = await openTrace(convert(inputOf(path), { detail: 'full' }))
    const { rows } = trace.query(`with own as (select extract_arg(s.arg_set_id, 'debug.tensor') as tensor, s.ts, s.dur,
        ifnull((select sum(b.dur) from slice b where b.track_id = s.track_id and b.category = 'barrier' and (b.ts = s.ts + s.dur
          or b.ts = (select a.ts + a.dur from slice a where a.track_id = s.track_id and a.category = 'barrier' and a.ts = s.ts + s.dur))), 0) as wait
      from slice s where s.category = 'operator' and extract_arg(s.arg_set_id, 'debug.call') = ${call} and s.name not glob '*+*')
      select tensor, max(ts + dur + wait) - min(ts), sum(dur), sum(wait), count(*), max(dur) from own group by tensor having count(*) < 4`)
    trace.close()
    const operators = graph.nodes.filter(({ kind }) => kind === 'operator')
    const unique = new Map<string, Node | undefined>()
    for (const node of operators) unique.set(node.name, unique.has(node.name) ? undefined : node)
    let compared = 0
    for (const [tensor, wall, time, wait, workers, slowest] of rows) {
      const node = unique.get(String(tensor))
      if (!node) continue // a name that several nodes share
      compared++
      expect([node.wall_ns, node.operator_time_ns, node.wait_ns, node.workers]).toEqual(
        [wall, time, wait, workers].map(Number),
      )
      const [mean, most] = [Number(time) / Number(workers), Number(slowest)]
      if (Number(workers) > 1) expect(node.imbalance_share).toBeCloseTo((most - mean) / most, 9)
      else expect(node.imbalance_share).toBeNull()
    }
    expect(compared).toBeGreaterThan(operators.length / 3)
  })
})

test('work of nodes sums to that of the rows of operators', async () => {
  const log = inputOf('examples/moe.ggtrace.gz')
  const { operators } = await analyze(log)
  const { nodes } = await graphOf(log, 0) // the only prefill
  const rows = operators.rows.filter(({ phase }) => phase === 'prefill')
  for (const key of [
    'flop',
    'bytes_read',
    'bytes_written',
    'weight_bytes',
    'wall_ns',
    'operator_time_ns',
    'wait_ns',
  ] as const) {
    const sum = (of: readonly { readonly [K in typeof key]: number | null }[]) =>
      of.reduce((sum, row) => sum + (row[key] ?? 0), 0)
    expect(sum(nodes)).toBeCloseTo(sum(rows), 3)
  }
  const experts = nodes.filter(({ op }) => op === 'MUL_MAT_ID').map(({ experts }) => experts!)
  expect(Math.min(...experts)).toBeGreaterThanOrEqual(2)
  expect(Math.max(...experts)).toBeLessThanOrEqual(8)
})

test('by default the second decode, else the first, else the first call', async () => {
  expect((await graphOf(inputOf('examples/moe.ggtrace.gz'))).call).toBe(2)
  expect(await graphOf(smallRun())).toMatchObject({ call: 0, phase: 'decode', tokens: 1, left_out: 0 })
  const { series, undetermined } = await analyze(inputOf('examples/moe.ggtrace.gz'), {
    series: ['graph', 'memory'],
    call: 99,
  })
  expect(series).toBeUndefined()
  expect(undetermined.filter(({ what }) => what.startsWith('series.')).map(({ what, why }) => [what, why])).toEqual([
    ['series.graph', 'no operators of call 99 were recorded'],
    ['series.memory', 'no operators of call 99 were recorded'],
  ])
})

test('views, an op in place, a cache; weights and inputs apart', async () => {
  const { nodes, leaves } = await graphOf(smallRun())
  expect(nodes.map(({ name, kind, sources, reads_from }) => [name, kind, sources, reads_from])).toEqual([
    ['a-0', 'operator', [-2, -3], []],
    ['b-0', 'operator', [-4, -3], []],
    ['a-0 (view)', 'view', [0], []],
    ['cache_k_l0 (view)', 'operator', [2, -5], [0]],
    ['c-0', 'operator', [1], [1]],
    ['d-0', 'operator', [4], [4]],
  ])
  expect(leaves.map(({ id, name, kind, buffer, offset }) => [id, name, kind, buffer, offset])).toEqual([
    [-2, 'blk.0.w0.weight', 'weight', 'weights', 0],
    [-3, 'inp', 'input', 'compute', 0],
    [-4, 'blk.0.w1.weight', 'weight', 'weights', 1000],
    [-5, 'cache_k_l0', 'cache', 'kv-cache', 0],
  ])
})

/** A call of nodes `[name, op, sources, viewOf]` in this order, all at one address of the arena. */
const callOf = (
  nodes: readonly (readonly [string, string, readonly number[], number?])[],
  computed: readonly number[],
): EventInput => ({
  name: 'made',
  *events(names) {
    yield [
      { kind: 'input', format: 'made', clock: 'MONOTONIC', originNs: 0n, attributes: {} },
      { kind: 'buffer', id: 0, usage: 'compute', label: 'arena', offsetsFrom: 'its base', sizeBytes: 64 },
      ...nodes.map(([name, op, sources, viewOf], id): TraceEvent => {
        const at = { buffer: 0, offset: 0, sizeBytes: 64 }
        return { ...UNKNOWN.tensor, id, name: names.id(name), op: names.id(op), sources, viewOf, ...at }
      }),
    ]
    for (let from = 0; from < computed.length; from += 1000) {
      yield computed.slice(from, from + 1000).map((tensor, i): TraceEvent => {
        const startNs = 10 * (from + i)
        return { ...UNKNOWN.operator, tensor, call: 0, startNs, endNs: startNs + 5, waitEndNs: startNs + 5 }
      })
    }
    yield [{ ...UNKNOWN.token, call: 0, phase: 'prefill', startNs: 0, endNs: 10 * computed.length }]
  },
})

test('memory that is used again is other data; parts of a tensor have several writers; a second graph run has other nodes', async () => {
  const made = callOf(
    [
      ['state', '', []],
      ['a', 'ADD', []],
      ['b', 'ADD', []], // at the same address, but it does not read a
      ['part 1', 'CPY', [1, 0], 0],
      ['part 2', 'CPY', [2, 0], 0],
      ['all', 'VIEW', [0], 0],
      ['sum', 'SUM', [5]],
      ['elsewhere', 'MUL', [6]], // not computed here
      ['last', 'ADD', [7, 1]],
    ],
    [1, 2, 3, 4, 6, 8, 1, 2, 3, 4, 6, 8],
  )
  const { nodes, leaves } = await graphOf(made)
  const shown = nodes.map(({ name, kind, run, reads_from }) =>
    `${name}: ${kind} ${run} ${reads_from.map((id) => `${nodes[id]!.name}/${nodes[id]!.run}`).join(' ')}`.trimEnd(),
  )
  expect(shown.slice(0, 8)).toEqual([
    'a: operator 0',
    'b: operator 0',
    'part 1: operator 0 a/0',
    'part 2: operator 0 b/0 part 1/0',
    'all: view 0',
    'sum: operator 0 part 1/0 part 2/0',
    'elsewhere: not recorded 0',
    'last: operator 0 a/0',
  ])
  expect(shown.slice(8)).toEqual([
    'a: operator 1',
    'b: operator 1',
    'part 1: operator 1 part 1/0 part 2/0 a/1',
    'part 2: operator 1 part 1/0 part 2/0 b/1 part 1/1',
    'all: view 1',
    'sum: operator 1 part 1/0 part 2/0 part 1/1 part 2/1',
    'elsewhere: not recorded 1',
    'last: operator 1 a/1',
  ])
  expect(leaves.map(({ name }) => name)).toEqual(['state'])
})

inLong(test)('at most 65 536 nodes, the others are counted', async () => {
  const count = 66_000
  const chain = Array.from({ length: count }, (_, i) => ['n', 'ADD', i === 0 ? [] : [i - 1]] as const)
  const { nodes, nodes_max, left_out } = await graphOf(
    callOf(
      chain,
      chain.map((_, i) => i),
    ),
  )
  expect([nodes.length, nodes_max, left_out]).toEqual([65_536, 65_536, count - 65_536])
  expect(nodes.every(({ reads_from }, i) => (i === 0 ? reads_from.length === 0 : reads_from[0] === i - 1))).toBe(true)
})
