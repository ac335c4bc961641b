import type { LostKind, RecordedKind } from '../../model/issues.ts'
import type { ProgramClock } from '../../model/program-clock.ts'
import type { Times } from '../../model/times.ts'

/** One log. */
export interface AnalysedInput {
  /** The path, as it was given. */
  readonly name: string
  /** Its format (docs/reference/formats.md). */
  readonly format: string
  /** The clock of its times, such as `MONOTONIC`; `unknown`. */
  readonly clock: string
  /** What the times of its events are: recorded; or made, of durations laid end to end, or of the order of its records. */
  readonly times: Times
  /** From its first to its last event; null where their times are not recorded, or are all the same. */
  readonly duration_ns: number | null
  /** Operators in it: executions of nodes by workers. */
  readonly operators: number
  /** By code of the issue (docs/reference/issues.md). */
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
  /** Path of ggml's library, `libggml-base`. */
  readonly ggml_library: string | null
  /** Version of llama.cpp, of versions that have one (from 0.5.0 on). */
  readonly version: string | null
  /** What limited the process from outside; null where it was not recorded. */
  readonly limits: RunLimits | null
  /** Variables of the environment that set what runtimes of threads, ggml, llama.cpp and drivers of GPUs do, such as `OMP_WAIT_POLICY`. */
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
  /** Where the log keeps slow calls only (`record --slow`): what it lacks. All figures are of the calls that it keeps. */
  readonly left_out: LeftOutCalls | null
  /** The clock of the program, where it is not the system's; null: it is, or is not known. */
  readonly program_clock: ProgramClock | null
  /** Losses in all inputs, by code of the issue (docs/reference/issues.md says which are). */
  readonly losses: Readonly<Record<string, number>>
}

/** Calls that `record --slow` left out. */
export interface LeftOutCalls {
  readonly calls: number
  /** The sum of their times. */
  readonly time_ns: number
  /** Calls as long as this are kept, with what preceded them, such as `200 ms`. */
  readonly limit: string
}

/** Weights of one type. */
export interface WeightType {
  readonly type: string
  readonly tensors: number
  readonly parameters: number
  readonly bytes: number
}

/** Limits of a process: those of its control groups (containers), and the CPUs that it may use. */
export interface RunLimits {
  /** CPUs on which its threads might run, or ran. Inferred where OpenMP binds them: `undetermined` contains how. */
  readonly cpus: number | null
  /** CPU time that it may use, in CPUs; null: not limited. */
  readonly cpu_time: number | null
  /** Of the periods of that limit during the run, those in which it was reached; null: not known. */
  readonly throttled_share: number | null
  /** Time in which threads could not run for that reason, over all CPUs; null: not known. */
  readonly throttled_ns: number | null
  /** Null: not limited. */
  readonly memory_bytes: number | null
}

/** What the kernel counted during calls, for all threads of the process. */
export interface CallResources {
  /** Calls of which it was recorded. */
  readonly calls: number
  /** Page faults without a read. */
  readonly minor_faults: number
  /** Page faults that read from a disk. */
  readonly major_faults: number
  readonly disk_bytes: number
  /** CPU time. */
  readonly cpu_ns: number
}
