import { type Bounds, orUnknown, wrongNumber, wrongTime } from './bounds.ts'
import { CPU_MAX, INT32_MAX } from './limits.ts'

/** What a sample of a data address counts: page faults (of both kinds, or one), or reads and writes that a processor sampled. */
export type AccessWhat = 'fault' | 'minor-fault' | 'major-fault' | 'load' | 'store' | 'other'

/** Kinds of accesses: the order is that of their numbers in a store of accesses. */
export const ACCESS_WHATS: readonly AccessWhat[] = ['fault', 'minor-fault', 'major-fault', 'load', 'store', 'other']

/**
 * Where the data of an access was found, nearest first: caches (`LFB` is the line fill buffer: the line was already on its way), memory
 * of this and of other NUMA nodes. The empty text: not recorded.
 */
export const DATA_LEVELS = [
  ...['', 'L1', 'LFB', 'L2', 'L3', 'L4', 'remote cache', 'DRAM', 'remote DRAM', 'PMEM', 'CXL', 'I/O', 'uncached'],
  ...['any cache', 'L1 miss', 'L2 miss', 'L3 miss', 'other'],
] as const

/** A {@link DATA_LEVELS}. */
export type DataLevel = (typeof DATA_LEVELS)[number]

/** How the translation of an address was found; the empty text: not recorded. */
export const TLB_RESULTS = ['', 'hit', 'L1', 'L2', 'walk', 'fault', 'miss'] as const

/** A {@link TLB_RESULTS}. */
export type TlbResult = (typeof TLB_RESULTS)[number]

/** The rest of what a processor records of an access: no page fault has it. */
export interface AccessSource {
  readonly level: DataLevel
  readonly tlb: TlbResult
  /** Cycles until the data was there (perf's weight); -1: not recorded. */
  readonly latency: number
}

/** A sample with the address of the data that a thread accessed: perf's PERF_SAMPLE_ADDR. */
export interface AccessEvent {
  readonly kind: 'access'
  readonly what: AccessWhat
  readonly atNs: number
  /** -1: not recorded. */
  readonly pid: number
  readonly tid: number
  /** -1: not recorded. */
  readonly cpu: number
  /** NUMA node of the CPU; -1: not recorded. */
  readonly node: number
  /** In the process; -1: in the kernel, or not recorded. */
  readonly address: number
  /** Events between the samples of the counter: a sample counts as so many. */
  readonly count: number
  /** Name of the event, as perf has it. */
  readonly event: number
  /** Undefined for page faults. */
  readonly source?: AccessSource | undefined
}

/** A process maps memory: a file, or memory without a file. What was mapped there before is replaced. */
export interface MappingEvent {
  readonly kind: 'mapping'
  /** 0 where it was mapped before the recording began. */
  readonly atNs: number
  readonly pid: number
  readonly address: number
  readonly bytes: number
  /** Of its first byte in the file. */
  readonly fileOffset: number
  /** Path of the file, or what perf calls memory without one: `//anon`, `[heap]`. */
  readonly name: number
}

/** Their ranges. */
export const ACCESS_BOUNDS: Bounds<AccessEvent | MappingEvent> = {
  access: (event) =>
    wrongTime(event.atNs) ??
    wrongNumber('count', event.count, Number.MAX_SAFE_INTEGER) ??
    orUnknown('address', event.address) ??
    orUnknown('pid', event.pid, INT32_MAX) ??
    orUnknown('tid', event.tid, INT32_MAX) ??
    orUnknown('cpu', event.cpu, CPU_MAX),
  mapping: (event) =>
    wrongTime(event.atNs) ??
    wrongNumber('address', event.address, Number.MAX_SAFE_INTEGER) ??
    wrongNumber('bytes', event.bytes, Number.MAX_SAFE_INTEGER) ??
    wrongNumber('fileOffset', event.fileOffset, Number.MAX_SAFE_INTEGER) ??
    wrongNumber('pid', event.pid, INT32_MAX),
}
