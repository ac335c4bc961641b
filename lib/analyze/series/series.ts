import { blockOf } from '../../model/blocks.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { ExpertsEvent, GraphEvent, GraphNodesEvent } from '../../model/events.ts'
import type { GpuEvent } from '../../model/gpu-events.ts'
import { copiedName, formatShape, parseTensorName } from '../../model/tensors.ts'
import { orNull } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import { DataWriters } from '../graph/data-writers.ts'
import type { Defined } from '../graph/defined.ts'
import { layerOf } from '../graph/layers.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'
import { nodesOf } from '../graph/plan.ts'
import { isView } from '../graph/views.ts'
import { notRead } from '../graph/work.ts'
import { LiveBytes } from '../memory/live-bytes.ts'
import type { GraphLeaf, GraphNode, GraphSeries, Series, SeriesName } from './figures.ts'
import { GpuNodes } from './gpu-nodes.ts'
import { Offsets } from './offsets.ts'
import { type Split, Splits } from './splits.ts'

/** Nodes, and leaves, at most. */
const NODES_MAX = 1 << 16
/** In place of a node that is left out. */
const LEFT_OUT = -1
const FIRST_LEAF = -2

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** What is measured of the workers of a step. */
interface OfWorkers {
  timeNs: number
  waitNs: number
  slowestNs: number
}

/** Collects the nodes of a call, step by step. */
class Builder {
  readonly nodes: Writable<GraphNode>[] = []
  /** By node, its tensor. */
  readonly tensorIds: number[] = []
  readonly leaves: GraphLeaf[] = []
  leftOut = 0
  private run = 0
  /** By tensor: its node in the current graph run, and its leaf. */
  private ids = new Map<number, number>()
  private computed = new Set<number>()
  private readonly leafIds = new Map<number, number>()
  /** By name, the node of which a scheduler copies the result to another backend. */
  private readonly byName = new Map<string, number>()
  private splitOf = new Map<number, number>()
  private readonly writers: DataWriters<number>

  constructor(
    private readonly context: Defined,
    private readonly splits: readonly Split[],
  ) {
    this.writers = new DataWriters(context.tensors, context.views)
    for (const [i, { nodes }] of splits.entries()) for (const node of nodes) this.splitOf.set(node, i)
  }

  /** Adds the nodes of a split of which no operator was recorded. */
  unrecorded({ nodes }: Split): void {
    for (const node of nodes) if (this.context.tensors[node] && !this.ids.has(node)) this.add(node)
  }

  /** Does a step begin another graph run? It does where the current one contains its node already. */
  isNewRun(first: number): boolean {
    return this.computed.has(first)
  }

  /** Adds a step; returns its last node, or undefined where that is left out. */
  step(first: number, last: number): Writable<GraphNode> | undefined {
    if (this.isNewRun(first)) {
      this.run++
      this.ids = new Map()
      this.computed = new Set()
    }
    const fused = nodesOf(this.context.tensors, first, last)
    for (const node of fused) {
      this.computed.add(node)
      this.add(node)
    }
    const [result, ...others] = fused.reverse().map((node) => this.nodes[this.ids.get(node)!])
    const reads = this.writers.step(first, last, result?.id ?? LEFT_OUT)
    if (!result) return undefined
    result.kind = 'operator'
    result.reads_from = [...reads].filter((id) => id !== LEFT_OUT).sort((a, b) => a - b)
    for (const node of others) if (node) Object.assign(node, { kind: 'fused', fused_into: result.id })
    return result
  }

  /** Adds a tensor, after those that it is computed from. */
  private add(tensor: number): void {
    const stack = [{ id: tensor, isOpen: false }]
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      if (!top.isOpen) {
        top.isOpen = true
        const missing = this.context.tensors[top.id]!.sources.filter((id) => !this.isKnown(id))
        stack.push(...missing.reverse().map((id) => ({ id, isOpen: false })))
        continue
      }
      stack.pop()
      // It may be a source of several of the tensors above.
      if (!this.ids.has(top.id)) this.push(top.id)
    }
  }

  /** Is a source a node already, or a leaf? */
  private isKnown(id: number): boolean {
    if (this.ids.has(id)) return true
    const { op, sources } = this.context.tensors[id]!
    if (op !== 0 || sources.length > 0) return false
    const copied = copiedName(this.context.names.text(this.context.tensors[id]!.name))
    if (copied !== undefined && this.byName.has(copied)) return true
    if (!this.leafIds.has(id)) this.addLeaf(id)
    return true
  }

  private push(id: number): void {
    if (this.nodes.length >= NODES_MAX) {
      this.leftOut++
      this.ids.set(id, LEFT_OUT)
      return
    }
    const { tensors } = this.context
    const number = this.nodes.length
    this.ids.set(id, number)
    this.tensorIds.push(id)
    this.byName.set(this.context.names.text(tensors[id]!.name), number)
    const sources = tensors[id]!.sources.map((source) => this.idOf(source))
    this.nodes.push({
      id: number,
      kind: isView(this.opOf(id)) ? 'view' : 'not recorded',
      ...this.described(id),
      ...this.placeOf(id),
      run: this.run,
      ...{ order: null, fused_into: null, sources, reads_from: [] },
      ...{ start_ns: null, wall_ns: null, operator_time_ns: null, wait_ns: null, workers: null, imbalance_share: null },
      ...{ flop: null, bytes_read: null, bytes_written: null, weight_bytes: null, experts: null },
    })
  }

  /** Of a copy that a scheduler made for another backend, the node whose result it is. */
  private idOf(source: number): number {
    const copied = copiedName(this.context.names.text(this.context.tensors[source]!.name))
    const original = copied === undefined ? undefined : this.byName.get(copied)
    return original ?? this.ids.get(source) ?? this.leafIds.get(source) ?? LEFT_OUT
  }

  private placeOf(id: number) {
    const split = this.splitOf.get(id) ?? null
    return { backend: split === null ? null : this.context.names.text(this.splits[split]!.backend), split }
  }

  private addLeaf(id: number): void {
    if (this.leaves.length >= NODES_MAX) {
      this.leftOut++
      this.leafIds.set(id, LEFT_OUT)
      return
    }
    const { tensors, buffers, names, isWeight } = this.context
    const tensor = tensors[id]!
    const buffer = buffers.get(tensor.buffer)
    const number = FIRST_LEAF - this.leaves.length
    this.leafIds.set(id, number)
    const { op: _, ...described } = this.described(id)
    this.leaves.push({
      id: number,
      kind: isWeight(tensor) ? 'weight' : buffer?.usage === 'kv-cache' ? 'cache' : 'input',
      ...described,
      buffer: buffer?.usage ?? null,
      buffer_name: buffer ? names.text(buffer.name ?? 0) : null,
      offset: tensor.offset ?? null,
    })
  }

  private described(id: number) {
    const { tensors, names } = this.context
    const tensor = tensors[id]!
    const [name, op] = [names.text(tensor.name), this.opOf(id)]
    const { role } = parseTensorName(name)
    return {
      name,
      op,
      role,
      layer: layerOf(tensor, tensors, names),
      block: blockOf(role, op),
      type: names.text(tensor.type),
      shape: tensor.ne ? formatShape(tensor.ne) : '',
      size_bytes: tensor.sizeBytes < 0 ? null : tensor.sizeBytes,
    }
  }

  private opOf(id: number): string {
    return this.context.names.text(this.context.tensors[id]!.op)
  }
}

/** A graph, with what GPUs that are read later need: its nodes, by node its tensor, and the time from which its times count. */
interface BuiltGraph {
  readonly graph: GraphSeries
  readonly nodes: readonly Writable<GraphNode>[]
  readonly tensorIds: readonly number[]
  readonly originNs: number
}

/** The graph of a call. `chosen`: by step, the number of experts that were chosen; 0: not known. */
function graphOfCall(
  operators: CallOperators,
  steps: Steps,
  chosen: Int32Array,
  context: Defined,
  splits: readonly Split[],
): BuiltGraph {
  const { call, event } = operators
  const builder = new Builder(context, splits)
  const unrecorded = withoutOperators(splits, steps)
  const byStep = workersOf(operators, steps)
  const originNs = event?.startNs ?? steps.startNs[0]!
  for (let step = 0; step < steps.count; step++) {
    const [first, last] = [steps.tensor[step]!, steps.last[step]!]
    // Operators in no call are of any number of graphs.
    if (call < 0 && builder.isNewRun(first)) break
    while (unrecorded.length > 0 && unrecorded[0]!.startNs <= steps.startNs[step]!)
      builder.unrecorded(unrecorded.shift()!)
    const node = builder.step(first, last)
    if (!node) continue
    const work = context.works.step(first, last, context.isWeight)
    const less = work.expertsRead > 0 && chosen[step]! > 0 ? notRead(work, chosen[step]!) : 0
    const { timeNs, waitNs, slowestNs } = byStep.of(step)
    const workers = steps.workers[step]!
    Object.assign(node, {
      order: step,
      start_ns: steps.startNs[step]! - originNs,
      wall_ns: steps.waitEndNs[step]! - steps.startNs[step]!,
      operator_time_ns: timeNs,
      wait_ns: waitNs,
      workers,
      imbalance_share: workers > 1 && slowestNs > 0 ? (slowestNs - timeNs / workers) / slowestNs : null,
      flop: orNull(work.flop),
      bytes_read: work.bytesRead < 0 ? null : work.bytesRead - less,
      bytes_written: orNull(work.bytesWritten),
      weight_bytes: work.weightBytes < 0 ? null : work.weightBytes - less,
      experts: work.expertsRead > 0 ? chosen[step]! || (work.isUpperBound ? null : work.expertsRead) : null,
    })
  }
  for (const split of unrecorded) builder.unrecorded(split)
  const { nodes, leaves, tensorIds } = builder
  const tokens = event && event.tokens >= 0 ? event.tokens : null
  const facts = {
    call,
    phase: event?.phase ?? 'none',
    tokens,
    nodes_max: NODES_MAX,
    left_out: builder.leftOut,
  } as const
  return { graph: { ...facts, nodes, leaves }, nodes, tensorIds, originNs }
}

/** Splits on backends whose operators were not recorded. */
function withoutOperators(splits: readonly Split[], { count, last }: Steps): Split[] {
  const computed = new Set(last.subarray(0, count))
  return splits.filter(({ nodes }) => !nodes.some((node) => computed.has(node)))
}

function workersOf({ count, startNs, endNs, waitEndNs }: CallOperators, steps: Steps): DefaultMap<number, OfWorkers> {
  const byStep = new DefaultMap<number, OfWorkers>(() => ({ timeNs: 0, waitNs: 0, slowestNs: 0 }))
  for (let i = 0; i < count; i++) {
    const workers = byStep.of(steps.of[i]!)
    const timeNs = endNs[i]! - startNs[i]!
    workers.timeNs += timeNs
    workers.waitNs += waitEndNs[i]! - endNs[i]!
    workers.slowestNs = Math.max(workers.slowestNs, timeNs)
  }
  return byStep
}

/** Chooses one call with operators: the one with this number, or the n-th decode call, else an earlier one, else the first call of all. */
class ChosenCall {
  /** How well the latest choice fits; a later call must fit better. */
  private fit = 0
  private decodes = 0

  constructor(
    private readonly call: number | undefined,
    private readonly nthDecode: number,
  ) {}

  /** Is this call a better choice than those before it? Operators of a call may come in several parts; the first one counts. */
  isChosen({ call, event, isFurther }: CallOperators): boolean {
    if (isFurther) return false
    const fit = this.fitOf(call, event?.phase)
    if (fit <= this.fit) return false
    this.fit = fit
    return true
  }

  private fitOf(call: number, phase: string | undefined): number {
    if (this.call !== undefined) return call === this.call ? 1 : 0
    if (phase === 'decode') return 2 + Math.min(++this.decodes, this.nthDecode)
    return phase === undefined ? 1 : 2
  }
}

/** The graph shows a decode whose caches are warm; live bytes are the same in each. */
const DECODE_OF_GRAPH = 2
const DECODE_OF_MEMORY = 1

/** Collects the figures over time that were asked for, other than the table of calls. */
export class SeriesOfCalls implements Statistic<object, 'experts' | 'graph-nodes' | 'graph' | 'gpu'> {
  readonly kinds = ['experts', 'graph-nodes', 'graph', 'gpu'] as const
  private readonly splits = new Splits()
  private readonly gpu = new GpuNodes()
  private readonly offsets: Offsets | undefined
  private readonly ofGraph: ChosenCall | undefined
  private readonly ofMemory: ChosenCall | undefined
  private built: BuiltGraph | undefined
  private live: LiveBytes | undefined

  /**
   * `shown`: the call that graph and memory show; by default a decode call. `chosen`: by step of the latest call, the number of experts
   * that were chosen.
   */
  constructor(
    private readonly defined: Defined,
    private readonly names: readonly SeriesName[],
    private readonly shown: number | undefined,
    private readonly chosen: () => Int32Array,
  ) {
    if (names.includes('offsets')) this.offsets = new Offsets(defined)
    if (names.includes('graph')) this.ofGraph = new ChosenCall(shown, DECODE_OF_GRAPH)
    if (names.includes('memory')) this.ofMemory = new ChosenCall(shown, DECODE_OF_MEMORY)
  }

  event(event: ExpertsEvent | GraphNodesEvent | GraphEvent | GpuEvent): void {
    if (event.kind === 'experts') this.offsets?.experts(event)
    else if (!this.ofGraph) return
    else if (event.kind === 'gpu') this.gpu.add(event)
    else if (event.kind === 'graph') this.splits.add(event)
    else this.splits.define(event)
  }

  /** What is to get the live bytes of a call; undefined for other calls. */
  liveOf(operators: CallOperators): LiveBytes | undefined {
    if (!this.ofMemory?.isChosen(operators)) return undefined
    const { call, event } = operators
    this.live = new LiveBytes(call, event?.phase ?? 'none', this.defined)
    return this.live
  }

  call({ operators, steps }: CallParts): void {
    this.offsets?.add(steps)
    if (!this.ofGraph) return
    const splits = this.splits.take(operators.call)
    if (!this.ofGraph.isChosen(operators)) return
    this.built = graphOfCall(operators, steps, this.chosen(), this.defined, splits)
    this.gpu.shown = operators.call
  }

  finish(firstNs: number): { readonly series: Series; readonly unknownSeries: readonly Undetermined[] } {
    const { offsets, live } = this
    const graph = this.completeGraph()
    const series = {
      ...(offsets && { offsets: offsets.finish(firstNs) }),
      ...(live && { memory: live.finish(firstNs) }),
      ...(graph && { graph }),
    }
    return { series, unknownSeries: this.unknown(graph) }
  }

  private completeGraph(): GraphSeries | undefined {
    if (!this.built) return undefined
    const { graph, nodes, tensorIds, originNs } = this.built
    this.gpu.complete(nodes, tensorIds, originNs, this.defined)
    return graph
  }

  /** What was asked for and is missing, and why. */
  private unknown(graph: GraphSeries | undefined): Undetermined[] {
    const { names, shown, live } = this
    const hint = 'record with --level op'
    const why = shown === undefined ? 'no operators were recorded' : `no operators of call ${shown} were recorded`
    const missing = names.filter((name) => (name === 'graph' && !graph) || (name === 'memory' && !live))
    const found: Undetermined[] = missing.map((name) => ({ what: `series.${name}`, why, hint }))
    if (graph && graph.nodes.length > 1 && graph.nodes.every(({ reads_from }) => reads_from.length === 0)) {
      const why = 'the log does not contain which node computed the sources of others'
      found.push({ what: 'series.graph.nodes.reads_from', why, hint: 'record the run with ggml2perfetto record' })
    }
    return found
  }
}
