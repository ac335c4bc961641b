import { DefaultMap, getOrMake } from '../../model/default-map.ts'
import type { CopyEvent, GraphEvent, GraphNodesEvent, Phase, RefusalEvent, TokenEvent } from '../../model/events.ts'
import { GraphDefinitions } from '../../model/graph-nodes.ts'
import { copiedName } from '../../model/tensors.ts'
import type { Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { MovedOperators, OutsideLayers, PhasePlacement, PlacementFigures, RefusedOp } from './figures.ts'
import { type GraphParts, GraphPartsFinder, type KnownGraph } from './graph-parts.ts'
import { homesOf, layerRows, placeOf } from './homes.ts'
import { inOrder, type MovedOf, movedRows } from './moved.ts'
import { Refusals } from './refusals.ts'

/** Calls whose graphs wait for the call's end; copies of a thread that do. */
const OPEN_MAX = 1 << 12
const COPIES_MAX = 1 << 14
/** Graphs that were not computed in a call yet: those of calls that are in no sample never are. */
const PENDING_MAX = 1 << 10

/** The figures of one input; waits are those of the time of its calls. */
export type PlacementOfInput = Omit<PlacementFigures, 'phases' | 'devices' | 'options' | 'refusals' | 'moved'> & {
  readonly phases: readonly Omit<PhasePlacement, 'waiting_ns'>[]
  readonly refusals: readonly Omit<RefusedOp, 'decided'>[]
  readonly moved: readonly Omit<MovedOperators, 'decided'>[]
}

/** What the graph runs of the calls of a phase sum up to. */
class PhaseSums {
  calls = 0
  splits = 0
  inputs = 0
  inputBytes = 0
  copies = 0
  copiedBytes = 0
  copyingNs = 0
  readonly backends = new DefaultMap<number, { splits: number; nodes: number; ns: number }>(() => {
    return { splits: 0, nodes: 0, ns: 0 }
  })
  readonly parts = new Map<
    GraphParts,
    { readonly examples: Int32Array; runs: number; ns: number; inputBytes: number }
  >()
}

/** Sums the graph runs of calls, by phase and by what they consist of. A log contains a call after its graphs and copies. */
export class Placement implements Statistic<object, 'graph-nodes' | 'refusal' | 'graph' | 'copy' | 'token'> {
  readonly kinds = ['graph-nodes', 'refusal', 'graph', 'copy', 'token'] as const
  private readonly finder: GraphPartsFinder
  private readonly refusals: Refusals
  private readonly definitions = new GraphDefinitions(PENDING_MAX)
  private readonly known = new Map<number, KnownGraph>()
  private readonly open = new Map<number, GraphEvent[]>()
  private readonly copies = new DefaultMap<number, CopyEvent[]>(() => [])
  private readonly phases = new DefaultMap<Phase, PhaseSums>(() => new PhaseSums())

  constructor(private readonly defined: Defined) {
    this.finder = new GraphPartsFinder(defined)
    this.refusals = new Refusals(defined.names)
  }

  event(event: GraphNodesEvent | RefusalEvent | GraphEvent | CopyEvent | TokenEvent): void {
    switch (event.kind) {
      case 'graph-nodes':
        return this.definitions.add(event)
      case 'refusal':
        return this.refusals.add(event)
      case 'graph':
        return this.graph(event)
      case 'copy': {
        const copies = this.copies.of(event.tid)
        if (copies.length < COPIES_MAX && this.isBetween(event)) copies.push(event)
        return
      }
      case 'token':
        return this.ended(event)
    }
  }

  private graph(event: GraphEvent): void {
    if (event.call < 0) return
    const graphs = this.open.get(event.call)
    if (graphs) graphs.push(event)
    else this.open.set(event.call, [event])
    if (this.open.size > OPEN_MAX) this.open.delete(this.open.keys().next().value!)
  }

  /** Between backends: also experts, which the scheduler writes to its own copy. */
  private isBetween({ what, tensor }: CopyEvent): boolean {
    if (what !== 'set') return what === 'copy'
    const { tensors, names } = this.defined
    return copiedName(names.text(tensors[tensor]?.name ?? 0)) !== undefined
  }

  /** The parts of a graph, found at its first run: all of its tensors are defined then. */
  private knownGraph({ graph = -1 }: GraphEvent): KnownGraph | undefined {
    const known = this.known.get(graph)
    const nodes = known ? undefined : this.definitions.take(graph)
    if (!nodes) return known
    const found = this.finder.of(nodes)
    this.known.set(graph, found)
    return found
  }

  private ended({ call, tid, phase, startNs, endNs }: TokenEvent): void {
    const graphs = this.open.get(call)
    this.open.delete(call)
    const copies = this.copies.get(tid) ?? []
    // The records of a program's first calls are written later than those of its next call.
    this.copies.set(
      tid,
      copies.filter((copy) => copy.startNs > endNs),
    )
    if (!graphs || call < 0) return
    const sums = this.phases.of(phase)
    sums.calls++
    this.addGraphs(sums, graphs)
    for (const copy of copies) {
      if (copy.startNs < startNs || copy.startNs > endNs) continue // of calls that are not counted
      sums.copies++
      sums.copiedBytes += copy.bytes
      sums.copyingNs += copy.endNs - copy.startNs
    }
  }

  /** Of several splits that read a copy, the scheduler makes it for the first one. */
  private addGraphs(sums: PhaseSums, graphs: readonly GraphEvent[]): void {
    const made = new Set<number>()
    let before = -1
    for (const graph of graphs) {
      const { split = -1 } = graph
      if (split <= before) made.clear() // another micro-batch
      before = split
      this.add(sums, graph, made)
    }
  }

  private add(sums: PhaseSums, graph: GraphEvent, made: Set<number>): void {
    const ns = graph.endNs - graph.startNs
    sums.splits++
    const backend = sums.backends.of(graph.backend)
    backend.splits++
    backend.nodes += graph.nodes
    backend.ns += ns
    const known = this.knownGraph(graph)
    if (!known) return
    let inputBytes = 0
    for (const copy of known.copies) {
      if (made.has(copy)) continue
      made.add(copy)
      sums.inputs++
      inputBytes += Math.max(0, this.defined.tensors[copy]!.sizeBytes)
    }
    sums.inputBytes += inputBytes
    const parts = getOrMake(sums.parts, known.parts, () => ({
      examples: known.examples,
      runs: 0,
      ns: 0,
      inputBytes: 0,
    }))
    parts.runs++
    parts.ns += ns
    parts.inputBytes += inputBytes
  }

  finish(): { readonly placement: PlacementOfInput | null } {
    const { names } = this.defined
    const all = new Set([...this.phases.values()].flatMap(({ parts }) => [...parts.keys()]))
    if (all.size === 0) return { placement: null }
    const backends = [
      ...new Set([...this.phases.values()].flatMap((sums) => [...sums.backends.keys()].map((id) => names.text(id)))),
    ]
    const devices = backends.filter((name) => placeOf(name) === name && name !== placeOf(''))
    const homes = homesOf(this.defined, this.finder, [...all], devices)
    const moved: MovedOf = { defined: this.defined, finder: this.finder, homes, devices, refusals: this.refusals }
    return {
      placement: {
        refusals: this.refusedOps(all),
        backends,
        layers: layerRows(homes),
        outside_layers: this.outsideLayers(all),
        phases: [...this.phases].map(([phase, sums]) => this.phaseRow(phase, sums)),
        moved: [...this.phases]
          .flatMap(([phase, { calls, parts }]) => movedRows(moved, phase, calls, parts))
          .sort((a, b) => b.time_ns - a.time_ns),
      },
    }
  }

  private phaseRow(phase: Phase, sums: PhaseSums): PlacementOfInput['phases'][number] {
    const { names } = this.defined
    const ops = new DefaultMap<number, Map<string, number>>(() => new Map())
    for (const [{ backend, groups }, { runs }] of sums.parts) {
      const counts = ops.of(backend)
      for (const { op, count } of groups) counts.set(op, (counts.get(op) ?? 0) + count * runs)
    }
    const by_backend = [...sums.backends].map(([backend, { splits, nodes, ns }]) => {
      return { backend: names.text(backend), splits, nodes, ops: inOrder(ops.of(backend)), time_ns: ns }
    })
    return {
      ...{ phase, calls: sums.calls, splits: sums.splits, by_backend, inputs: sums.inputs },
      ...{ input_bytes: sums.inputBytes, copies: sums.copies, copied_bytes: sums.copiedBytes },
      copying_ns: sums.copyingNs,
    }
  }

  private refusedOps(all: ReadonlySet<GraphParts>): PlacementOfInput['refusals'][number][] {
    const { names } = this.defined
    const computed = new Set([...all].flatMap(({ groups }) => groups.map(({ op }) => op)))
    const rows = new Map<string, PlacementOfInput['refusals'][number]>()
    for (const refusal of this.refusals.all) {
      const { question, tensors } = refusal
      if (question === 'supports-memory') continue
      const [device, op] = [names.text(refusal.device), names.text(refusal.op)]
      const key = [device, op, question].join('\0')
      const before = rows.get(key)
      rows.set(key, {
        ...{ device, op, question, is_computed: computed.has(op), shapes: (before?.shapes ?? 0) + 1 },
        columns_max: Math.max(before?.columns_max ?? 0, tensors[0]?.ne[1] ?? 0),
        example: before?.example ?? this.refusals.describe(refusal),
      })
    }
    return [...rows.values()]
  }

  private outsideLayers(all: ReadonlySet<GraphParts>): OutsideLayers[] {
    const rows = new Map<string, OutsideLayers>()
    for (const { backend, groups } of all)
      for (const { op, layer, role, weights } of groups) {
        if (layer >= 0 || weights === undefined) continue
        const row = { role, op, backend: this.defined.names.text(backend), buffer: weights }
        rows.set(Object.values(row).join('\0'), row)
      }
    return [...rows.values()]
  }
}
