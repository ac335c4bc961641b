import type { ModelBlock } from '../../model/blocks.ts'
import type { Phase } from '../../model/events.ts'

/** The model by itself: what it contains, and what a token costs. null: not known. Weights only: no time is measured here. */
export interface ModelFigures {
  /** `gguf`: the file. `config`: config.json of Hugging Face. `graph`: the tensors that a log recorded. */
  readonly source: 'gguf' | 'config' | 'graph'
  readonly architecture: string | null
  readonly name: string | null
  readonly layers: number | null
  readonly width: number | null
  readonly vocabulary: number | null
  readonly context_length: number | null
  /** Of a layer; 0: no mixture of experts. */
  readonly experts: number | null
  readonly experts_used: number | null
  /** Layers with the same attention. */
  readonly attention: readonly AttentionFigures[]
  readonly parameters: number
  /** Parameters that a token uses: of experts the chosen ones, of embedding tables a row. */
  readonly active_parameters: number
  readonly bytes: number | null
  readonly by_type: readonly TypeGroup[]
  readonly by_block: readonly BlockGroup[]
  readonly decode: DecodeFigures
  /** The same evaluated at some lengths of the context. */
  readonly at: readonly ModelAtContext[]
  readonly activations: ActivationFigures | null
  /** Bytes of weights that matrix products read for a token of decode in the log; null without operators. */
  readonly recorded_matmul_weight_bytes: number | null
}

/** Equal layers. */
export interface AttentionFigures {
  readonly layers: number
  readonly heads: number
  readonly kv_heads: number
  readonly key_length: number
  readonly value_length: number
  /** Last positions that it attends to; 0: all. */
  readonly window: number
}

/** Weights, as they are in the file. */
export interface WeightGroup {
  readonly tensors: number
  readonly parameters: number
  readonly bytes: number | null
}

/** Weights of one type. */
export interface TypeGroup extends WeightGroup {
  readonly type: string
}

/** Weights of one block. */
export interface BlockGroup extends WeightGroup {
  readonly block: ModelBlock
}

/**
 * A cost as a function of the number n of positions in the context, the new token included:
 * constant + per_position · n + Σ per_position of a window · min(n, window).
 */
export interface ContextFunction {
  readonly constant: number
  readonly per_position: number
  readonly windows: readonly { readonly window: number; readonly per_position: number }[]
}

/**
 * The cost of one token of decode, of one sequence. FLOP are those of matrix products (a multiply-add is two); each byte counts once, as if
 * no cache kept any between operators.
 */
export interface DecodeFigures {
  /** All weights: matrices, norms, biases. Of experts the chosen ones; of embedding tables no more than a row. */
  readonly weight_bytes: number | null
  /** The part that matrix products read. A table that serves as LM head too (tied) is one of them. */
  readonly matmul_weight_bytes: number | null
  readonly embedding_bytes: number | null
  readonly is_head_tied: boolean
  /** Types of the KV cache; `is_assumed`: llama.cpp's default, as no log says another. */
  readonly kv_cache: { readonly k: string; readonly v: string; readonly is_assumed: boolean } | null
  readonly kv_read_bytes: ContextFunction | null
  readonly kv_written_bytes: number | null
  readonly flop: ContextFunction | null
  /** The part of the LM head: a prefill computes it for the last token only. */
  readonly lm_head_flop: number
  readonly by_block: readonly {
    readonly block: ModelBlock
    readonly weight_bytes: number | null
    readonly flop: number
  }[]
}

/** The functions of {@link DecodeFigures} at one length of the context; and a prefill of so many tokens. */
export interface ModelAtContext {
  readonly context: number
  readonly decode_bytes: number | null
  readonly decode_flop: number | null
  /** FLOP per byte. */
  readonly decode_intensity: number | null
  readonly prefill_flop: number | null
}

/** Results of operators while a token is decoded, from a recorded graph. */
export interface ActivationFigures {
  /** Written by all operators of one decode call. */
  readonly bytes: number
  /** The most that are in use at once in the compute buffers; null where places of results were not recorded. */
  readonly peak_bytes: number | null
}

/** The most that a machine can do. null: not known. */
export interface PeakFigures {
  /** The device, such as the name of the CPU. */
  readonly device: string | null
  /** CPUs of the machine, where the peaks were measured; null: not known. */
  readonly cpus?: number | null
  /** They were measured some time on this machine: they apply only to logs that name it. */
  readonly is_kept?: boolean
  /** Floating-point operations per second, of 32-bit numbers or of the type that `flop_type` names. */
  readonly flop_per_s: number | null
  readonly flop_type: string
  /** Operations per second of 8-bit integers: ggml's CPU backend multiplies quantised weights so. */
  readonly int8_op_per_s: number | null
  readonly bytes_per_s: number | null
  /** `given`: by an option. `measured`: by `ggml2perfetto peaks`. `known`: of the maker's documents, see `source`. */
  readonly origin: 'given' | 'measured' | 'known'
  readonly source: string
  /** By number of threads, the fewest first: a run is compared with that of its workers, or the next one above. */
  readonly by_threads?: readonly ThreadPeaks[] | undefined
  /** Of single backends of ggml, where they were given: the others apply to the rest. */
  readonly backends?: Readonly<Record<string, BackendPeaks>> | undefined
}

/** What a number of threads can do at the most, each on a CPU of its own. */
export interface ThreadPeaks {
  readonly threads: number
  readonly flop_per_s: number
  readonly int8_op_per_s: number
  readonly bytes_per_s: number
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
  /** Threads that these peaks were measured with: at least the workers of this work; null: not known, or of the whole machine. */
  readonly peak_threads: number | null
  /** FLOP per byte above which computing is the limit: peak FLOP/s ÷ peak bytes/s. */
  readonly ridge: number | null
  /** min(peak FLOP/s, peak bytes/s × intensity). */
  readonly attainable_flop_per_s: number | null
  /** Model FLOP utilisation, and the same of the memory's bandwidth. Above 1: see `note`. */
  readonly mfu_share: number | null
  readonly mbu_share: number | null
  /** Of what is attainable: the larger of both. */
  readonly roof_share: number | null
  /**
   * The side of the ridge: what would be the limit at the roof. It is the limit only where `roof_share` is near 1 (the finding `roofline`).
   * `near the ridge`: its intensity differs from the ridge by less than a factor of 1.5.
   */
  readonly bound: 'memory' | 'compute' | 'near the ridge' | null
  /** intensity ÷ ridge: 0.1 is ten times below it. */
  readonly margin: number | null
  readonly note: string | null
}
