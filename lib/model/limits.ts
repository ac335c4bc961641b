/** 100 days in ns: the maximum distance of a time from its input's origin, and the maximum duration; sums of both are exact. */
export const TIME_NS_MAX = 100 * 86_400e9
/** Absolute times are below this, in ns: no clock runs for 146 years, and Perfetto's timestamps end at twice that. */
export const STAMP_END = 1n << 62n
/** The kernel's own limit is 8191 (NR_CPUS). */
export const CPU_MAX = 65_535
/** The kernel's thread ids (pid_t) and CUDA's device numbers are signed 32-bit numbers. */
export const INT32_MAX = 2 ** 31 - 1
/** ggml's own limit is 512 (GGML_MAX_N_THREADS). */
export const WORKER_MAX = 4095
/** Ids of tensors and buffers of one input; tables are indexed by them. */
export const ID_MAX = 2 ** 24 - 1
/** Indexes of counters of operators. */
export const COUNTED_MAX = 1023
/** Ids of meters of one input. */
export const METER_MAX = 65_535
/** Profilers' correlation ids have 32 bits. */
export const CORRELATION_MAX = 2 ** 32 - 1
/** The largest integer of 64 bits with a sign. */
export const I64_MAX = 2n ** 63n - 1n
/** Ids of arrows. */
export const FLOW_MAX = 2 ** 53 - 1

/** Is it a time since an input's origin, in ns? */
export function isTime(ns: number): boolean {
  return ns >= -TIME_NS_MAX && ns <= TIME_NS_MAX && Number.isInteger(ns)
}
