import type { Counter } from '../../model/counters.ts'
import type { IssueEvent } from '../../model/events.ts'
import type { LeftOutEvent } from '../../model/left-out.ts'
import type { Thinned } from '../../model/sums.ts'
import type { CallSummary, ContextTimes, Decoding } from '../calls/figures.ts'
import type { Finding } from '../common/figures.ts'
import type { AnalysedInput, RunFacts } from '../run/figures.ts'
import type { RunVerdict } from '../verdict/figures.ts'

/**
 * What an input contains, in a few figures. Those that an Analysis has, too, have its names, meanings and units; it is plain JSON, and null
 * is "not known".
 */
export interface Summary
  extends Pick<AnalysedInput, 'format' | 'clock' | 'times' | 'duration_ns'>,
    Pick<RunFacts, 'backends' | 'workers' | 'threads'> {
  /** A short description of the contents, for inputs that are not summarized by calls and operators. */
  readonly contents?: string | undefined
  /** Time of the first event on that clock, in ns: decimal digits, as it may exceed 2^53. */
  readonly start_ns: string
  readonly calls: CallSummary
  /** What TPOT and tok/s are made from; null where no decode call could be timed. */
  readonly decoding: Decoding | null
  /** Each llama_context, in the order of their first calls; without any recorded, all calls as one. */
  readonly contexts: readonly ContextTimes[]
  /** Failed calls by result, the most frequent first. `meaning`: a short form of the definition in llama.h. */
  readonly failures: readonly { readonly result: number; readonly meaning: string; readonly calls: number }[]
  /** Number of calls that are graphs of a scheduler, as no llama_decode or llama_encode was seen. */
  readonly calls_by_graph: number
  /** What of llama.cpp began; undefined where the log does not contain that. */
  readonly llama_seen?: LlamaSeen | undefined
  /** Operators of all workers; and those that GPUs computed. */
  readonly operators: number
  readonly gpu_operators: number
  /** Kernels, copies and other work of GPUs, with those operators. */
  readonly gpu_work: number
  /** The sum of their durations; work of several streams overlaps. */
  readonly gpu_work_ns: number
  readonly graphs: number
  readonly layers: number
  /** Operators and compute time by op, most time first. */
  readonly ops: readonly { readonly op: string; readonly count: number; readonly time_ns: number }[]
  /** The same of operators that GPUs computed, if any: their times on the GPUs. */
  readonly gpu_ops?: Summary['ops']
  /** Counters of operators, with the totals of all workers. */
  readonly counters: readonly (Counter & { readonly total: number })[]
  /** Number of operators with expert ids, and of choices of routers that were recorded separately. */
  readonly with_experts: number
  /** Number of NVTX ranges and marks. */
  readonly nvtx: number
  /** Events of the kernel's scheduler; undefined without any. */
  readonly scheduler?: { readonly switches: number; readonly wakings: number; readonly cpus: number } | undefined
  readonly issues: readonly IssueCount[]
  /** Number of events on tracks (slices, instants, samples, switches): 0 where the input contains nothing to draw. */
  readonly drawn: number
  /** Events that are not drawn, by design; most first. */
  readonly left_out: readonly Omit<LeftOutEvent, 'kind'>[]
  /** Attributes that the reader reported. */
  readonly attributes: Readonly<Record<string, string | number>>
  /** How the times were converted to the trace's; undefined for the first input, whose clock the trace has. */
  readonly relation?: ClockRelation | undefined
  /** Ends of calls are lower bounds: the log does not record the end of the last operator of a call. */
  readonly ends_are_open: boolean
  /** What is in the trace in full, and what is summed up; undefined where all of the input is in full. */
  readonly thinned?: Thinned | undefined
  /** What made the run slow, most time first, where convert was asked for it: of a sample of calls, which are all calls of a short run. */
  readonly findings?: readonly Finding[] | undefined
  /** The answer in one line, of the same calls; undefined where it needs what a conversion leaves out, such as times of GPUs. */
  readonly verdict?: RunVerdict | undefined
  /** Calls were left out of that sample: figures of `findings` are estimates, and differ from those of an Analysis. */
  readonly findings_are_estimates?: boolean | undefined
}

/** Issues of one kind. */
export interface IssueCount {
  readonly title: string
  /** Code and hint of the catalogue; undefined for issues that are not in it. */
  readonly code?: string | undefined
  readonly hint?: string | undefined
  /** Are events of the run missing? */
  readonly is_loss: boolean
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
  /** Added to the input's first time to get that of the trace: decimal digits, with a `-` before them where it is earlier. */
  readonly offset_ns: string
  /** Maximum error; null where it is not known. */
  readonly bound_ns: number | null
}

/**
 * What of llama.cpp the recorder of a .ggtrace saw begin: a call; `functions` = only functions; `loading` = only functions, none of which
 * returned. The log contains only what ended.
 */
export type LlamaSeen = 'loading' | 'functions' | 'calls'
