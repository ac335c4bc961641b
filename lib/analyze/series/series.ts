import type { ExpertsEvent, GraphEvent, GraphNodesEvent, TokenEvent } from '../../model/events.ts'
import type { GpuEvent } from '../../model/gpu-events.ts'
import { orNull } from '../../model/units.ts'
import type { Undetermined } from '../common/figures.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'
import { notRead } from '../graph/work.ts'
import { LiveBytes } from '../memory/live-bytes.ts'
import type { GraphNode, GraphSeries, Series, SeriesName } from './figures.ts'
import { GpuNodes } from './gpu-nodes.ts'
import { GraphBuilder, NODES_MAX, type Writable } from './graph-builder.ts'
import { Offsets } from './offsets.ts'
import { type Split, Splits } from './splits.ts'
import { type KindOf, workersOf } from './step-workers.ts'

/** A graph, with what GPUs that are read later need: its nodes, by node its tensor, and the time from which its times count. */
interface BuiltGraph {
  readonly graph: GraphSeries
  readonly nodes: readonly Writable<GraphNode>[]
  readonly tensorIds: readonly number[]
  readonly originNs: number
}

/** The operators of a call. `chosen`: by step, the number of experts that were chosen; 0: not known. */
interface Measured {
  readonly operators: CallOperators
  readonly steps: Steps
  readonly chosen: Int32Array
  readonly kindOf: KindOf
}

/** The graph of a call; without `measured`, no operator of it was recorded. */
function graphOfCall(
  { call, event }: Pick<CallOperators, 'call' | 'event'>,
  context: Defined,
  splits: readonly Split[],
  measured?: Measured,
): BuiltGraph {
  const builder = new GraphBuilder(context, splits)
  const originNs = event?.startNs ?? measured?.steps.startNs[0] ?? 0
  if (measured) addSteps(builder, call, originNs, context, splits, measured)
  else for (const split of splits) builder.unrecorded(split)
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

/** Adds the steps of a call in the order of time, and between them the splits of which no operator was recorded. */
function addSteps(
  builder: GraphBuilder,
  call: number,
  originNs: number,
  context: Defined,
  splits: readonly Split[],
  { operators, steps, chosen, kindOf }: Measured,
): void {
  const unrecorded = withoutOperators(splits, steps)
  const byStep = workersOf(operators, steps, kindOf)
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
    const { timeNs, waitNs, slowestNs, byKind } = byStep.of(step)
    const workers = steps.workers[step]!
    Object.assign(node, {
      order: step,
      start_ns: steps.startNs[step]! - originNs,
      wall_ns: steps.waitEndNs[step]! - steps.startNs[step]!,
      operator_time_ns: timeNs,
      wait_ns: waitNs,
      workers,
      imbalance_share: workers > 1 && slowestNs > 0 ? (slowestNs - timeNs / workers) / slowestNs : null,
      by_core_kind: byKind,
      flop: orNull(work.flop),
      bytes_read: work.bytesRead < 0 ? null : work.bytesRead - less,
      bytes_written: orNull(work.bytesWritten),
      weight_bytes: work.weightBytes < 0 ? null : work.weightBytes - less,
      experts: work.expertsRead > 0 ? chosen[step]! || (work.isUpperBound ? null : work.expertsRead) : null,
    })
  }
  for (const split of unrecorded) builder.unrecorded(split)
}

/** Splits on backends whose operators were not recorded. */
function withoutOperators(splits: readonly Split[], { count, last }: Steps): Split[] {
  const computed = new Set(last.subarray(0, count))
  return splits.filter(({ nodes }) => !nodes.some((node) => computed.has(node)))
}

/** Chooses one call: the one with this number, or the n-th decode call, else an earlier one, else the first call of all. */
class ChosenCall {
  /** How well the latest choice fits; a later call must fit better. */
  private fit = 0
  private decodes = 0

  constructor(
    private readonly call: number | undefined,
    private readonly nthDecode: number,
  ) {}

  /** Is this call a better choice than those before it? Operators of a call may come in several parts; the first one counts. */
  isChosen({ call, event, isFurther }: Pick<CallOperators, 'call' | 'event' | 'isFurther'>): boolean {
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
/** Calls until it is known that a call has no operators: those of a call may follow it. */
const CALLS_OPEN = 32

/** Collects the figures over time that were asked for, other than the table of calls. */
export class SeriesOfCalls implements Statistic<object, 'experts' | 'graph-nodes' | 'graph' | 'gpu' | 'token'> {
  readonly kinds = ['experts', 'graph-nodes', 'graph', 'gpu', 'token'] as const
  private readonly splits = new Splits()
  private readonly gpu = new GpuNodes()
  private readonly offsets: Offsets | undefined
  private readonly ofGraph: ChosenCall | undefined
  private readonly ofMemory: ChosenCall | undefined
  private readonly ended: TokenEvent[] = []
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
    private readonly kindOf: KindOf = () => undefined,
  ) {
    if (names.includes('offsets')) this.offsets = new Offsets(defined)
    if (names.includes('graph')) this.ofGraph = new ChosenCall(shown, DECODE_OF_GRAPH)
    if (names.includes('memory')) this.ofMemory = new ChosenCall(shown, DECODE_OF_MEMORY)
  }

  event(event: ExpertsEvent | GraphNodesEvent | GraphEvent | GpuEvent | TokenEvent): void {
    if (event.kind === 'experts') this.offsets?.experts(event)
    else if (!this.ofGraph) return
    else if (event.kind === 'token') this.callEnded(event)
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
    const measured = { operators, steps, chosen: this.chosen(), kindOf: this.kindOf }
    this.built = graphOfCall(operators, this.defined, splits, measured)
    this.gpu.shown = operators.call
  }

  private callEnded(event: TokenEvent): void {
    this.ended.push(event)
    if (this.ended.length > CALLS_OPEN) this.withoutOperators(this.ended.shift()!)
  }

  /** Of a call with operators, the splits were taken: no CPU computes anything of the others, or their operators were not recorded. */
  private withoutOperators(event: TokenEvent): void {
    const { call } = event
    const splits = this.splits.take(call)
    if (splits.length === 0 || !this.ofGraph?.isChosen({ call, event, isFurther: false })) return
    this.built = graphOfCall({ call, event }, this.defined, splits)
    this.gpu.shown = call
  }

  finish(firstNs: number): { readonly series: Series; readonly unknownSeries: readonly Undetermined[] } {
    const { offsets, live } = this
    for (const event of this.ended.splice(0)) this.withoutOperators(event)
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
