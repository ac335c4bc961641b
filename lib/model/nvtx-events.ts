/**
 * What a program tells through NVTX. Pushed ranges nest by call order on their thread and in their domain; started ones
 * belong to the process and may end on another thread, so that an end may come before its start where threads are read one
 * after the other.
 */
export interface NvtxEvent {
  readonly kind: 'nvtx'
  readonly what: 'push' | 'pop' | 'start' | 'end' | 'mark'
  readonly tid: number
  readonly atNs: number
  /** Name that the program gave the thread; 0 = none. */
  readonly thread: number
  /** Name of the domain; 0 is the default domain. An end has none: its number is enough. */
  readonly domain: number
  /** Of a started range, and of its end; else 0. */
  readonly range: number
  /** What the rest is called; 0 = not at all, and at a pop or an end. */
  readonly message: number
  /** Name of the category, or its number as a text; 0 = none. */
  readonly category: number
  /** 0xaarrggbb; -1 = none. */
  readonly color: number
  readonly payload?: NvtxPayload | undefined
  /** A payload of the program's own structure, as JSON. */
  readonly json?: string | undefined
}

/** A value that goes with an NVTX event. Integers that a number does not hold exactly are bigints. */
export interface NvtxPayload {
  /** `unknown`: of a type that NVTX did not have when it was recorded; without a value. */
  readonly type: 'u64' | 'i64' | 'f64' | 'u32' | 'i32' | 'f32' | 'unknown'
  readonly value?: number | bigint | undefined
}

/** A program names an object of CUDA's (or another resource) through NVTX. */
export interface NvtxNameEvent {
  readonly kind: 'nvtx-name'
  readonly what:
    | 'CUdevice'
    | 'CUcontext'
    | 'CUstream'
    | 'CUevent'
    | 'cudaDevice'
    | 'cudaStream'
    | 'cudaEvent'
    | 'resource'
  /** Number of a device, address of the rest. */
  readonly handle: bigint
  readonly name: number
  readonly atNs: number
}
