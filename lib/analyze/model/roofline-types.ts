import type { Phase } from '../../model/events.ts'

/** The most that a machine can do. null: not known. */
export interface PeakFigures {
  /** The device, such as the name of the CPU. */
  readonly device: string | null
  /** Floating-point operations per second, of 32-bit numbers or of the type that `flop_type` names. */
  readonly flop_per_s: number | null
  readonly flop_type: string
  /** Operations per second of 8-bit integers: ggml's CPU backend multiplies quantised weights so. */
  readonly int8_op_per_s: number | null
  readonly bytes_per_s: number | null
  /** `given`: by an option. `measured`: by `ggml2perfetto peaks`. `known`: of the maker's documents, see `source`. */
  readonly origin: 'given' | 'measured' | 'known'
  readonly source: string
  /** Of single backends of ggml, where they were given: the others apply to the rest. */
  readonly backends?: Readonly<Record<string, BackendPeaks>> | undefined
}

/** Peaks of one backend, such as `Vulkan0`. */
export interface BackendPeaks {
  readonly flop_per_s: number | null
  readonly bytes_per_s: number | null
}

/** A measured speed against what the machine can do. */
export interface Roofline {
  /**
   * `run`: all work of a log. `range`: NVTX ranges with this name, and the calls within them. `backend`: the operators of one backend in a phase,
   * where not only the CPU computes. `kernel`: launches of a kernel that Nsight Compute measured.
   */
  readonly scope: 'run' | 'phase' | 'backend' | 'operator' | 'range' | 'kernel'
  /** The phase; the backend; the role and op; the name of the range or of the kernel. */
  readonly what: string
  /** Of operators and backends, where not only the CPU computes; else null. */
  readonly backend: string | null
  readonly phase: Phase | 'none' | null
  /** Times that it ran: calls, steps, ranges or launches. */
  readonly count: number
  /**
   * Of phases: of their calls, waits included. Of operators and backends: from the first start to the last barrier end of each operator.
   * Of PyTorch's matrix products (`run`, `aten::…`): their own, on a GPU that of the work that they launched.
   */
  readonly time_ns: number
  readonly flop: number
  /** Read and written; null: not known. */
  readonly bytes: number | null
  /** An upper bound: which experts were chosen was not recorded. */
  readonly bytes_are_max: boolean
  readonly flop_per_s: number
  readonly bytes_per_s: number | null
  /** FLOP per byte. */
  readonly intensity: number | null
  /** The peak that applies to the types of its weights, weighted by FLOP; null: not known. */
  readonly peak_flop_per_s: number | null
  readonly peak_bytes_per_s: number | null
  /** FLOP per byte above which computing is the limit: peak FLOP/s ÷ peak bytes/s. */
  readonly ridge: number | null
  /** min(peak FLOP/s, peak bytes/s × intensity). */
  readonly attainable_flop_per_s: number | null
  /** Model FLOP utilisation, and the same of the memory's bandwidth. Above 1: see `note`. */
  readonly mfu_share: number | null
  readonly mbu_share: number | null
  /** Of what is attainable: the larger of both. */
  readonly roof_share: number | null
  /** `near the ridge`: its intensity differs from the ridge by less than a factor of 1.5. */
  readonly bound: 'memory' | 'compute' | 'near the ridge' | null
  /** intensity ÷ ridge: 0.1 is ten times below it. */
  readonly margin: number | null
  readonly note: string | null
}
