import type { Block } from '../model/blocks.ts'
import type { Phase } from '../model/events.ts'
import type { CallFigures, CallSeries } from './analysis-calls.ts'
import type { Distribution } from './distribution.ts'

export type * from './analysis-calls.ts'
export type { Distribution } from './distribution.ts'

/** Version of the document; another major number where a field changes its meaning or is removed. */
export const ANALYSIS_SCHEMA = 'ggml2perfetto.analysis/1'

/**
 * What the logs of a run contain, as figures: the one document from which statistics, findings, comparisons and reports are made. It is
 * plain JSON: keys end in their unit (`_ns`, `_bytes`, `_share` from 0 to 1), null is "not known" and has its reason in `undetermined`.
 */
export interface Analysis {
  readonly schema: typeof ANALYSIS_SCHEMA
  readonly inputs: readonly AnalysedInput[]
  readonly run: RunFacts
  readonly calls: CallFigures
  /** Where the time of calls goes, by phase. */
  readonly call_time: readonly CallTime[]
  readonly operators: OperatorFigures
  readonly workers: readonly WorkerFigures[]
  /** Time in which threads of workers had no CPU; null where it was not recorded. */
  readonly scheduling: SchedulingFigures | null
  /** The model by itself; null where neither a GGUF nor a graph is known. */
  readonly model: ModelFigures | null
  readonly rooflines: readonly Roofline[]
  readonly findings: readonly Finding[]
  readonly undetermined: readonly Undetermined[]
  /** Figures over time, made on request. */
  readonly series?: Series | undefined
}

/** A figure that the inputs do not contain. */
export interface Undetermined {
  /** The field, such as `calls.ttft_ns`. */
  readonly what: string
  readonly why: string
  /** How to get it, such as an option of `record`. */
  readonly hint?: string | undefined
}

/** One log. */
export interface AnalysedInput {
  readonly name: string
  readonly format: string
  readonly clock: string
  readonly duration_ns: number
  readonly operators: number
  /** By code of the issue (docs/issues.md). */
  readonly issues: Readonly<Record<string, number>>
}

/** What ran, and what of it was recorded. */
export interface RunFacts {
  readonly command: string | null
  /** Name of the model. */
  readonly model: string | null
  readonly architecture: string | null
  /** Paths of GGUF files whose weights were used. */
  readonly model_files: readonly string[]
  /** Elements of all weights that recorded graphs use; null where the log has no shapes of them. */
  readonly parameters: number | null
  /** These weights by type, most bytes first: the quantisation mix. Null where the log has no types of them. */
  readonly weights: readonly WeightType[] | null
  readonly layers: number | null
  readonly host: string | null
  readonly cpu: string | null
  readonly cpus: number | null
  readonly kernel: string | null
  /** Version of ggml. */
  readonly build: string | null
  readonly backends: readonly string[]
  readonly workers: number
  /** Threads that ran operators or calls. */
  readonly threads: number
  readonly duration_ns: number
  /** Level of the recorder: `calls`, `graphs` or `op`. */
  readonly level: string | null
  readonly recorded: readonly RecordedKind[]
  /** Names of counters of operators. */
  readonly counters: readonly string[]
  /** What was asked for where it was not everything, such as `tokens` and `ops`. */
  readonly limited_to: Readonly<Record<string, string>>
  /** Events that were lost or bad, by code of the issue. */
  readonly losses: Readonly<Record<string, number>>
}

/** A kind of data in a log. */
export type RecordedKind =
  | 'calls'
  | 'graphs'
  | 'operators'
  | 'counters'
  | 'experts'
  | 'memory'
  | 'copies'
  | 'states'
  | 'scheduler'
  | 'nvtx'
  | 'gpu'

/** Weights of one type. */
export interface WeightType {
  readonly type: string
  readonly tensors: number
  readonly parameters: number
  readonly bytes: number
}

/** Parts of the time of all calls of a phase, on the thread that makes them; they sum to `time_ns`. */
export interface CallTime {
  readonly phase: Phase
  readonly calls: number
  readonly time_ns: number
  readonly parts: readonly TimePart[]
}

/** A part of the time of calls. */
export interface TimePart {
  /** `rest`: inside graphs, in no operator and no barrier. */
  readonly what:
    | Block
    | 'barrier wait'
    | 'preempted'
    | 'blocked'
    | 'waiting for a backend'
    | 'allocate'
    | 'reserve memory'
    | 'recorder'
    | 'outside graphs'
    | 'rest'
  readonly time_ns: number
  readonly share: number
}

/** Operators by the finest grouping; views sum rows up. */
export interface OperatorFigures {
  /** Sum of all slices of operators, of all workers. */
  readonly operator_time_ns: number
  readonly wait_ns: number
  readonly executions: number
  readonly rows: readonly OperatorRow[]
}

/** Nodes with the same op, role, layer, type, backend, phase and shape. */
export interface OperatorRow {
  readonly op: string
  readonly role: string
  /** -1: in no layer. */
  readonly layer: number
  readonly block: Block
  /** Type of the weights (the first source that is one), else of the result. */
  readonly type: string
  readonly backend: string
  readonly phase: Phase | 'none'
  /** M×N×K of a matrix product, else the shape of the result. */
  readonly shape: string
  /** Nodes computed, and their operators of all workers. */
  readonly steps: number
  readonly executions: number
  /** From the first start to the end of the last barrier, over all steps. */
  readonly wall_ns: number
  /** Time of computing and of waiting at the barrier after it, over all workers; by worker in `workers`. */
  readonly operator_time_ns: number
  readonly wait_ns: number
  readonly inner_wait_ns: number
  readonly workers: readonly {
    readonly worker: number
    readonly executions: number
    readonly operator_time_ns: number
    readonly wait_ns: number
    readonly last: number
  }[]
  /** Time in which the worker's thread had no CPU within its operators; null where it was not recorded. */
  readonly preempted_ns: number | null
  readonly blocked_ns: number | null
  /** -1: not known. Experts as they were chosen; `bytes_are_max`: where the choice was not recorded. */
  readonly flop: number
  readonly bytes_read: number
  readonly bytes_written: number
  readonly weight_bytes: number
  readonly bytes_are_max: boolean
  readonly counters: Readonly<Record<string, number>>
  /** Durations of operators. */
  readonly duration: Distribution | null
  /** The same as counts by logarithmic bucket, so that rows can be merged; see {@link Buckets}. */
  readonly buckets: Buckets | null
}

/** Bucket `first + i` counts the values v with γ^(n−1) < v ≤ γ^n in ns, n = first + i, γ = 1.01 / 0.99. */
export interface Buckets {
  readonly first: number
  readonly counts: readonly number[]
}

/** One worker in all calls. */
export interface WorkerFigures {
  readonly worker: number
  readonly executions: number
  readonly operator_time_ns: number
  readonly wait_ns: number
  /** Steps in which it was the last to end. */
  readonly last: number
  readonly by_phase: Readonly<
    Partial<Record<Phase | 'none', { readonly operator_time_ns: number; readonly wait_ns: number }>>
  >
}

/** Threads of workers that had no CPU. */
export interface SchedulingFigures {
  readonly source: 'log' | 'scheduler'
}

/** The model by itself. */
export interface ModelFigures {
  readonly source: 'gguf' | 'graph'
}

/** A measured speed against what the machine can do. */
export interface Roofline {
  readonly what: string
}

/** A sentence of the diagnosis. */
export interface Finding {
  readonly rule: string
  readonly sentence: string
  /** Time that it explains, in ns: findings are ranked by it. */
  readonly time_ns: number
  readonly confidence: 'high' | 'medium' | 'low'
  readonly evidence: Readonly<Record<string, string | number>>
  /** A command or an SQL query that shows it. */
  readonly check: string
}

/** Figures over time. */
export interface Series {
  readonly calls?: CallSeries | undefined
}

/** Names of {@link Series}. */
export type SeriesName = keyof Series
