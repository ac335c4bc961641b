import { type Bounds, orUnknown, wrongAmount, wrongTime } from './bounds.ts'

/**
 * An NVTX call of a program. Pushed ranges nest by call order on their thread and in their domain; started ranges belong to
 * the process and may end on another thread. Where threads are read one after the other, an end may come before its start.
 */
export interface NvtxEvent {
  readonly kind: 'nvtx'
  readonly what: 'push' | 'pop' | 'start' | 'end' | 'mark'
  /** -1 = not known. */
  readonly pid?: number | undefined
  readonly tid: number
  readonly atNs: number
  /** Name that the program gave the thread; 0 = none. */
  readonly thread: number
  /** Name of the domain; 0 is the default domain. An end has none: {@link range} identifies it. */
  readonly domain: number
  /** Number of a started range, also at its end; else 0. */
  readonly range: number
  /** Message of a push, start or mark; 0 = none, and at a pop or an end. */
  readonly message: number
  /** Name of the category, or its number as a text; 0 = none. */
  readonly category: number
  /** 0xaarrggbb; -1 = none. */
  readonly color: number
  readonly payload?: NvtxPayload | undefined
  /** A payload of a structure that the program defined, as JSON. */
  readonly json?: string | undefined
}

/** The value of an NVTX event. Integers that are not exact as numbers are bigints. */
export interface NvtxPayload {
  /** `unknown`: of a type that recorder or reader do not know; without a value. */
  readonly type: 'u64' | 'i64' | 'f64' | 'u32' | 'i32' | 'f32' | 'unknown'
  readonly value?: number | bigint | undefined
}

/** A program names an object of CUDA (or another resource) through NVTX. */
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
  /** Number of a device; address of any other object. */
  readonly handle: bigint
  readonly name: number
  readonly atNs: number
}

/** Their ranges. */
export const NVTX_BOUNDS: Bounds<NvtxEvent | NvtxNameEvent> = {
  nvtx: (event) => wrongTime(event.atNs) ?? orUnknown('tid', event.tid),
  'nvtx-name': (event) => wrongTime(event.atNs) ?? wrongAmount(event),
}
