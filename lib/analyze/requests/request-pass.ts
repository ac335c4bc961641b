import { CallOrder } from '../../model/call-order.ts'
import { isCut, isFailed } from '../../model/calls.ts'
import { ChangesBetweenCalls } from '../../model/changes-between-calls.ts'
import type { FunctionEvent, RequestEvent, SequenceEvent, TokenEvent } from '../../model/events.ts'
import { Inferred } from '../../model/inferred.ts'
import type { Names } from '../../model/names.ts'
import { durationsOf, hasTimes } from '../../model/requests/durations.ts'
import { decodes } from '../calls/times.ts'
import type { Undetermined } from '../common/figures.ts'
import type { Statistic } from '../common/statistic.ts'
import type { PreemptedCalls } from '../threads/preempted-calls.ts'
import type {
  FirstTokenFigures,
  FirstTokenPart,
  FunctionFigures,
  LoadFigures,
  LoadStage,
  RequestFigures,
  RequestSeries,
  SamplingFigures,
  SpeculationFigures,
} from './figures.ts'
import { FunctionSums } from './functions.ts'
import { RequestStatistics } from './requests.ts'

/** Stages that make a context; all others load a model. */
const OF_CONTEXT: readonly string[] = ['create-context', 'reserve'] satisfies readonly LoadStage['stage'][]
const OF_LOAD: readonly string[] = ['load-model', 'load-lora'] satisfies readonly LoadStage['stage'][]
/** What makes the borders of a call an inference. */
const INFERRED = Inferred.End | Inferred.Call | Inferred.Order | Inferred.Laid

/** Time of a part, from the start of its first event to the end of its last; `timeNs` is that in them. */
interface Span {
  startNs: number
  endNs: number
  timeNs: number
  inferred: number
}

type What = FirstTokenPart['what']

/** Finds what precedes the first token of a run: until its first decode call is known; later events cost nothing. */
class FirstToken {
  private readonly order = new CallOrder((event) => this.call(event))
  private readonly changes = new ChangesBetweenCalls()
  private readonly functions: FunctionSums
  private readonly spans = new Map<What, Span>()
  /** The context of the first prompt; undefined: none was seen. */
  private context: number | undefined
  private hasCalls = false
  private isDone = false
  private request: RequestEvent | undefined

  constructor(names: Names) {
    this.functions = new FunctionSums(names)
  }

  /** Takes a call, in any order; what happens around calls; or a request, where no calls are known. */
  event(event: TokenEvent | FunctionEvent | SequenceEvent | RequestEvent): void {
    if (this.isDone) return
    if (event.kind === 'request') return this.takeRequest(event)
    if (event.kind === 'sequence') return this.changes.add(event)
    if (event.kind === 'function') return this.function(event)
    if (event.phase === 'warm-up' && event.call < 0) this.call(event)
    else this.order.add(event)
  }

  finish(): FirstTokenFigures | null {
    this.order.finish()
    const { spans, request } = this
    // Without a decode, the end of the prompt is not known: a benchmark's prompts follow each other.
    if (!spans.has('first decode')) spans.delete('prefill')
    const stages = this.functions.load()?.stages ?? []
    const isOf = (what: What) => (stage: LoadStage) => what === (OF_CONTEXT.includes(stage.stage) ? 'context' : 'load')
    let beforeNs: number | undefined
    const parts = WHATS.map((what): Omit<FirstTokenPart, 'share'> => {
      const span = spans.get(what)
      const own = stages.filter(isOf(what))
      const time_ns = own.length > 0 ? own.reduce((sum, { time_ns }) => sum + time_ns, 0) : (span?.timeNs ?? null)
      const before_ns = span && beforeNs !== undefined ? Math.max(0, span.startNs - beforeNs) : null
      beforeNs = span?.endNs ?? beforeNs
      return { what, time_ns, before_ns, stages: own, is_inferred: !!((span?.inferred ?? 0) & INFERRED), findings: [] }
    })
    return withShares(!this.hasCalls && request ? parts.map((part) => ofRequest(part, request)) : parts)
  }

  private takeRequest(event: RequestEvent): void {
    if (this.hasCalls || (this.request && this.request.startNs <= event.startNs)) return
    if ((durationsOf(event).partNs('prefill') ?? 0) > 0) this.request = event
  }

  private function(event: FunctionEvent): void {
    if (!this.hasCalls) {
      this.functions.add(event)
      if (OF_LOAD.includes(event.what)) this.extend('load', event)
      if (OF_CONTEXT.includes(event.what)) this.extend('context', event)
    } else if (event.what === 'create-context' && event.context === this.context) this.isDone = true
  }

  /** Gets warm-ups at once, all others in order. */
  private call(event: TokenEvent): void {
    if (this.isDone || isFailed(event)) return
    const { phase, startNs, batch } = event
    if (phase === 'warm-up') return this.hasCalls ? undefined : this.extend('warm-up', event)
    this.hasCalls = true
    const context = batch?.context ?? 0
    if (phase !== 'encode' && phase !== 'compute') this.context ??= context
    if (this.context !== undefined && context !== this.context) return
    const isCleared = this.changes.until(context, startNs).some(({ what }) => what === 'clear')
    if (isCut(event) || (isCleared && this.spans.has('prefill'))) {
      this.isDone = true
      return
    }
    this.isDone = decodes(event)
    this.extend(this.isDone ? 'first decode' : 'prefill', event)
  }

  private extend(what: What, { startNs, endNs, ...event }: TokenEvent | FunctionEvent): void {
    const inferred = event.kind === 'token' ? event.inferred : 0
    const span = this.spans.get(what)
    if (!span) {
      this.spans.set(what, { startNs, endNs, timeNs: endNs - startNs, inferred })
      return
    }
    span.timeNs += endNs - startNs
    span.startNs = Math.min(span.startNs, startNs)
    span.endNs = Math.max(span.endNs, endNs)
    span.inferred |= inferred
    // What a program does between the calls of a prompt delays its token, too.
    if (what === 'prefill') span.timeNs = span.endNs - span.startNs
  }
}

const WHATS = ['load', 'context', 'warm-up', 'prefill', 'first decode'] as const satisfies readonly What[]

/** With the time of a prompt as a server's log has it. */
function ofRequest<T extends Omit<FirstTokenPart, 'share'>>(part: T, request: RequestEvent): T {
  if (part.what !== 'prefill') return part
  const is_inferred = hasTimes(request) && (request.inferred & (Inferred.Parts | Inferred.Call)) !== 0
  return { ...part, time_ns: durationsOf(request).partNs('prefill'), is_inferred }
}

/** Null where nothing of it is known. */
function withShares(parts: readonly Omit<FirstTokenPart, 'share'>[]): FirstTokenFigures | null {
  const all = parts.reduce((sum, { time_ns }) => sum + (time_ns ?? 0), 0)
  if (all === 0) return null
  const shareOf = (ns: number | null) => (ns === null ? null : ns / all)
  return { time_ns: all, parts: parts.map((part) => ({ ...part, share: shareOf(part.time_ns) })) }
}

/** What an input contains of requests, and of functions around calls. */
export interface RequestsOfInput {
  readonly requests: RequestFigures | null
  readonly sampling: SamplingFigures | null
  readonly speculation: SpeculationFigures | null
  readonly load: LoadFigures | null
  readonly first_token: FirstTokenFigures | null
  readonly functions: readonly FunctionFigures[]
  readonly series: RequestSeries | undefined
  readonly undetermined: readonly Undetermined[]
}

/** Figures of requests, and of the functions around calls. */
export class RequestPass implements Statistic<object, 'token' | 'function' | 'sequence' | 'request'> {
  readonly kinds = ['token', 'function', 'sequence', 'request'] as const
  private readonly functions: FunctionSums
  private readonly firstToken: FirstToken
  private readonly requests: RequestStatistics
  /** Of calls that make tokens. */
  private decodeNs = 0

  /** `wantsRows`: a row of each request is asked for. `decodedTokens`: of the calls, where no requests are known. */
  constructor(
    names: Names,
    preempted: PreemptedCalls,
    private readonly wantsRows: boolean,
    private readonly decodedTokens: () => number | null,
  ) {
    this.functions = new FunctionSums(names)
    this.firstToken = new FirstToken(names)
    this.requests = new RequestStatistics(names, preempted, wantsRows)
  }

  /** Takes a call, in any order; a function, those of a thread in the order of their ends; a change of a memory; or a request. */
  event(event: TokenEvent | FunctionEvent | SequenceEvent | RequestEvent): void {
    this.firstToken.event(event)
    if (event.kind === 'sequence') return
    if (event.kind === 'function') return this.functions.add(event)
    if (event.kind === 'request') return this.requests.add(event)
    if (event.phase === 'decode' && !isFailed(event)) this.decodeNs += event.endNs - event.startNs
  }

  finish(firstNs: number): { readonly requests: RequestsOfInput } {
    return { requests: this.figures(firstNs) }
  }

  private figures(firstNs: number): RequestsOfInput {
    const ofRequests = this.requests.finish(firstNs)
    const speculation = this.requests.speculation.finish()
    const undetermined = [...this.requests.undetermined()]
    if (speculation && speculation.without_token_ns === null) {
      const why = 'no decode call without a draft was recorded, and all drafts are of one length'
      undetermined.push({
        what: 'speculation.without_token_ns',
        why,
        hint: 'record a part of the run without a draft model',
      })
    }
    return {
      requests: ofRequests?.figures ?? null,
      sampling: this.functions.samplingOf(this.requests.generatedTokens ?? this.decodedTokens(), this.decodeNs),
      speculation,
      load: this.functions.load(),
      first_token: this.firstToken.finish(),
      functions: this.functions.others(),
      series: this.wantsRows ? ofRequests?.series : undefined,
      undetermined,
    }
  }
}
