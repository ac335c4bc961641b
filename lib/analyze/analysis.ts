import type { Block } from '../model/blocks.ts'
import type { Phase, Times } from '../model/events.ts'
import type { LostKind } from '../model/issues.ts'
import type { RecordedKind } from '../model/recorded.ts'
import type { CallFigures, CallSeries } from './analysis-calls.ts'
import type { RoleImbalance, SchedulingFigures, WorkerFigures } from './analysis-workers.ts'
import type { Distribution } from './distribution.ts'

export type { RecordedKind } from '../model/recorded.ts'
export type * from './analysis-calls.ts'
export type * from './analysis-workers.ts'
export type { Distribution } from './distribution.ts'

import type { DataAccessFigures, PageFaultFigures } from './accesses/figures.ts'
import type { BlasFigures } from './blas/figures.ts'
import type { GpuFigures } from './gpu/figures.ts'
import type { HostOperators } from './host-operators/figures.ts'
import type { KernelProfiles } from './kernels/figures.ts'
import type { MemoryFigures } from './memory/figures.ts'
import type { ModelFigures } from './model/figures.ts'
import type { Roofline } from './model/roofline-types.ts'
import type {
  FunctionFigures,
  LoadFigures,
  RequestFigures,
  RequestSeries,
  SamplingFigures,
  SpeculationFigures,
} from './requests/figures.ts'
import type { CallResources, RunLimits } from './run/figures.ts'
import type { GraphSeries, MemorySeries, OffsetSeries } from './series/figures.ts'

export type * from './accesses/figures.ts'
export type * from './blas/figures.ts'
export type * from './gpu/figures.ts'
export type * from './host-operators/figures.ts'
export type * from './kernels/figures.ts'

import type { BenchmarkFigures } from './benchmarks/figures.ts'
import type { PowerFigures } from './power/figures.ts'

export type * from './power/figures.ts'

import type { ExpertFigures } from './experts/figures.ts'

export type * from './benchmarks/figures.ts'
export type * from './experts/figures.ts'
export type * from './memory/figures.ts'
export type * from './model/figures.ts'
export type * from './model/roofline-types.ts'
export type * from './requests/figures.ts'
export type * from './run/figures.ts'
export type * from './series/figures.ts'

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
  /** By role, most time lost first. */
  readonly imbalance: readonly RoleImbalance[]
  /** Time in which threads of workers had no CPU; null where it was not recorded. */
  readonly scheduling: SchedulingFigures | null
  /** The model by itself; null where neither a GGUF nor a graph is known. */
  readonly model: ModelFigures | null
  readonly rooflines: readonly Roofline[]
  /** Null where no work of a GPU and no calls of CUDA or HIP were recorded. */
  readonly gpu: GpuFigures | null
  /** Operators of PyTorch on the CPU; null where none were recorded, or work of a GPU, whose figures contain what launched it. */
  readonly host_operators: HostOperators | null
  /** Null where no calls of BLAS libraries or of oneDNN were logged. */
  readonly blas: BlasFigures | null
  /** Energy by phase and by token, clocks; null where no log of power was given. */
  readonly power: PowerFigures | null
  /** Null where Nsight Compute measured no kernels. */
  readonly kernel_profiles: KernelProfiles | null
  /** Which experts were chosen; null where the log does not contain it. */
  readonly experts: ExpertFigures | null
  /** Null where the log contains neither operators nor allocations. */
  readonly memory: MemoryFigures | null
  /** Page faults by tensor; null where no samples with addresses were given (docs/memory-samples.md). */
  readonly page_faults: PageFaultFigures | null
  /** Loads and stores by tensor; null where no samples with addresses were given. */
  readonly data_accesses: DataAccessFigures | null
  /** Requests to a server, or uses of sequences; null where the log contains none. */
  readonly requests: RequestFigures | null
  /** Null where no samplers were recorded. */
  readonly sampling: SamplingFigures | null
  /** Null where no drafts were verified. */
  readonly speculation: SpeculationFigures | null
  /** Null where no loading was recorded. */
  readonly load: LoadFigures | null
  /** Functions around calls, without samplers and loading; most time first. */
  readonly functions: readonly FunctionFigures[]
  /** Speeds that a program measured itself, in their order: tests of llama-bench. */
  readonly benchmarks: readonly BenchmarkFigures[]
  /** Of each phase. */
  readonly first_calls: readonly FirstCall[]
  /** What made the run slow, most time first. */
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
  /** The path, as it was given. */
  readonly name: string
  /** Its format (docs/formats.md). */
  readonly format: string
  /** The clock of its times, such as `MONOTONIC`; `unknown`. */
  readonly clock: string
  /** What the times of its events are: recorded; or made, of durations laid end to end, or of the order of its records. */
  readonly times: Times
  /** From its first to its last event; null where their times are not recorded, or are all the same. */
  readonly duration_ns: number | null
  /** Operators in it: executions of nodes by workers. */
  readonly operators: number
  /** By code of the issue (docs/issues.md). */
  readonly issues: Readonly<Record<string, number>>
  /** Those of the issues that are losses. */
  readonly losses: readonly InputLoss[]
}

/** Events that an input lacks. */
export interface InputLoss {
  /** Of the issue. */
  readonly code: string
  /** How often it occurred. */
  readonly count: number
  /** The kinds of data of which something is missing; `end`: all after the last event. None: any may be. */
  readonly lost: readonly LostKind[]
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
  /** CPUs on which threads of the program ran; null where it was not recorded. */
  readonly cpus_used: number | null
  readonly kernel: string | null
  /** Version of ggml. */
  readonly build: string | null
  /** Version of llama.cpp, of versions that have one (from 0.5.0 on). */
  readonly version: string | null
  /** What limited the process from outside; null where it was not recorded. */
  readonly limits: RunLimits | null
  /** Variables of the environment that set how threads of OpenMP wait, such as `OMP_WAIT_POLICY`. */
  readonly variables: Readonly<Record<string, string>>
  readonly backends: readonly string[]
  readonly workers: number
  /** Threads that ran operators or calls. */
  readonly threads: number
  /** From the first event of its log to the last; null where their times are not recorded, or are all the same. */
  readonly duration_ns: number | null
  /** Level of the recorder: `calls`, `graphs` or `op`. */
  readonly level: string | null
  readonly recorded: readonly RecordedKind[]
  /** Names of counters of operators. */
  readonly counters: readonly string[]
  /** What was asked for where it was not everything, such as `tokens` and `ops`. */
  readonly limited_to: Readonly<Record<string, string>>
  /** Losses in all inputs, by code of the issue (docs/issues.md says which are). */
  readonly losses: Readonly<Record<string, number>>
}

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
  /** From the start of each call to the end of its work: where a device computes asynchronously, later than its return. */
  readonly time_ns: number
  /** Most time first. */
  readonly parts: readonly TimePart[]
  /** Null where the kernel's counts of calls were not recorded. */
  readonly resources: CallResources | null
}

/** A part of the time of calls. */
export interface TimePart {
  /**
   * `CPU library`: in graph runs of backends that compute on the CPU without an operator hook (BLAS, ZenDNN, zDNN).
   * `waiting for a backend`: in functions that wait (`ggml_backend_synchronize` …), and in graph runs of other backends, on devices.
   * `submitting to a backend`: in graph runs of a backend that the program waits for separately. `copying for backends`: copies between buffers,
   * where a device computes, too, without waits in them. `log output`: the program takes messages of ggml and llama.cpp for its log.
   * `rest`: inside graphs (inside calls, where no graphs were recorded), in no operator that was recorded and in no barrier.
   */
  readonly what:
    | Block
    | 'barrier wait'
    | 'preempted'
    | 'blocked'
    | 'CPU library'
    | 'waiting for a backend'
    | 'submitting to a backend'
    | 'copying for backends'
    | 'allocate'
    | 'reserve memory'
    | 'recorder'
    | 'log output'
    | 'outside graphs'
    | 'rest'
  readonly time_ns: number
  /** Of the time of all calls of the phase. */
  readonly share: number
}

/** Operators by the finest grouping; views sum rows up. */
export interface OperatorFigures {
  /** Time in operators: the sum of all their slices, of all workers and GPUs. Time of computing is without that in which threads had no CPU. */
  readonly operator_time_ns: number
  /** Time of waiting at the barriers after them. */
  readonly wait_ns: number
  /** Operators: executions of nodes by workers and GPUs. */
  readonly executions: number
  /** Most time in operators first. */
  readonly rows: readonly OperatorRow[]
}

/** Nodes with the same op, role, layer, type, backend, phase and shape. */
export interface OperatorRow {
  /** Such as `MUL_MAT`; of fused nodes the first and the last one, such as `RMS_NORM+MUL`. */
  readonly op: string
  /** Name of the tensor without the number of its layer; empty where it has none. */
  readonly role: string
  /** -1: in no layer. */
  readonly layer: number
  /** The part of the model. */
  readonly block: Block
  /** Type of the weights (the first source that is one), else of the result. */
  readonly type: string
  /** Empty where it is not known. */
  readonly backend: string
  /** Of its call; `none`: in no recorded call. */
  readonly phase: Phase | 'none'
  /** M×N×K of a matrix product, else the shape of the result. */
  readonly shape: string
  /** Nodes computed; fused nodes are one step. */
  readonly steps: number
  /** Operators: executions of these nodes by workers; on a GPU, the same as `steps`. */
  readonly executions: number
  /** From the first start to the end of the last barrier, over all steps. */
  readonly wall_ns: number
  /** Time in the operator, over all workers. */
  readonly operator_time_ns: number
  /** Time of waiting at the barrier after it, over all workers. */
  readonly wait_ns: number
  /** Part of `operator_time_ns` at barriers within the operator. */
  readonly inner_wait_ns: number
  /** None of operators on a GPU. */
  readonly workers: readonly {
    readonly worker: number
    readonly executions: number
    readonly operator_time_ns: number
    /** Part of it in which its thread had no CPU (preempted or blocked); null where it was not recorded. */
    readonly off_cpu_ns: number | null
    readonly wait_ns: number
    /** Steps in which it was the last to end. */
    readonly last: number
  }[]
  /**
   * Time in its operators in which the worker's thread could run but had no CPU, and in which it waited for something, and then for a
   * CPU; null where it was not recorded.
   */
  readonly preempted_ns: number | null
  readonly blocked_ns: number | null
  /** Of matrix products, a multiply-add counts as two; 0 for other ops; -1: not known. */
  readonly flop: number
  /** Each source once, of experts the chosen ones; -1: not known. */
  readonly bytes_read: number
  /** -1: not known. */
  readonly bytes_written: number
  /** The part of `bytes_read` from weights; -1: not known. */
  readonly weight_bytes: number
  /** The choice of experts was not recorded: `bytes_read` is an upper bound. */
  readonly bytes_are_max: boolean
  /** Totals of counters by name, such as `page_faults`. */
  readonly counters: Readonly<Record<string, number>>
  /** Durations of operators; null where they were not asked for. */
  readonly duration: Distribution | null
  /** The same as counts by logarithmic bucket, so that rows can be merged; see {@link Buckets}. */
  readonly buckets: Buckets | null
}

/** Bucket `first + i` counts the values v with γ^(n−1) < v ≤ γ^n in ns, n = first + i, γ = 1.01 / 0.99. Values of 0 are in no bucket. */
export interface Buckets {
  readonly first: number
  readonly counts: readonly number[]
}

/** A sentence of the diagnosis. */
export interface Finding {
  readonly rule: string
  readonly sentence: string
  /** Time that it explains, in ns: findings are ranked by it. */
  readonly time_ns: number
  readonly confidence: 'high' | 'medium' | 'low'
  readonly confidence_reason: string
  /** The figures behind it, by name and unit. */
  readonly evidence: Readonly<Record<string, string | number>>
  /** How to see it. */
  readonly check: FindingCheck
  /** What to do about it. */
  readonly advice: string
}

/** Shows the figure of the evidence with this key: as the first column of the first row of a query, or in the output of a command. */
export interface FindingCheck {
  readonly evidence: string
  /** An SQL query on the converted trace. */
  readonly sql?: string | undefined
  readonly command?: string | undefined
}

/** The first call of a phase, to be compared with those after it. */
export interface FirstCall {
  readonly phase: Phase
  readonly call: number
  readonly tokens: number
  readonly time_ns: number
  /** Major page faults in its operators, or, where these have no counts, of the process during it; null where they were not counted. */
  readonly major_faults: number | null
  /** Bytes that the process read from disks during it; null where they were not counted. */
  readonly disk_bytes: number | null
  /** Time in its operators in which a worker waited for something, of the worker with most of it; null where it was not recorded. */
  readonly blocked_ns: number | null
  /** The layer with most time of worker 0, barrier waits included; of all layers, the median. */
  readonly slowest_layer: number | null
  readonly slowest_layer_ns: number | null
  readonly median_layer_ns: number | null
  /** Later calls of the phase, and the median of their times per token. */
  readonly further_calls: number
  readonly typical_token_ns: number | null
}

/** Figures over time. */
export interface Series {
  readonly calls?: CallSeries | undefined
  readonly requests?: RequestSeries | undefined
  readonly offsets?: OffsetSeries | undefined
  /** Of one call: the one that was asked for, or the first decode call, else the first call. */
  readonly memory?: MemorySeries | undefined
  /** Of one call: the one that was asked for, or the second decode call, else the first one, else the first call. */
  readonly graph?: GraphSeries | undefined
}

/** Names of {@link Series}. */
export type SeriesName = keyof Series
