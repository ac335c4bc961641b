import type { Counter } from '../../model/counters.ts'
import type { IssueEvent, Phase } from '../../model/events.ts'
import type { LeftOutEvent } from '../../model/left-out.ts'
import type { Thinned } from '../../model/sums.ts'
import type { Times } from '../../model/times.ts'
import type { ContextTimes, Decoding } from '../calls/figures.ts'
import type { Finding } from '../common/figures.ts'

/** Summary of a log. Durations are in ns. */
export interface Summary {
  readonly format: string
  /** A short description of the contents, for inputs that are not summarized by calls and operators. */
  readonly contents?: string | undefined
  readonly clock: string
  /** What the times of its events are. */
  readonly times: Times
  /** Time of the first event on that clock, in ns. */
  readonly startNs: bigint
  /** From the first event to the last; undefined where they have no times, or all the same. */
  readonly durationNs: number | undefined
  /** Calls of the model by phase; failed calls separately. */
  readonly calls: Readonly<Record<CountedPhase, CallCount>> & { readonly failed: FailedCalls }
  /** Number of these calls that are graphs of a scheduler, as no llama_decode or llama_encode was seen. */
  readonly callsByGraph: number
  /** What of llama.cpp began; undefined where the log does not contain that. */
  readonly llamaSeen?: LlamaSeen | undefined
  /**
   * Time to first token: start of the first call to the end of the last one before the first decode; without warm-ups and failed calls. Where
   * clearings of a memory divide the calls into runs, the mean of theirs.
   */
  readonly ttftNs: number | undefined
  /** Number of runs of which {@link Summary.ttftNs} is the mean: 1 where the calls are one run, 0 where it is not known. */
  readonly ttftRuns: number
  /** Time per output token of a sequence: that of {@link Summary.decoding}. */
  readonly tpotNs: number | undefined
  /** The speed of decoding; undefined where no decode call could be timed. */
  readonly decoding: Decoding | undefined
  /** Times of each llama_context, in the order of their first calls; empty for a single one. */
  readonly contexts: readonly ContextTimes[]
  /** Operators of all workers; and those that GPUs computed. */
  readonly operators: number
  readonly gpuOperators: number
  readonly graphs: number
  /** Names of the backends that computed graphs, if recorded. */
  readonly backends: readonly string[]
  readonly workers: number
  /** Distinct thread ids that ran operators or calls. */
  readonly threads: number
  readonly layers: number
  /** Operators and compute time by op, most time first. */
  readonly ops: readonly { readonly op: string; readonly count: number; readonly timeNs: number }[]
  /** Counters of operators, with the totals of all workers. */
  readonly counters: readonly (Counter & { readonly total: number })[]
  /** Number of operators with expert ids, and of choices of routers that were recorded separately. */
  readonly withExperts: number
  /** Number of NVTX ranges and marks. */
  readonly nvtx: number
  /** Events of the kernel's scheduler; undefined without any. */
  readonly scheduler?: { readonly switches: number; readonly wakings: number; readonly cpus: number } | undefined
  readonly issues: readonly IssueCount[]
  /** Number of events on tracks (slices, instants, samples, switches): 0 where the input contains nothing to draw. */
  readonly drawn: number
  /** Events that are not drawn, by design; most first. */
  readonly leftOut: readonly Omit<LeftOutEvent, 'kind'>[]
  /** Attributes that the reader reported. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** How the times were converted to the trace's; undefined for the first input, whose clock the trace has. */
  readonly relation?: ClockRelation | undefined
  /** Ends of calls are lower bounds: the log does not record the end of the last operator of a call. */
  readonly endsAreOpen: boolean
  /** What is in the trace in full, and what is summed up; undefined where all of the input is in full. */
  readonly thinned?: Thinned | undefined
  /** What made the run slow, most time first, where convert was asked for it: of a sample of calls, which are all calls of a short run. */
  readonly findings?: readonly Finding[] | undefined
  /** Calls were left out of that sample: figures of `findings` are estimates, and differ from those of an Analysis. */
  readonly findingsAreEstimates?: boolean | undefined
}

/** Issues of one kind. */
export interface IssueCount {
  readonly title: string
  /** Code and hint of the catalogue; undefined for issues that are not in it. */
  readonly code?: string | undefined
  readonly hint?: string | undefined
  /** Are events of the run missing? */
  readonly isLoss: boolean
  readonly count: number
  /** The first of them. */
  readonly first: IssueEvent
}

/** How an input's times are converted to the trace's. */
export interface ClockRelation {
  /** The trace's clock. */
  readonly to: string
  /** Source of the relation, in words. */
  readonly how: string
  /** Added to the input's first time to get that of the trace, in ns. */
  readonly offsetNs: bigint
  /** Maximum error, in ns; undefined where it is not known. */
  readonly boundNs: number | undefined
}

/** Phases as {@link Phase} defines them. */
export type CountedPhase = 'warmUp' | Exclude<Phase, 'warm-up'>

/** Calls, and the tokens in their batches. */
export interface CallCount {
  readonly calls: number
  readonly tokens: number
}

/** Calls of any phase that returned a result other than 0. They are not part of any time or rate. */
export interface FailedCalls extends CallCount {
  /** By result, the most frequent first. `meaning`: a short form of the definition in llama.h. */
  readonly results: readonly { readonly result: number; readonly meaning: string; readonly calls: number }[]
}

/**
 * What of llama.cpp the recorder of a .ggtrace saw begin: a call; `functions` = only functions; `loading` = only functions, none of which
 * returned. The log contains only what ended.
 */
export type LlamaSeen = 'loading' | 'functions' | 'calls'
