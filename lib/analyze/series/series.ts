import { blockOf } from '../../model/blocks.ts'
import { DefaultMap } from '../../model/default-map.ts'
import type { ExpertsEvent } from '../../model/events.ts'
import { formatShape, parseTensorName } from '../../model/tensors.ts'
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
import { Offsets } from './offsets.ts'

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
  readonly leaves: GraphLeaf[] = []
  leftOut = 0
  private run = 0
  /** By tensor: its node in the current graph run, and its leaf. */
  private ids = new Map<number, number>()
  private computed = new Set<number>()
  private readonly leafIds = new Map<number, number>()
  private readonly writers: DataWriters<number>

  constructor(private readonly context: Defined) {
    this.writers = new DataWriters(context.tensors, context.views)
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
    const sources = tensors[id]!.sources.map((source) => this.ids.get(source) ?? this.leafIds.get(source) ?? LEFT_OUT)
    this.nodes.push({
      id: number,
      kind: isView(this.opOf(id)) ? 'view' : 'not recorded',
      ...this.described(id),
      run: this.run,
      ...{ order: null, fused_into: null, sources, reads_from: [] },
      ...{ start_ns: null, wall_ns: null, operator_time_ns: null, wait_ns: null, workers: null, imbalance_share: null },
      ...{ flop: null, bytes_read: null, bytes_written: null, weight_bytes: null, experts: null },
    })
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

/** The graph of a call. `chosen`: by step, the number of experts that were chosen; 0: not known. */
function graphOfCall(operators: CallOperators, steps: Steps, chosen: Int32Array, context: Defined): GraphSeries {
  const { call, event } = operators
  const builder = new Builder(context)
  const byStep = workersOf(operators, steps)
  const originNs = event?.startNs ?? steps.startNs[0]!
  for (let step = 0; step < steps.count; step++) {
    const [first, last] = [steps.tensor[step]!, steps.last[step]!]
    // Operators in no call are of any number of graphs.
    if (call < 0 && builder.isNewRun(first)) break
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
  return {
    call,
    phase: event?.phase ?? 'none',
    tokens: event && event.tokens >= 0 ? event.tokens : null,
    nodes_max: NODES_MAX,
    left_out: builder.leftOut,
    nodes: builder.nodes,
    leaves: builder.leaves,
  }
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
export class SeriesOfCalls implements Statistic<object, 'experts'> {
  readonly kinds = ['experts'] as const
  private readonly offsets: Offsets | undefined
  private readonly ofGraph: ChosenCall | undefined
  private readonly ofMemory: ChosenCall | undefined
  private graph: GraphSeries | undefined
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

  event(event: ExpertsEvent): void {
    this.offsets?.experts(event)
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
    if (this.ofGraph?.isChosen(operators)) this.graph = graphOfCall(operators, steps, this.chosen(), this.defined)
  }

  finish(firstNs: number): { readonly series: Series; readonly unknownSeries: readonly Undetermined[] } {
    const { offsets, live, graph } = this
    const series = {
      ...(offsets && { offsets: offsets.finish(firstNs) }),
      ...(live && { memory: live.finish(firstNs) }),
      ...(graph && { graph }),
    }
    return { series, unknownSeries: this.unknown() }
  }

  /** What was asked for and is missing, and why. */
  private unknown(): Undetermined[] {
    const { names, shown, live, graph } = this
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
