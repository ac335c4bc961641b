import type { GpuEvent } from '../../model/gpu-events.ts'
import type { GpuCallKind } from './figures.ts'

/** What a piece of work does, for the parts of a GPU's time. */
export const WorkClass = { Computation: 0, Communication: 1, Copy: 2, Fill: 3, Migration: 4 } as const

/**
 * Kernels of collective communication: TraceLens' rule (TraceLens/util.py, DEFAULT_COMMUNICATION_REGEXES and
 * DEFAULT_CUSTOM_COLLECTIVE_PATTERNS, at 171dd74). HTA's (hta/common/types.py, CommunicateKernelGroupingPattern, at f4d0062) is
 * `(^nccl.*)|(^hip)|(^hccl)|(.*ncclKernel.*)`.
 */
const COMMUNICATION = /rccl|nccl|cross_device_reduce/i
/** Kernels with which ROCm 7.1 and earlier copy and fill (TraceLens/util.py, is_rocm_legacy_memcpy and is_rocm_legacy_memset). */
const ROCM_COPY =
  /^(MEMORY_COPY_(HOST_TO_DEVICE|DEVICE_TO_HOST|DEVICE_TO_DEVICE)|__amd_rocclr_copyBuffer(Rect)?(Aligned)?)(\.kd)?$/
const ROCM_FILL = /^__amd_rocclr_fillBuffer(Aligned)?(\.kd)?$/

/** The {@link WorkClass} of a piece of work. */
export function classOf(what: GpuEvent['what'], name: string): number {
  if (what === 'memcpy') return WorkClass.Copy
  if (what === 'memset') return WorkClass.Fill
  if (what === 'migration') return WorkClass.Migration
  if (what === 'graph') return WorkClass.Computation
  if (ROCM_COPY.test(name)) return WorkClass.Copy
  if (ROCM_FILL.test(name)) return WorkClass.Fill
  return COMMUNICATION.test(name) ? WorkClass.Communication : WorkClass.Computation
}

const LONG: readonly (readonly [RegExp, string])[] = [
  [/Host[-_]to[-_]Device/i, 'HtoD'],
  [/Device[-_]to[-_]Host/i, 'DtoH'],
  [/Device[-_]to[-_]Device/i, 'DtoD'],
  [/Peer[-_]to[-_]Peer/i, 'PtoP'],
  [/Host[-_]to[-_]Host/i, 'HtoH'],
  [/Host[-_]to[-_]Array/i, 'HtoA'],
  [/Array[-_]to[-_]Host/i, 'AtoH'],
  [/Array[-_]to[-_]Array/i, 'AtoA'],
  [/Array[-_]to[-_]Device/i, 'AtoD'],
  [/Device[-_]to[-_]Array/i, 'DtoA'],
]

/** Direction of a copy or a migration by its name: `Memcpy HtoD (Pageable -> Device)`, `[CUDA memcpy Host-to-Device]`, `MEMORY_COPY_HOST_TO_DEVICE`. */
export function directionOf(what: GpuEvent['what'], name: string): string {
  if (what === 'memset') return 'memset'
  const short = /\b(HtoD|DtoH|DtoD|PtoP|HtoH|DtoA|AtoD|HtoA|AtoH|AtoA)\b/.exec(name)?.[1]
  const direction = short ?? LONG.find(([pattern]) => pattern.test(name))?.[1] ?? 'unknown'
  return what === 'migration' ? `migration ${direction}` : direction
}

/** Is this the direction of a migration? */
export const isMigration = (direction: string): boolean => direction.startsWith('migration ')

/** Memory that PyTorch's profiler names: `Memcpy HtoD (Pageable -> Device)`, `Memset (Device)`; empty where the name has none. */
export function memoryOf(name: string): readonly [from: string, to: string] {
  const [, from, to] = /\((?:([A-Za-z ]+?) -> )?([A-Za-z ]+)\)$/.exec(name) ?? []
  return [from?.toLowerCase() ?? '', to?.toLowerCase() ?? '']
}

/** Kind of a call of CUDA, HIP or Vulkan. */
export function callKindOf(name: string): GpuCallKind['kind'] {
  if (/Launch(?!HostFunc)|^vkQueueSubmit/.test(name)) return 'launch'
  if (/Synchronize|^vk\w*Wait/.test(name)) return 'synchronize'
  return /Memcpy|Memset/i.test(name) ? 'copy' : 'other'
}
