import { isFailed } from '../../model/calls.ts'
import type { FunctionEvent, RequestEvent, SequenceEvent, TokenEvent } from '../../model/events.ts'
import type { Names } from '../../model/names.ts'
import type { Undetermined } from '../common/figures.ts'
import type { Statistic } from '../common/statistic.ts'
import type { PreemptedCalls } from '../threads/preempted-calls.ts'
import type {
  FirstTokenFigures,
  FunctionFigures,
  LoadFigures,
  RequestFigures,
  RequestSeries,
  SamplingFigures,
  SpeculationFigures,
} from './figures.ts'
import { FirstToken } from './first-token.ts'
import { FunctionSums } from './functions.ts'
import { RequestStatistics } from './requests.ts'

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
