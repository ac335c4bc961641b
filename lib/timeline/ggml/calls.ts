import type { Arg } from '../../model/args.ts'
import { CallOrder } from '../../model/call-order.ts'
import {
  decodingIn,
  failureWords,
  hasRate,
  isFailed,
  isVerification,
  meaningOf,
  sequencesOf,
  workStartOf,
} from '../../model/calls.ts'
import { type CallBatch, type EngineStep, Inferred, type SequenceSpan, type TokenEvent } from '../../model/events.ts'
import type { FunctionEvent } from '../../model/request-events.ts'
import { Roles } from '../../model/roles.ts'
import { duration, nounFor, plural } from '../../model/units.ts'
import type { Label } from '../../sink/label.ts'
import type { InputAreas } from '../areas.ts'
import type { TrackContext } from '../context.ts'
import { labelOf, PALE } from '../labels.ts'
import type { Allocations } from '../memory/allocations.ts'
import { functionLabel } from '../requests/functions.ts'
import { resourceArgs } from '../resources.ts'
import { Lanes } from '../tracks.ts'
import type { Graphs } from './graphs.ts'

/** Minimum pause between calls that is drawn as idle, in ns. */
const IDLE_NS_MIN = 100e6

/** A call names what took more than this part of its time and should take none. */
const UNUSUAL = 0.1

/** Sequences of a batch that are listed; of one that verifies drafts, all that llama.cpp allows. */
const SPANS_SHOWN = 16
const VERIFIED_SHOWN = 256

/** Contexts with separate rows; the rest share the row of the last one. */
const CONTEXTS_MAX = 16

const LOAD_BEGIN = 'begin: first allocation of a backend buffer'
const LOAD_END = 'end: last allocation before the first call'

/** Name of successive calls that failed. */
const FAILED = 'failed'

interface PhaseSpan {
  /** A phase, or `failed`. */
  readonly what: string
  startNs: number
  endNs: number
  calls: number
  tokens: number
  inferred: number
}

/** The calls of a llama_context; or all computes of schedulers whose calls were not recorded. */
interface Row {
  /** 0: not known yet. */
  context: number
  readonly number: number
  readonly what: 'call' | 'graph' | 'step'
  readonly lanes: Lanes
  /** Tracks of the lanes. */
  readonly tracks: number[]
  /** Successful decode calls so far. */
  decodes: number
}

/** The rows Phase and Tokens. `onCall` receives the calls that are drawn, in order. */
export class Calls {
  private readonly phases: Lanes
  private readonly rows = new Map<number, Row>()
  private readonly roles = new Roles()
  private readonly order = new CallOrder((event) => this.place(event))
  private readonly hidden = new Set<TokenEvent>()
  private span: PhaseSpan | undefined
  /** The number of the call after the latest. */
  private next = 0
  private hasCalls = false

  constructor(
    private readonly context: TrackContext,
    private readonly allocations: Allocations,
    private readonly graphs: Graphs,
    private readonly areas: InputAreas,
    private readonly onCall: (event: TokenEvent) => void,
  ) {
    this.phases = context.tracks.lanes('phase', { idleMs: IDLE_NS_MIN / 1e6 }, true)
  }

  /** Calls may come out of order. A call that is not drawn is only counted. */
  token(event: TokenEvent, isDrawn: boolean): void {
    if (!isDrawn) this.hidden.add(event)
    this.order.add(event)
  }

  private place(event: TokenEvent): void {
    const row = this.rowOf(event)
    const name = `${nameOf(event, row)}${reasonOf(event)}`
    const begins = this.beginsText(event)
    if (event.phase !== 'warm-up' && !isFailed(event)) this.roles.add(event)
    const isFirst = !this.hasCalls
    this.hasCalls = true
    if (this.hidden.delete(event)) return
    // The first call of a log that begins in mid-run has another number.
    if (isFirst && event.call <= 0) this.load(event.startNs)
    const { startNs, endNs, returnNs, phase, call, tokens } = event
    const { make } = this.context
    const extra = [make.word('phase', phase)]
    if (call >= 0) extra.push(make.int('call', call))
    if (tokens >= 0) extra.push(make.int('n_tokens', tokens))
    if (hasRate(event)) extra.push(make.double('tok_per_s', (tokens * 1e9) / (endNs - workStartOf(event))))
    const decoding = decodingOf(event)
    if (decoding >= 0 && decoding !== (tokens < 0 ? 1 : tokens)) extra.push(make.int('decoding', decoding))
    if (begins) extra.push(make.word('begins', 'a text'))
    if (event.batch) extra.push(...this.batchArgs(event.batch, isVerification(event)))
    if (event.step) extra.push(...this.stepArgs(event.step))
    extra.push(...resourceArgs(event.resources, make))
    if (this.context.detail === 'full' && event.tid >= 0) extra.push(make.int('tid', event.tid))
    const recorderNs = this.graphs.recorderNs(event)
    if (recorderNs > 0) extra.push(...make.time('recorder', recorderNs))
    if (returnNs !== undefined) extra.push(...make.time('return', returnNs - startNs))
    const { arrows, args } = this.areas.requests.ofCall(event)
    const toGraphs = this.graphs.arrowsOf(event)
    const arrowsOut = toGraphs.length > 0 ? [...(arrows ?? []), ...toGraphs] : arrows
    extra.push(...args, ...make.inferred(event.inferred))
    const colour = make.names.id(whatOf(event))
    row.lanes.place(startNs, endNs, labelOf(name, 'token', make.shown(extra), colour, arrowsOut))
    this.addToSpan(event)
    this.onCall(event)
  }

  private beginsText(event: TokenEvent): boolean {
    if (event.call > this.next && this.next > 0) this.areas.requests.interrupt()
    this.next = Math.max(this.next, event.call + 1)
    if (event.phase === 'warm-up') return false
    return this.areas.requests.beginsText(event, this.roles.of(event.batch?.context ?? 0) === 'draft')
  }

  private rowOf({ batch, step }: TokenEvent): Row {
    const isGraph = batch?.function === 'ggml_backend_sched_graph_compute'
    const context = isGraph ? 0 : (batch?.context ?? 0)
    const known = this.rowFor(context)
    if (known) return known
    const { tracks, writer } = this.context
    const number = this.rows.size
    const what = step ? 'step' : isGraph ? 'graph' : 'call'
    const added: number[] = []
    const add = (lane: number) => (added[lane] = tracks.add('tokens', { context: number, what, role: undefined }, lane))
    const row: Row = {
      context,
      number,
      what,
      lanes: new Lanes(writer, add, this.context.tracks.leaveOut, true),
      tracks: added,
      decodes: 0,
    }
    this.rows.set(context, row)
    return row
  }

  /** Calls of unknown contexts share the first row with the first known context. */
  private rowFor(context: number): Row | undefined {
    const { rows } = this
    const [first] = rows.values()
    if (context === 0 || !first) return first
    if (first.context === 0) {
      first.context = context
      rows.delete(0)
      rows.set(context, first)
    }
    return rows.get(context) ?? (rows.size < CONTEXTS_MAX ? undefined : [...rows.values()].at(-1))
  }

  /** Renames rows by the roles of their contexts, which are known at the end. */
  private nameRows(): void {
    for (const { context, number, what, tracks } of this.rows.values()) {
      const role = this.roles.of(context)
      if (!role) continue
      tracks.forEach((track, lane) => {
        this.context.tracks.rename(track, 'tokens', { context: number, what, role }, lane)
      })
    }
  }

  private batchArgs(batch: CallBatch, isVerification: boolean): Arg[] {
    const { make } = this.context
    const { isLeftOut, result, spans, context } = batch
    const extra: Arg[] = []
    const first = spans[0]
    if (first && first.position >= 0) extra.push(make.int('position', first.position))
    if (first) extra.push(make.int('sequence', first.sequence))
    if (spans.length > 1)
      extra.push(make.word('sequences', describeSpans(spans, isVerification ? VERIFIED_SHOWN : SPANS_SHOWN)))
    if (isLeftOut) extra.push(make.word('recorded', 'the call only'))
    if (batch.function !== 'llama_decode') extra.push(make.word('function', batch.function))
    if (batch.areAllOutput) extra.push(make.word('outputs', 'all tokens'))
    if (result !== 0) extra.push(make.int('result', result), make.word('result_meaning', meaningOf(batch).full))
    if (context > 0) extra.push(make.arg('context', { pointer: context }))
    return extra
  }

  private stepArgs({ requests, launchNs, gpuWork, workNs, endOf, launchesWithoutWork: unknown }: EngineStep): Arg[] {
    const { make } = this.context
    const extra = [...make.time('launch', launchNs), make.int('gpu_work', gpuWork), make.word('end_of', endOf)]
    if (workNs >= 0) extra.push(...make.time('work', workNs))
    if (requests >= 0) extra.push(make.int('requests', requests))
    if (unknown > 0) extra.push(make.int('launches_without_work', unknown))
    return extra
  }

  finish(): void {
    this.order.finish()
    this.endSpan()
    this.nameRows()
  }

  /** Draws the time before the first call: from the first function that loads, or the first allocation. */
  private load(callNs: number): void {
    const { make } = this.context
    const stages = this.areas.requests.loading.until(callNs)
    const known = this.allocations.until(callNs)
    if (!known && stages.length === 0) return
    const firstNs = Math.min(stages[0]?.startNs ?? Infinity, known?.firstNs ?? Infinity)
    const lastNs = stages.reduce((last, { endNs }) => Math.max(last, endNs), known?.lastNs ?? -Infinity)
    const isIdle = callNs - lastNs >= IDLE_NS_MIN
    const extra = known ? [make.int('bytes', known.bytes)] : []
    const words = isIdle ? `${LOAD_BEGIN}; ${LOAD_END}` : LOAD_BEGIN
    if (stages.length === 0) extra.push(make.word('inferred', words))
    const label = this.phaseLabel('load', extra)
    this.context.spans.phase('load', firstNs, isIdle ? lastNs : callNs)
    this.phases.place(firstNs, isIdle ? lastNs : callNs, label)
    this.drawStages(stages)
    if (isIdle) this.phase('idle', lastNs, callNs, [])
  }

  /** In a row of their own: nested in the load, they would make the row Phase three times as high, for the whole run. */
  private drawStages(stages: readonly FunctionEvent[]): void {
    const { tracks, make } = this.context
    const rows = tracks.nested('loading', {})
    for (const event of stages) rows.place(event.startNs, event.endNs, functionLabel(event, 'load_stage', make))
    rows.finish()
  }

  /** The colours of phases are those of their calls. */
  private phase(what: string, startNs: number, endNs: number, extra: readonly Arg[]): void {
    this.phases.place(startNs, endNs, this.phaseLabel(what, extra))
  }

  private phaseLabel(what: string, extra: readonly Arg[]): Label {
    const { make } = this.context
    const { names } = make
    return labelOf(names.id(what), 'phase', make.shown(extra), names.id(what === 'idle' ? PALE : what))
  }

  private endSpan(): void {
    const { span } = this
    const { make } = this.context
    if (!span) return
    const extra = [make.int('calls', span.calls)]
    if (span.what !== FAILED) extra.push(make.int('n_tokens', span.tokens))
    extra.push(...make.inferred(span.inferred))
    this.context.spans.phase(span.what, span.startNs, span.endNs)
    this.phase(span.what, span.startNs, span.endNs, extra)
    this.span = undefined
  }

  private addToSpan(event: TokenEvent): void {
    const { startNs, endNs, tokens, inferred } = event
    const what = whatOf(event)
    const before = this.span
    const pauseNs = before ? startNs - before.endNs : 0
    if (before?.what === what && pauseNs < IDLE_NS_MIN) {
      before.startNs = Math.min(before.startNs, startNs)
      before.endNs = Math.max(before.endNs, endNs)
      before.calls++
      before.inferred |= inferred
      before.tokens += Math.max(tokens, 0)
      return
    }
    this.endSpan()
    if (before && pauseNs >= IDLE_NS_MIN) {
      const extra = this.context.make.inferred(before.inferred & Inferred.NoEnd) // idle may begin too early
      this.phase('idle', before.endNs, startNs, extra)
    }
    this.span = { what, startNs, endNs, calls: 1, tokens: Math.max(tokens, 0), inferred }
  }
}

/** The kind of a call, which the Phase row shows: its phase, or `failed`. */
function whatOf(event: TokenEvent): string {
  return isFailed(event) ? FAILED : event.phase
}

/** Numbers all successful decode calls, also those that are not drawn. */
function nameOf({ phase, tokens, batch }: TokenEvent, row: Row): string {
  if (batch && isFailed({ batch })) return `${phase} failed (${failureWords(batch.result, meaningOf(batch).short)})`
  const count = tokens >= 0 ? ` (${tokens} ${nounFor(tokens, 'token')})` : ''
  return phase === 'decode' ? `decode ${++row.decodes}${tokens > 1 ? count : ''}` : `${phase}${count}`
}

/** ` · 128 ms · 75 % preempted`: how long the call took, and what was unusual; nothing of one that failed, or whose end is not known. */
function reasonOf(event: TokenEvent): string {
  const { startNs, endNs, inferred, resources } = event
  const ns = endNs - startNs
  if (isFailed(event) || (inferred & (Inferred.NoEnd | Inferred.Call)) === Inferred.NoEnd) return ''
  const parts = ['', duration(ns)]
  const preempted = Math.min((resources?.waitingNs ?? 0) / ns, 1)
  if (preempted >= UNUSUAL) parts.push(`${Math.round(100 * preempted)} % preempted`)
  if (resources && resources.majorFaults > 0) parts.push(plural(resources.majorFaults, 'major fault'))
  return parts.join(' · ')
}

/** Number of sequences of which the call makes tokens; -1 for other phases than decode and mixed. */
function decodingOf(event: TokenEvent): number {
  if (event.phase === 'mixed') return event.step?.decoding ?? decodingIn(event.batch?.spans ?? []).length
  return event.phase === 'decode' ? sequencesOf(event).sequences : -1
}

/** `0@17 1@5-8`: sequence 0 at position 17, sequence 1 at 5 to 8. */
function describeSpans(spans: readonly SequenceSpan[], shownMax: number): string {
  const texts = spans.slice(0, shownMax).map(({ sequence, position, tokens }) => {
    if (position < 0) return `${sequence} (${tokens} ${nounFor(tokens, 'token')})`
    return `${sequence}@${position}${tokens > 1 ? `-${position + tokens - 1}` : ''}`
  })
  return texts.join(' ') + (spans.length > shownMax ? ' …' : '')
}
