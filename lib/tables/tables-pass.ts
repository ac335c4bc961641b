import { CallTimes } from '../analyze/calls/call-times.ts'
import { areArgs } from '../model/args.ts'
import { sameIds } from '../model/by-id.ts'
import { isCut } from '../model/calls.ts'
import type {
  CounterEvent,
  ExpertsEvent,
  OperatorEvent,
  RequestEvent,
  TokenEvent,
  TraceEvent,
} from '../model/events.ts'
import type { Facts, GpuEvent, GpuSyncEvent } from '../model/gpu-events.ts'
import { inferredText } from '../model/inferred.ts'
import type { Names } from '../model/names.ts'
import type { OwnEvent } from '../model/own-events.ts'
import type { EventPass } from '../model/pass.ts'
import { durationsOf } from '../model/requests/durations.ts'
import { orNull } from '../model/units.ts'
import { Nodes } from './nodes.ts'
import { OperatorSumTable } from './operator-sum-table.ts'
import { OperatorTable } from './operator-table.ts'
import type { NewRow } from './table-file.ts'
import type { Tables } from './tables.ts'

/** A choice that operators recorded. */
interface Choice {
  readonly call: number
  readonly startNs: number
  readonly ids: readonly number[]
}

/** Collects rows of `expert`: choices of routers, or those that operators recorded, each once. */
class ExpertsTable {
  /** By layer. */
  private readonly latest = new Map<number, Choice>()
  /** Tokens so far of the choice at a time: a long one comes in several events. */
  private readonly tokens = { tensor: -1, atNs: NaN, count: 0 }

  constructor(
    private readonly tables: Tables,
    private readonly nodes: Nodes,
  ) {}

  /** A router chose. */
  choose({ tensor, call, atNs, ids, k }: ExpertsEvent): void {
    const { tokens } = this
    if (tokens.tensor !== tensor || tokens.atNs !== atNs) Object.assign(tokens, { tensor, atNs, count: 0 })
    this.add(this.layerOf(tensor), { call, startNs: atNs, ids: ids as unknown as readonly number[] }, k, tokens.count)
    if (k > 0) tokens.count += ids.length / k
  }

  /** An operator recorded its experts: workers and operators of one layer share a choice. */
  operator({ tensor, call, startNs }: OperatorEvent, ids: readonly number[]): void {
    const layer = this.layerOf(tensor)
    const latest = this.latest.get(layer)
    const isSame = latest?.call === call && startNs >= latest.startNs && sameIds(latest.ids, ids)
    if (isSame) return
    const choice = { call, startNs, ids }
    this.latest.set(layer, choice)
    this.add(layer, choice, ids.length, 0)
  }

  private layerOf(tensor: number): number {
    return this.nodes.tensors[tensor]!.layer
  }

  private add(layer: number, { call, startNs, ids }: Choice, k: number, firstToken: number): void {
    const common = { call: call < 0 ? null : call, layer: layer < 0 ? null : layer, ts_ns: startNs }
    for (let i = 0; i < ids.length; i++) {
      const token = firstToken + (k > 0 ? Math.floor(i / k) : 0)
      this.tables.add('expert', { ...common, token, rank: k > 0 ? i % k : i, expert: ids[i]! })
    }
  }
}

/** The row of a request. */
function requestRow(event: RequestEvent, names: Names): NewRow<'request'> {
  const { startNs, lost, error, inferred } = event
  const { latencyNs, ttftNs, partNs: part } = durationsOf(event)
  return {
    request: event.id,
    ts_ns: startNs,
    dur_ns: latencyNs,
    task: orNull(event.task),
    slot: orNull(event.slot),
    context: event.context || null,
    type: event.type,
    outcome: event.outcome,
    ttft_ns: ttftNs,
    call_wait_ns: part('call-wait'),
    deferred_ns: part('deferred'),
    queue_ns: part('queued'),
    prepare_ns: part('prepare'),
    prefill_ns: part('prefill'),
    draft_ns: part('draft'),
    decode_ns: part('decode'),
    verify_ns: part('verify'),
    sample_ns: part('sample'),
    text_ns: part('text'),
    stalled_ns: part('stalled'),
    send_ns: part('send'),
    other_ns: part('other'),
    n_prompt: orNull(event.promptTokens),
    n_cached: orNull(event.reusedTokens),
    n_gen: orNull(event.generatedTokens),
    n_draft: event.draftedTokens,
    n_accepted: event.acceptedTokens,
    n_lost: lost ? lost.tokens : null,
    error: error === undefined ? null : names.text(error),
    inferred: inferred === 0 ? null : inferredText(inferred),
  }
}

/** Calls whose rows wait for their time per token. */
const CALLS_MAX = 4096

/** A row of `call`, until its time per token is known. */
interface WaitingCall {
  readonly event: TokenEvent
  tpotNs: number | null
}

/**
 * Writes the events of one input as rows of tables: calls, requests, operators and their sums, work of GPUs, counters, experts. (Rows of
 * `trace` and `finding` come from the summary, those of `state` from the timeline, which both know more than one event.)
 */
export class TablesPass implements EventPass<void> {
  private readonly nodes: Nodes
  private readonly experts: ExpertsTable
  private operators: OperatorTable | undefined
  private readonly operatorSums: OperatorSumTable
  private readonly calls = new Map<number, WaitingCall>()
  private readonly times = new CallTimes((scope, event, timed) => {
    const waiting = scope === 'all' && timed ? this.calls.get(event.call) : undefined
    if (waiting && timed) waiting.tpotNs = Math.round((timed.timeNs * timed.sequences) / timed.tokens)
  })
  /** Names and units of counters of other programs, by track. */
  private readonly series = new Map<number, { name: string; readonly unit: string }>()

  /** Times of events are those of the run. */
  constructor(
    private readonly tables: Tables,
    private readonly names: Names,
  ) {
    this.nodes = new Nodes(names)
    this.experts = new ExpertsTable(tables, this.nodes)
    this.operatorSums = new OperatorSumTable(tables)
  }

  take(batch: readonly TraceEvent[]): void {
    for (const event of batch) this.event(event)
  }

  /** Sums of the operators. */
  get sums(): { readonly durNs: number; readonly waitNs: number } {
    return this.operators ?? { durNs: 0, waitNs: 0 }
  }

  finish(): void {
    this.times.finish()
    for (const waiting of this.calls.values()) this.addCall(waiting)
    this.calls.clear()
    this.operators?.finish()
    this.operatorSums.finish()
  }

  private event(event: TraceEvent): void {
    switch (event.kind) {
      case 'operator':
        this.operatorTable.add(event)
        if (event.experts) this.experts.operator(event, event.experts)
        return
      case 'tensor':
      case 'buffer':
        return this.nodes.add(event)
      case 'graph':
        return this.operatorTable.graph(event)
      case 'counted':
        return this.operatorTable.counter(event)
      case 'token':
        return this.call(event)
      case 'function':
      case 'sequence':
        return this.times.around(event)
      case 'request':
        return this.tables.add('request', requestRow(event, this.names))
      case 'experts':
        return this.experts.choose(event)
      case 'gpu':
      case 'gpu-sync':
        return this.work(event)
      case 'counter':
        return this.sample(event)
      case 'own-track':
      case 'own-name':
      case 'own-sample':
        return this.own(event)
    }
  }

  private get operatorTable(): OperatorTable {
    this.operators ??= new OperatorTable(this.tables, this.nodes, this.names, this.operatorSums)
    return this.operators
  }

  private call(event: TokenEvent): void {
    this.operatorSums.call(event.call, event.phase)
    if (event.call < 0) return this.addCall({ event, tpotNs: null })
    this.calls.set(event.call, { event, tpotNs: null })
    this.times.add(event)
    if (this.calls.size <= CALLS_MAX) return
    const [[call, waiting]] = this.calls as unknown as [[number, WaitingCall]]
    this.calls.delete(call)
    this.addCall(waiting)
  }

  private addCall({ event, tpotNs }: WaitingCall): void {
    const { call, startNs, endNs, phase, tokens, batch, step, tid, inferred } = event
    const spans = batch?.spans ?? []
    const [first] = spans
    this.tables.add('call', {
      call,
      ts_ns: startNs,
      dur_ns: endNs - startNs,
      phase,
      n_tokens: orNull(tokens),
      sequences:
        step && step.requests >= 0 ? step.requests : new Set(spans.map(({ sequence }) => sequence)).size || null,
      sequence: first ? first.sequence : null,
      position: first ? orNull(first.position) : null,
      tpot_ns: tpotNs,
      function: batch?.function ?? null,
      result: batch?.result ?? 0,
      context: batch?.context || null,
      tid: orNull(tid),
      is_cut: isCut(event),
      inferred: inferred === 0 ? null : inferredText(inferred),
    })
  }

  private work(event: GpuEvent | GpuSyncEvent): void {
    const { names, nodes } = this
    const { startNs, endNs, name, device, context, stream, queue, pid, correlation, facts } = event
    const ofWork = event.kind === 'gpu' ? event : undefined
    const node = ofWork?.node && nodes.factsOf(ofWork.node.tensor, ofWork.node.fusedTo ?? ofWork.node.tensor, 0)
    this.tables.add('gpu', {
      call: ofWork?.call ?? null,
      what: ofWork?.what ?? 'sync',
      device: orNull(device),
      context: orNull(context),
      stream: orNull(stream),
      queue: queue === undefined ? null : names.text(queue),
      pid: orNull(pid),
      ts_ns: startNs,
      dur_ns: endNs - startNs,
      name: names.text(name),
      op: node?.op ?? null,
      role: node?.role ?? null,
      layer: node?.layer ?? null,
      tensor: node?.tensor ?? null,
      correlation: orNull(correlation),
      bytes: bytesOf(facts, names.id('bytes')),
    })
  }

  private sample({ call, name, unit, atNs, value }: CounterEvent): void {
    this.tables.add('counter', { call: call ?? null, name: this.names.text(name), unit, ts_ns: atNs, value })
  }

  private own(event: OwnEvent): void {
    if (event.kind === 'own-track') {
      if (event.holds === 'counter') this.series.set(event.id, { name: event.name, unit: event.unit ?? 'count' })
    } else if (event.kind === 'own-name') {
      const known = this.series.get(event.track)
      if (known) known.name = event.name
    } else if (event.kind === 'own-sample') {
      const series = this.series.get(event.track)
      if (series) this.tables.add('counter', { call: null, ...series, ts_ns: event.atNs, value: event.value })
    }
  }
}

/** The bytes that a copy or a fill moves, among its facts. */
function bytesOf(facts: Facts, bytesKey: number): number | null {
  const arg = areArgs(facts) ? facts.find(({ key }) => key === bytesKey) : undefined
  const value = areArgs(facts) ? arg && 'int' in arg && arg.int : facts['bytes']
  return typeof value === 'number' ? value : null
}
