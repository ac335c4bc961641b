import {
  type BufferEvent,
  Inferred,
  type IssueEvent,
  type OperatorEvent,
  parseTensorName,
  type TensorEvent,
  type TokenEvent,
} from '../../lib/core.ts'
import type { ByteSource, ConvertOptions, Names, TraceEvent } from '../../lib/index.ts'
import { ISSUES } from '../../lib/model/issues.ts'
import { duration } from '../../lib/model/units.ts'
import { type Args, counterRow, factRow, sliceRow, trackRow } from './comparer.ts'
import { inferredArg, operatorArgs } from './expected-args.ts'
import { graphSlices, runName } from './expected-graphs.ts'
import { type DrawnOperator, operatorRows } from './expected-operators.ts'
import { type Sample, shownSamples } from './expected-samples.ts'
import { stateSlices } from './expected-states.ts'
import { eventsIn } from './support.ts'

/**
 * What a trace must hold, worked out from the events alone by the rules that docs/reference/tracks.md gives users. Written apart
 * from lib/timeline, and plainer: nothing is interned, encoded or written before the end.
 */

const IDLE_NS_MIN = 100e6
const ISSUES_SHOWN_MAX = 1000
const END_BIT = 1
const NO_END_BIT = 2
const TOUCHED = 'bytes touched per operator'
const BUFFERS = { weights: 'weights', 'kv-cache': 'KV cache', compute: 'compute buffer', other: 'buffer' }

/** The rows of the trace that `options` make of a log. */
export async function expectedRows(source: ByteSource, options: ConvertOptions = {}): Promise<string[]> {
  return expectedOfAll([source], options)
}

/** The same for several logs in one trace. */
export async function expectedOfAll(sources: readonly ByteSource[], options: ConvertOptions = {}): Promise<string[]> {
  const rows = [factRow('generator', 'ggml2perfetto')]
  for (const [i, source] of sources.entries()) {
    const { names, events } = await eventsIn(source, options)
    const [first, last] = options.tokens ?? [-Infinity, Infinity]
    const isShown = (call: number | undefined) => call === undefined || (call >= first && call <= last)
    const shown = events.filter((event) => !('call' in event) || isShown(event.call))
    const decodes = events.filter((event) => event.kind === 'token' && event.phase === 'decode')
    const name = `${runName(shown, names)}${i === 0 ? '' : ` (${i + 1})`}`
    const drawing = new Drawing(names, options, name, decodes)
    const prefix = sources.length > 1 ? `input_${i}.` : ''
    rows.push(...drawing.rowsOf(shown), ...factsOf(events, prefix), ...drawing.notDrawn(prefix))
    if (i > 0) rows.push(...clockFacts(events, `input_${i}.`))
  }
  return rows
}

/** The trace's attributes: of everything that was read, whatever is shown. */
function factsOf(events: readonly TraceEvent[], prefix: string): string[] {
  const count = (matches: (event: TraceEvent) => boolean) => events.filter(matches).length
  const calls = (phase: string) => events.filter((event) => event.kind === 'token' && event.phase === phase)
  const operators = events.filter((event) => event.kind === 'operator')
  const input = events.find((event) => event.kind === 'input')!
  const facts = {
    format: input.format,
    ...input.attributes,
    warmup_calls: calls('warm-up').length,
    prefill_calls: calls('prefill').length,
    prefill_tokens: calls('prefill').reduce((sum, call) => sum + Math.max(0, (call as TokenEvent).tokens), 0),
    decode_calls: calls('decode').length,
    operators: operators.length,
    workers: new Set(operators.map(({ worker }) => worker)).size,
    issues: count(({ kind }) => kind === 'issue'),
  }
  return Object.entries(facts).map(([key, value]) => factRow(prefix + key, `${value}`))
}

/** Of a further log, which is on the first one's clock. */
function clockFacts(events: readonly TraceEvent[], prefix: string): string[] {
  const { clock } = events.find((event) => event.kind === 'input')!
  const facts = {
    clock,
    clock_relation: 'the same clock, by its name, not checked',
    clock_offset_ns: '0',
    clock_error_ns: '0',
  }
  return Object.entries(facts).map(([key, value]) => factRow(prefix + key, value))
}

class Drawing {
  private readonly rows: string[] = []
  private readonly tracks = new Set<string>()
  /** Where each row ends so far; a slice that would overlap goes to the next row of its kind. */
  private readonly ends = new Map<string, number[]>()
  private readonly tensors = new Map<number, TensorEvent>()
  private readonly buffers = new Map<number, BufferEvent>()
  private readonly bufferTitles = new Map<number, string>()
  private readonly calls: TokenEvent[] = []
  private readonly detail: string
  /** By row: samples of counters that change with each operator. */
  private readonly samples = new Map<string, Sample[]>()
  private readonly operators: DrawnOperator[] = []
  private readonly short: number[] = []
  private originNs = 0n
  /** Since when nothing has been touched, unless the next operator begins then. */
  private touchedUntilNs = Infinity
  /** Of worker 0: a run ends with its call, or before a node that it computed already. */
  private graphRun = { call: -1, endNs: -1, nodes: new Set<number>(), reads: new Set<string>() }

  constructor(
    private readonly names: Names,
    private readonly options: ConvertOptions,
    private readonly root: string,
    private readonly decodes: readonly TraceEvent[],
  ) {
    this.detail = options.detail ?? 'shapes'
    this.tracks.add(root)
  }

  rowsOf(events: readonly TraceEvent[]): string[] {
    for (const event of events) this.draw(event)
    this.touchedEnd()
    this.graphRunEnds(Infinity)
    for (const [row, samples] of this.samples) {
      for (const { atNs, value } of shownSamples(samples, this.detail === 'full')) this.counter(row, atNs, value)
    }
    for (const { row, text, shortNs = 0 } of operatorRows(this.operators, this.detail, (ns) => this.at(ns))) {
      if (shortNs > 0) this.short.push(shortNs)
      if (row < 0) this.rows.push(text)
      else this.rows[row] = text
    }
    this.phases()
    this.experts(events.filter((event) => event.kind === 'operator'))
    this.issues(events.filter((event) => event.kind === 'issue'))
    const graphs = graphSlices(events, this.names, this.detail === 'full', inferredArg)
    for (const { category, name, startNs, endNs, args } of graphs) {
      this.slice('Graphs', category, name, startNs, endNs, this.detail === 'names' ? {} : args)
    }
    for (const { row, name, startNs, endNs, args } of stateSlices(events, this.names)) {
      this.slice(row, 'state', name, startNs, endNs, this.detail === 'names' ? {} : args)
    }
    return [...this.rows, ...[...this.tracks].map(trackRow)]
  }

  /** The waits that are too short to be drawn. */
  notDrawn(prefix: string): string[] {
    const sumNs = this.short.reduce((sum, ns) => sum + ns, 0)
    const text = `${this.short.length} barrier waits below 1 µs (${duration(sumNs)} in all)`
    return sumNs > 0 ? [factRow(`${prefix}not_drawn`, text)] : []
  }

  private readonly series = new Set<string>()

  private draw(event: TraceEvent): void {
    switch (event.kind) {
      case 'input':
        this.originNs = event.originNs
        return
      case 'tensor':
        this.tensors.set(event.id, event)
        return
      case 'buffer':
        this.buffers.set(event.id, event)
        return
      case 'operator':
        this.operator(event)
        return this.memory(event)
      case 'token':
        return this.token(event)
      case 'counter':
        return this.counter(this.seriesRow(this.names.text(event.name)), event.atNs, event.value)
      case 'graph':
      case 'graph-nodes':
      case 'issue':
      case 'state':
        return
      default:
        throw new Error(`no fixture had events of kind ${event.kind} so far: tell the comparer how they are drawn`)
    }
  }

  private slice(
    row: string,
    category: string,
    name: string,
    startNs: number,
    endNs: number,
    args: Args,
    heldNs = endNs,
  ) {
    const ends = this.ends.get(row) ?? []
    this.ends.set(row, ends)
    const free = ends.findIndex((end) => end <= startNs)
    const nth = free < 0 ? ends.length : free
    ends[nth] = heldNs
    const track = this.track(nth === 0 ? row : `${row} (${nth + 1})`)
    this.rows.push(sliceRow(track, category, name, this.at(startNs), endNs - startNs, args))
    return track
  }

  /** The first four are rows of the run. */
  private seriesRow(name: string): string {
    this.series.add(name)
    return [...this.series].indexOf(name) < 4 ? name : `Counters/${name}`
  }

  private counter(row: string, atNs: number, value: number): void {
    this.rows.push(counterRow(this.track(row), this.at(atNs), value))
  }

  private sample(row: string, atNs: number, value: number): void {
    this.track(row)
    if (!this.samples.has(row)) this.samples.set(row, [])
    this.samples.get(row)!.push({ atNs, value })
  }

  private track(path: string): string {
    const names = [this.root, ...path.split('/')]
    for (let depth = 2; depth <= names.length; depth++) this.tracks.add(names.slice(0, depth).join('/'))
    return names.join('/')
  }

  private at(ns: number): bigint {
    return this.originNs + BigInt(ns)
  }

  private operator(event: OperatorEvent): void {
    const { worker, startNs, endNs, waitEndNs } = event
    const tensor = this.tensors.get(event.tensor)!
    const row = `worker ${worker}`
    const name = this.operatorName(tensor)
    const args = { ...operatorArgs(event, this.tensors, this.names, this.detail, name) }
    const track = this.slice(row, 'operator', name, startNs, endNs, args, waitEndNs)
    this.operators.push({ row: this.rows.length - 1, track, event, name, args })
  }

  private operatorName(tensor: TensorEvent): string {
    const first = tensor.sources.length > 0 ? this.tensors.get(tensor.sources[0]!)! : tensor
    const [name, op] = [this.names.text(tensor.name) || this.names.text(first.name), this.names.text(tensor.op)]
    if (this.options.opName === 'op') return op || name || 'operator'
    if (this.options.opName === 'tensor') return name || op || 'operator'
    const { role } = parseTensorName(name)
    return `${role} ${op}`.trim() || name || 'operator'
  }

  /** Of worker 0: where its sources lie, and how many bytes they have. */
  private memory({ worker, tensor, call, startNs, waitEndNs, inferred }: OperatorEvent): void {
    if (worker !== 0) return
    if (call !== this.graphRun.call || this.graphRun.nodes.has(tensor)) this.graphRunEnds(startNs)
    this.graphRun.call = call
    this.graphRun.endNs = waitEndNs
    this.graphRun.nodes.add(tensor)
    const sources = this.tensors.get(tensor)!.sources.map((id) => this.tensors.get(id)!)
    for (const { buffer, offset } of sources) {
      if (buffer < 0 || offset === undefined) continue
      const row = `Memory/${this.bufferTitle(buffer)}: offset read`.replace(/^Memory\/(weights|KV cache):/, '$1:')
      this.graphRun.reads.add(row)
      this.sample(row, startNs, offset)
    }
    const sizes = sources.map(({ sizeBytes }) => sizeBytes).filter((size) => size >= 0)
    if (sizes.length === 0 || startNs > this.touchedUntilNs) this.touchedEnd()
    this.touchedUntilNs = Infinity
    if (sizes.length === 0) return
    this.sample(
      TOUCHED,
      startNs,
      sizes.reduce((total, size) => total + size, 0),
    )
    if ((inferred & END_BIT) === 0) this.touchedUntilNs = waitEndNs
  }

  /** Nothing is touched between operators that do not follow at once. */
  private touchedEnd(): void {
    if (this.touchedUntilNs < Infinity) this.sample(TOUCHED, this.touchedUntilNs, 0)
  }

  /** Between graph runs, nothing is read. */
  private graphRunEnds(nextNs: number): void {
    const { reads, endNs } = this.graphRun
    if (endNs < nextNs) for (const row of reads) this.sample(row, endNs, 0)
    this.graphRun = { call: -1, endNs: -1, nodes: new Set(), reads: new Set() }
  }

  /** Buffers of one usage are numbered in the order in which they were read first. */
  private bufferTitle(id: number): string {
    const known = this.bufferTitles.get(id)
    if (known !== undefined) return known
    const title = BUFFERS[this.buffers.get(id)!.usage]
    const alike = [...this.bufferTitles.values()].filter((other) => other.startsWith(title)).length
    const numbered = alike === 0 ? title : `${title} ${alike + 1}`
    this.bufferTitles.set(id, numbered)
    return numbered
  }

  private token(event: TokenEvent): void {
    const { phase, tokens, call, startNs, endNs, tid, inferred } = event
    const args: Record<string, string> = { phase, ...inferredArg(inferred) }
    if (call >= 0) args['call'] = `${call}`
    if (tokens >= 0) args['n_tokens'] = `${tokens}`
    // The end of a call that the log cut short is a lower bound: no rate.
    const isCut = (inferred & (Inferred.NoEnd | Inferred.Call)) === Inferred.NoEnd
    if (tokens > 0 && endNs > startNs && !isCut) args['tok_per_s'] = `${(tokens * 1e9) / (endNs - startNs)}`
    const span = event.batch?.spans[0]
    if (span) Object.assign(args, { position: `${span.position}`, sequence: `${span.sequence}` })
    if (this.detail === 'full' && tid >= 0) args['tid'] = `${tid}`
    const name =
      phase === 'decode'
        ? `decode ${this.decodes.indexOf(event) + 1}`
        : tokens < 0
          ? phase
          : `${phase} (${tokens} tokens)`
    const took = isCut ? '' : ` · ${duration(endNs - startNs)}`
    this.slice('Tokens', 'token', name + took, startNs, endNs, this.detail === 'names' ? {} : args)
    this.calls.push(event)
  }

  /** Successive calls of one phase are one slice; a long pause between calls is one, too. */
  private phases(): void {
    const spans: TokenEvent[][] = []
    for (const call of this.calls) {
      const span = spans.at(-1)
      const pauseNs = span ? call.startNs - endOf(span) : 0
      if (span && span[0]!.phase === call.phase && pauseNs < IDLE_NS_MIN) span.push(call)
      else spans.push([call])
    }
    for (const [i, span] of spans.entries()) {
      const startNs = Math.min(...span.map((call) => call.startNs))
      const idleFrom = i === 0 ? startNs : endOf(spans[i - 1]!)
      if (span[0]!.startNs - idleFrom >= IDLE_NS_MIN) {
        const bits = spans[i - 1]!.reduce((sum, call) => sum | call.inferred, 0) & NO_END_BIT
        this.slice(
          'Phase',
          'phase',
          'idle',
          idleFrom,
          span[0]!.startNs,
          this.detail === 'names' ? {} : inferredArg(bits),
        )
      }
      const tokens = span.reduce((sum, call) => sum + Math.max(0, call.tokens), 0)
      const bits = span.reduce((sum, call) => sum | call.inferred, 0)
      const args = { calls: `${span.length}`, n_tokens: `${tokens}`, ...inferredArg(bits) }
      this.slice('Phase', 'phase', span[0]!.phase, startNs, endOf(span), this.detail === 'names' ? {} : args)
    }
  }

  /** One slice per choice of a layer's router, over the operators in a row that used it. */
  private experts(operators: readonly OperatorEvent[]): void {
    const layers = new Map<number, OperatorEvent[]>()
    for (const operator of operators.filter(({ experts }) => experts !== undefined)) {
      const { layer } = this.tensors.get(operator.tensor)!
      layers.set(layer, [...(layers.get(layer) ?? []), operator])
    }
    for (const [layer, users] of layers) {
      const choices: OperatorEvent[][] = []
      for (const user of users) {
        const first = choices.at(-1)?.[0]
        const isSame =
          first?.call === user.call && first.startNs <= user.startNs && `${first.experts}` === `${user.experts}`
        if (isSame) choices.at(-1)!.push(user)
        else choices.push([user])
      }
      for (const choice of choices) this.choice(layer, choice)
    }
  }

  private choice(layer: number, users: readonly OperatorEvent[]): void {
    const { call, experts, startNs } = users[0]!
    const set = [...experts!].sort((a, b) => a - b).join(',')
    const args: Record<string, string> = { experts: experts!.join(','), expert_set: set, operators: `${users.length}` }
    if (layer >= 0) args['layer'] = `${layer}`
    if (call >= 0) args['call'] = `${call}`
    const endNs = Math.max(...users.map((user) => user.endNs))
    const name = `experts ${experts!.join(' ')}`
    this.slice(
      layer >= 0 && layer < 8 ? `layer ${layer}: experts` : `Experts/${layer < 0 ? 'no layer' : `layer ${layer}`}`,
      'expert',
      name,
      startNs,
      endNs,
      this.detail === 'names' ? {} : args,
    )
  }

  /** Those of one time are drawn 1 ns apart: trace_processor would nest them. */
  private issues(issues: readonly IssueEvent[]): void {
    const times: number[] = []
    issues.slice(0, ISSUES_SHOWN_MAX + 1).forEach(({ code, title, detail, at, atNs }, i) => {
      let ns = atNs
      while (times.includes(ns)) ns++
      times.push(ns)
      const isOver = i === ISSUES_SHOWN_MAX
      const place = { byte: `${at.byte}`, ...(at.line === undefined ? {} : { line: `${at.line}` }) }
      const name = isOver ? 'further issues are not shown' : title
      const known = code === undefined ? {} : { code, hint: ISSUES[code].hint }
      const args = isOver ? {} : { detail, ...place, ...known }
      this.rows.push(sliceRow(this.track('Issues'), 'issue', name, this.at(ns), 0, args))
    })
  }
}

const endOf = (span: readonly TokenEvent[]) => Math.max(...span.map((call) => call.endNs))
