import type { BufferEvent, ExpertsEvent } from '../../model/events.ts'
import type { Undetermined } from '../common/figures.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import type { Steps } from '../graph/operators/steps.ts'
import { LiveBytes } from '../memory/live-bytes.ts'
import { ChosenCall } from './chosen-call.ts'
import type { GraphSeries, Series, SeriesName } from './figures.ts'
import { type GraphContext, graphOfCall } from './graph-of-call.ts'
import { Offsets } from './offsets.ts'

/** Definitions that figures over time are described from. */
export interface SeriesContext extends GraphContext {
  readonly buffers: ReadonlyMap<number, BufferEvent>
}

/** The graph shows a decode whose caches are warm; live bytes are the same in each. */
const DECODE_OF_GRAPH = 2
const DECODE_OF_MEMORY = 1

/** Collects the figures over time that were asked for, other than the table of calls. */
export class SeriesOfCalls {
  private readonly offsets: Offsets | undefined
  private readonly ofGraph: ChosenCall | undefined
  private readonly ofMemory: ChosenCall | undefined
  private graph: GraphSeries | undefined
  private live: LiveBytes | undefined

  /** `call`: the one that graph and memory show; by default a decode call. */
  constructor(
    private readonly context: SeriesContext,
    private readonly names: readonly SeriesName[],
    private readonly call: number | undefined,
  ) {
    if (names.includes('offsets')) this.offsets = new Offsets(context)
    if (names.includes('graph')) this.ofGraph = new ChosenCall(call, DECODE_OF_GRAPH)
    if (names.includes('memory')) this.ofMemory = new ChosenCall(call, DECODE_OF_MEMORY)
  }

  experts(event: ExpertsEvent): void {
    this.offsets?.experts(event)
  }

  /** What is to get the live bytes of a call; undefined for other calls. */
  liveOf(operators: CallOperators): LiveBytes | undefined {
    if (!this.ofMemory?.isChosen(operators)) return undefined
    const { call, event } = operators
    this.live = new LiveBytes(call, event?.phase ?? 'none', this.context)
    return this.live
  }

  /** Adds a call. `chosen`: by step, the number of experts that were chosen. */
  add(operators: CallOperators, steps: Steps, chosen: Int32Array): void {
    this.offsets?.add(steps)
    if (this.ofGraph?.isChosen(operators)) this.graph = graphOfCall(operators, steps, chosen, this.context)
  }

  /** `firstNs`: time of the first event. */
  finish(firstNs: number): Series {
    const { offsets, live, graph } = this
    return {
      ...(offsets && { offsets: offsets.finish(firstNs) }),
      ...(live && { memory: live.finish(firstNs) }),
      ...(graph && { graph }),
    }
  }

  /** What was asked for and is missing, and why. */
  unknown(): Undetermined[] {
    const { names, call, live, graph } = this
    const hint = 'record with --level op'
    const why = call === undefined ? 'no operators were recorded' : `no operators of call ${call} were recorded`
    const missing = names.filter((name) => (name === 'graph' && !graph) || (name === 'memory' && !live))
    const found: Undetermined[] = missing.map((name) => ({ what: `series.${name}`, why, hint }))
    if (graph && graph.nodes.length > 1 && graph.nodes.every(({ reads_from }) => reads_from.length === 0)) {
      const why = 'the log does not contain which node computed the sources of others'
      found.push({ what: 'series.graph.nodes.reads_from', why, hint: 'record the run with ggml2perfetto record' })
    }
    return found
  }
}
