import type { ModelBlock } from '../../model/blocks.ts'
import type { Phase } from '../../model/events.ts'
import type { ContextRole } from '../../model/roles.ts'
import type { Buckets, Distribution } from '../common/figures.ts'
import type { CallResources } from '../run/figures.ts'

/** Parts of the time of all calls of a phase, of all contexts, on the thread that makes them; they sum to `time_ns`. */
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
   * `barrier wait`: until the last worker arrives. `barrier open`: after that, until this one has noticed.
   * `rest`: inside graphs (inside calls, where no graphs were recorded), in no operator that was recorded and in no barrier.
   */
  readonly what:
    | ModelBlock
    | 'barrier wait'
    | 'barrier open'
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
  /** Part of it after the last worker had arrived: the barrier was open, and the worker had no CPU or had not noticed. Documents of earlier versions have none. */
  readonly wait_open_ns?: number
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
  readonly block: ModelBlock
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
  /** Part of it after the last worker had arrived: the barrier was open, and the worker had no CPU or had not noticed. Documents of earlier versions have none. */
  readonly wait_open_ns?: number
  /** Part of `wait_ns` in which all workers of the call were blocked at once: none waits for another one, the program was stopped. Missing where there is none. */
  readonly wait_stopped_ns?: number
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
    readonly wait_open_ns?: number
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

/** The first call of a phase, to be compared with those after it in the same llama_context. */
export interface FirstCall {
  readonly phase: Phase
  /** Address of the llama_context, or of the scheduler; null: not recorded. */
  readonly context: number | null
  /** Role of the context in speculative decoding. */
  readonly role: ContextRole | null
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
