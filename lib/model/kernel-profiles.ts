/** What a profiler of single kernels measured of one launch; absent: not measured. Shares are of 1. */
export type KernelFigures = Readonly<Partial<Record<KernelFigure, number>>>

/** Figures of a {@link KernelFigures}, in the order in which they are shown. */
export const KERNEL_FIGURES = [
  /** Of the profiled launch, which ran alone: it differs from that of the same launch in a timeline. */
  'duration_ns',
  /** Busiest part of the multiprocessors, of the most that it can do. */
  'sm_share',
  /** Busiest part of the memory system, of the most that it can do. */
  'memory_share',
  /** Of the peak of the GPU's memory. */
  'dram_share',
  /** Read and written. */
  'dram_bytes',
  'l2_hit_share',
  'l1_hit_share',
  /** Warps that are active, of the most that can be. */
  'occupancy_share',
  /** Cycles in which the pipe of the tensor cores is active. */
  'tensor_share',
  /** Floating-point operations; a fused multiplication and addition counts 2. */
  'flop',
  /** Of 32-bit numbers without tensor cores, at the clock of the profile. */
  'peak_flop_per_s',
  'peak_bytes_per_s',
] as const
/** A name of {@link KERNEL_FIGURES}. */
export type KernelFigure = (typeof KERNEL_FIGURES)[number]

/** One launch of a kernel that a profiler measured, without its time in the run. `-1`, empty and the name 0 mean "not known". */
export interface KernelProfileEvent {
  readonly kind: 'kernel-profile'
  /** The profiler's number of the launch, from 0 in its process. */
  readonly id: number
  /** The kernel's function, mostly with template arguments and parameters. */
  readonly name: number
  readonly pid: number
  readonly context: number
  readonly stream: number
  /** `64x2x1` */
  readonly grid: string
  readonly block: string
  readonly figures: KernelFigures
  /** All metrics by their names, if they were asked for. */
  readonly metrics?: ReadonlyMap<number, number> | undefined
}

/** What a profiler measured of a kernel in a log. */
export interface JoinedProfile {
  readonly of: KernelProfileEvent
  /** `launch`: the same launch, by its place among those of its name and stream; `shape`: another one with the same name, grid and block. */
  readonly match: 'launch' | 'shape'
}
