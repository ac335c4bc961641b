import type { ExpertsEvent } from '../../model/events.ts'
import type { Undetermined } from '../common/figures.ts'
import type { CallParts, Statistic } from '../common/statistic.ts'
import type { Defined } from '../graph/defined.ts'
import type { CallOperators } from '../graph/operators/call-operators.ts'
import { LiveBytes } from '../memory/live-bytes.ts'
import type { GraphSeries, Series, SeriesName } from './figures.ts'
import { graphOfCall } from './graph-of-call.ts'
import { Offsets } from './offsets.ts'

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
