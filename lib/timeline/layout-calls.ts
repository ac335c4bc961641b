import type * as of from './of.ts'
import { at, group, threadTitle, track } from './place.ts'

const CUDA_CALLS = 'Calls of the CUDA runtime, driver and libraries, by thread.'
const HIP_CALLS = 'Calls of the HIP runtime, by thread.'
const VULKAN_CALLS = 'Submissions to the queues of GPUs, waits for them, and the compilation of pipelines, by thread.'
const OS_CALLS = 'Calls of the operating system’s libraries that took long or wait, by thread.'

const BLAS_CALLS =
  'Matrix products and other calls of BLAS libraries and of oneDNN, with sizes, types and what the library chose.'

const ofThread = {
  rank: ({ nth }: of.Nth) => nth,
  name: ({ thread, tid }: of.Thread) => threadTitle(thread, tid),
}

/** Tracks of calls of libraries of GPUs, and of the operating system's. */
export const API_CALLS = {
  cudaCalls: group('run', { rank: at(7, 10), name: 'CUDA API', description: CUDA_CALLS }),
  cudaThread: track<of.Thread & of.Nth>('cudaCalls', { ...ofThread, description: CUDA_CALLS }),
  hipCalls: group('run', { rank: at(7, 10), name: 'HIP API', description: HIP_CALLS }),
  hipThread: track<of.Thread & of.Nth>('hipCalls', { ...ofThread, description: HIP_CALLS }),
  vulkanCalls: group('run', { rank: at(7, 10), name: 'Vulkan API', description: VULKAN_CALLS }),
  vulkanThread: track<of.Thread & of.Nth>('vulkanCalls', { ...ofThread, description: VULKAN_CALLS }),
  osCalls: group('run', { rank: at(7, 11), name: 'OS runtime', description: OS_CALLS }),
  osThread: track<of.Thread & of.Nth>('osCalls', { ...ofThread, description: OS_CALLS }),
  blasCalls: group('run', { rank: at(7, 11), name: 'Math libraries', description: BLAS_CALLS }),
  blasLibrary: track<of.Nth & { readonly library: string }>('blasCalls', {
    rank: ({ nth }) => 64 * nth,
    rows: 64,
    name: ({ library }) => library,
    description: ({ library }) => `Calls of ${library}, as its logger wrote them.`,
  }),
}
