import type { Distribution } from '../common/figures.ts'

/** Work of GPUs, as CUPTI and roctracer record it (Nsight Systems, PyTorch's profiler), and the calls that launched it. */
export interface GpuFigures {
  /** Each device of each process, in the order of their numbers. */
  readonly devices: readonly GpuDevice[]
  /** Calls of CUDA or HIP. */
  readonly processes: readonly GpuProcess[]
  /** NVTX ranges and PyTorch's annotations on the GPU: from the first to the last work launched within; most time first, at most 100 names. */
  readonly ranges: readonly GpuRange[]
  /** The further ones. */
  readonly other_ranges: GpuRest | null
}

/** A device, as one process used it. */
export interface GpuDevice {
  /** Null where it is not known. */
  readonly device: number | null
  /** Null where it is not known. */
  readonly pid: number | null
  /** Null where it is not recorded. */
  readonly name: string | null
  /**
   * Where its times are not those of kernels: what CUDA's events are around, `events around nodes` or `events around graph runs`; `durations`:
   * when its work ran is not recorded; else null.
   */
  readonly times: string | null
  /** Pieces of work: kernels, copies, fills, and CUDA graphs that were recorded as a whole. */
  readonly work: number
  /** Sum of their durations; work of several streams overlaps. */
  readonly work_ns: number
  /** Null for more work than is held (16 million pieces), and where it is not recorded when its work ran. */
  readonly time: GpuTime | null
  /** `idle_ns` by its cause; null where no launches were recorded. */
  readonly idle: GpuGaps | null
  /** `idle.host_wait` by what the program did, most time first; null where no calls of llama.cpp were recorded with the work, or too many. */
  readonly host_wait: readonly GpuHostTime[] | null
  /** Without what was launched outside of calls of `llama_decode`, such as copies of weights, and without warm-ups; null where there is no such work. */
  readonly calls: GpuCalls | null
  /** By kind, most time first. */
  readonly kinds: readonly GpuKind[]
  /** By name, most time first, at most 100; with names that a program gave its kernels, without streams. */
  readonly kernels: readonly GpuKernel[]
  /** The further ones. */
  readonly other_kernels: GpuRest | null
  /** In the order of their numbers, at most 100. */
  readonly streams: readonly GpuStream[]
  /** Copies and fills by direction and memory, most bytes first. */
  readonly transfers: readonly GpuTransfer[]
  /** From the start of a call to the start of the first work that it launched; null where none of them was recorded. */
  readonly launch_latency: Distribution | null
  /** Launches whose work begins before them, as the clocks of CPU and GPU are not aligned; not in `launch_latency` and `queue`. */
  readonly launches_after_work: number
  /** Null where no launches were recorded. */
  readonly queue: GpuQueueLength | null
  /** What launched the work, on the thread that made the call. */
  readonly launchers: readonly GpuLaunchers[]
  /** Steps (`ProfilerStep#`, steps of vLLM or SGLang), at most the first 100: the work that was launched within. */
  readonly steps: readonly GpuStep[]
  /** Steps that are not in the list. */
  readonly further_steps: number
}

/** The work of calls of `llama_decode`, from the first to the last of it; figures are as those of the device. */
export interface GpuCalls {
  readonly work: number
  readonly time: GpuTime
  readonly idle: GpuGaps | null
  readonly host_wait: readonly GpuHostTime[] | null
  readonly transfers: readonly GpuTransfer[]
}

/**
 * The time from the start of the first work to the end of the last: computation + exposed communication + exposed copies + idle.
 * Each is a union of intervals: work at the same time counts once. Kernels are communication if their name contains `nccl`, `rccl` or
 * `cross_device_reduce` (as in TraceLens; HTA: begins with `nccl`, `hip` or `hccl`, or contains `ncclKernel`); copies are memcpy, memset, migrations and
 * the kernels that ROCm copies and fills with; all else is computation. HTA's `compute_time`, `idle_time` and `kernel_time`
 * (get_temporal_breakdown) are `computation_ns`, `idle_ns` and `total_ns`, its `non_compute_time` is the sum of the other two.
 */
export interface GpuTime {
  readonly total_ns: number
  readonly computation_ns: number
  /** Communication while nothing is computed. */
  readonly exposed_communication_ns: number
  /** Copies and fills while neither computation nor communication runs. */
  readonly exposed_copy_ns: number
  readonly idle_ns: number
  /** `total_ns` without `idle_ns`. */
  readonly busy_ns: number
  /** With or without computation at the same time. */
  readonly communication_ns: number
  /** With or without other work at the same time. */
  readonly copy_ns: number
  /** Part of `copy_ns`: the driver moves pages of unified memory. */
  readonly migration_ns: number
  /** Part of `exposed_copy_ns`: nothing but migrations runs. */
  readonly exposed_migration_ns: number
  /** Of communication, what computation overlaps: HTA's get_comm_comp_overlap; null without communication. */
  readonly communication_overlap_share: number | null
  /** As TraceLens' `gpu_timeline` divides it: fills of memory are computation there. */
  readonly tracelens: {
    readonly computation_ns: number
    readonly exposed_communication_ns: number
    readonly exposed_copy_ns: number
    /** All copies, without fills. */
    readonly copy_ns: number
  }
}

/**
 * Gaps by cause, as HTA's get_idle_time_breakdown has them. `host_wait`: the work after the gap was launched after the gap began, so that the
 * GPU waited for the CPU. `kernel_wait`: launched before, and the gap is shorter than 30 µs: the overhead between two kernels. `other`: such as a
 * wait for another stream.
 */
export interface GpuGaps {
  readonly host_wait: GpuGapSum
  readonly kernel_wait: GpuGapSum
  readonly other: GpuGapSum
}

/**
 * What the recorded program did on any of its threads while the GPU waited for it; the sum is `idle.host_wait.time_ns`. Of activities at the same
 * time the first in this order counts: `another GPU` (it works, or the program submits a graph to it; where one thread launches the work of both), `between graphs`
 * (copies and waits between the splits of a graph, without those after a first one on the CPU), `compiling pipelines`, `preparing graphs` (CUDA's: captured, instantiated, updated), `waiting` (for a GPU: it ends a little after the work), `copying` between host and
 * backend buffers, `allocating` a graph or memory, `sampling`, `text` (tokenizing, detokenizing), `state` (saved or restored), `media` (images, sound),
 * `submitting` (graph runs that put work into command buffers, and submissions), `graphs elsewhere` (on another backend, such as the CPU),
 * `rest of calls` (building graphs, setting inputs, …), `outside calls`. `launch latency` is the time from the launch to the start of its work.
 */
export interface GpuHostTime {
  readonly what:
    | 'another GPU'
    | 'between graphs'
    | 'compiling pipelines'
    | 'preparing graphs'
    | 'waiting'
    | 'copying'
    | 'allocating'
    | 'sampling'
    | 'text'
    | 'state'
    | 'media'
    | 'submitting'
    | 'graphs elsewhere'
    | 'rest of calls'
    | 'outside calls'
    | 'launch latency'
  /** Number of the GPU that it waits for; null for all but `another GPU`. */
  readonly device: number | null
  readonly time_ns: number
}

/** Gaps of one cause. */
export interface GpuGapSum {
  readonly count: number
  readonly time_ns: number
}

/** Work of one kind. */
export interface GpuKind {
  /** `kernel`, `memset`, `graph`; copies and migrations with their direction, such as `memcpy HtoD`, `migration DtoH`. */
  readonly kind: string
  readonly count: number
  readonly time_ns: number
  /** Of `work_ns`. */
  readonly share: number
}

/** Kernels of one name. */
export interface GpuKernel {
  readonly name: string
  /** Is it a kernel of communication? See {@link GpuTime}. */
  readonly is_communication: boolean
  readonly count: number
  readonly time_ns: number
  /** Of `work_ns`. */
  readonly share: number
  /** Null for more work than is held. */
  readonly duration: Distribution | null
}

/** What a table leaves out, summed up. */
export interface GpuRest {
  readonly names: number
  readonly count: number
  readonly time_ns: number
}

/** A stream. */
export interface GpuStream {
  /** Null where it is not known. */
  readonly stream: number | null
  readonly context: number | null
  /** That the program or the driver gave it; empty: none. */
  readonly name: string
  readonly work: number
  /** Time in which it works: pieces that overlap, as those of a graph, count once. Their sum where more pieces were recorded than are held. */
  readonly time_ns: number
  /**
   * Gaps between its pieces of work, as HTA has them; work right after other work counts in `kernel_wait` with 0 ns. HTA's sums differ where work
   * of one stream overlaps: it adds negative gaps. Null where no launches were recorded.
   */
  readonly gaps: GpuGaps | null
  readonly launch_latency: Distribution | null
  readonly queue: GpuQueueLength | null
}

/** Launches whose work has not begun, over the time from the first launch to the start of the last work. */
export interface GpuQueueLength {
  readonly mean: number
  readonly max: number
}

/** Copies or fills in one direction. */
export interface GpuTransfer {
  /** `HtoD`, `DtoH`, `DtoD`, `PtoP` (between GPUs), `HtoH`, those of arrays such as `HtoA`; `memset`; `migration HtoD` and others, of unified memory; `unknown`. */
  readonly direction: string
  /** Memory that they read, such as `pageable` or `pinned`; empty where it is not recorded. */
  readonly from: string
  /** Memory that they write. */
  readonly to: string
  readonly count: number
  readonly bytes: number
  readonly time_ns: number
  /**
   * Time in which such copies run and neither computation nor communication does. Copies of two directions at the same time count in both.
   * Null for more work than is held.
   */
  readonly exposed_ns: number | null
  /** `bytes` by `time_ns`; null without bytes. */
  readonly gb_per_s: number | null
  /** Those whose size is not recorded; not in `bytes`. */
  readonly unknown_sizes: number
}

/** Time of GPU work by what launched it: a call of CUDA or HIP began within it, on its thread. */
export interface GpuLaunchers {
  /** Operators of PyTorch (`aten::`), its modules (`nn.Module:`), annotations of the program without steps, NVTX ranges. */
  readonly kind: 'operator' | 'module' | 'annotation' | 'nvtx'
  /** Of nested ones. */
  readonly level: 'innermost' | 'outermost'
  /** Most time first, at most 100 names. */
  readonly rows: readonly GpuLauncher[]
  /** The further ones. */
  readonly other: GpuRest | null
  /** Work that none of them launched. */
  readonly none_ns: number
}

/** An operator, a module, an annotation or a range. */
export interface GpuLauncher {
  readonly name: string
  readonly launches: number
  /** Pieces of work that they launched. */
  readonly work: number
  readonly time_ns: number
  /** Of `work_ns`. */
  readonly share: number
}

/** A step: the work that was launched within. */
export interface GpuStep {
  readonly name: string
  readonly work: number
  readonly time: GpuTime
}

/** NVTX ranges or annotations of one name, on the GPU. */
export interface GpuRange {
  /** NVTX: with the domain before a colon. */
  readonly name: string
  readonly kind: 'nvtx' | 'annotation'
  readonly count: number
  /** From first to last work, summed up. */
  readonly time_ns: number
  /** Durations of their work, summed up; null where it is not recorded. */
  readonly busy_ns: number | null
  /** Pieces of work; null where it is not recorded. */
  readonly work: number | null
}

/** Calls of CUDA or HIP of one process. */
export interface GpuProcess {
  readonly pid: number | null
  readonly threads: number
  /** By kind: time in which a thread was in such a call, over all threads. */
  readonly kinds: readonly GpuCallKind[]
  /** By name, most time first, at most 50. */
  readonly calls: readonly GpuCall[]
  /** The further ones. */
  readonly other_calls: GpuRest | null
}

/** Calls of one kind. */
export interface GpuCallKind {
  /** Launches of kernels and graphs; waits for the GPU (`cudaStreamSynchronize` …); copies and fills, of which those without `Async` wait, too. */
  readonly kind: 'launch' | 'synchronize' | 'copy' | 'other'
  readonly count: number
  readonly time_ns: number
}

/** Calls of one function. */
export interface GpuCall {
  readonly name: string
  readonly kind: GpuCallKind['kind']
  readonly count: number
  /** A call within another one counts in both. */
  readonly time_ns: number
  readonly mean_ns: number
  readonly max_ns: number
  /** Pieces of GPU work that they launched. */
  readonly work: number
}
