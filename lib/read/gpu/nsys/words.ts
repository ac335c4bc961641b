/** CUpti_ActivityMemcpyKind, as nsys and its reports call them. */
export const COPY_KINDS: Readonly<Record<number, string>> = {
  0: 'Unknown',
  1: 'Host-to-Device',
  2: 'Device-to-Host',
  3: 'Host-to-Array',
  4: 'Array-to-Host',
  5: 'Array-to-Array',
  6: 'Array-to-Device',
  7: 'Device-to-Array',
  8: 'Device-to-Device',
  9: 'Host-to-Host',
  10: 'Peer-to-Peer',
  11: 'Unified Host-to-Device',
  12: 'Unified Device-to-Host',
  13: 'Unified Device-to-Device',
}

/** Kinds of memory (nsys's ENUM_CUDA_MEM_KIND). */
export const MEMORY_KINDS: Readonly<Record<number, string>> = {
  0: 'pageable',
  1: 'pinned',
  2: 'device',
  3: 'array',
  4: 'managed',
  5: 'device static',
  6: 'managed static',
}

/** CUpti_ActivitySynchronizationType. */
export const SYNC_KINDS: Readonly<Record<number, string>> = {
  1: 'event synchronize',
  2: 'stream wait event',
  3: 'stream synchronize',
  4: 'context synchronize',
}

/** NVTX rows (nsys's ENUM_NSYS_EVENT_TYPE; those from 64 on come from nvtxt files). */
export const NVTX_TYPES: Readonly<Record<number, NvtxType>> = {
  33: 'category',
  34: 'mark',
  35: 'open push',
  36: 'lone end',
  37: 'open start',
  38: 'lone end',
  39: 'thread',
  59: 'push-pop',
  60: 'start-end',
  64: 'category',
  65: 'mark',
  66: 'open push',
  67: 'lone end',
  68: 'open start',
  69: 'lone end',
  70: 'push-pop',
  71: 'start-end',
  75: 'domain',
}

/** NVTX rows that nothing is drawn for: ends of domains, names of CUDA's objects (which have tables), facts of nvtxt files. */
export const NVTX_WITHOUT_EVENT = new Set([72, 73, 74, 76, 97, 98, 99])

/** What an NVTX row tells of. */
export type NvtxType =
  | 'category'
  | 'mark'
  | 'open push'
  | 'open start'
  | 'lone end'
  | 'thread'
  | 'push-pop'
  | 'start-end'
  | 'domain'

/** Why a thread left its CPU (nsys's ENUM_SCHEDULING_THREAD_BLOCK), where it could have gone on: all others wait. */
export const PREEMPTED = new Set([42, 43, 44, 45, 49, 51])
