/** The numbers of docs/reference/ggtrace-format.md, shared by the reader and the writer. */

/** Starts every block: the bytes `GGT0`. */
export const MAGIC = 0x30544747

/** Blocks start at multiples of this offset in the file. */
export const BLOCK_ALIGNMENT = 8

/** Size of a block's header. */
export const HEADER_BYTES = 48

/** Largest size of a block, header included. */
export const BLOCK_BYTES_MAX = 1 << 20

/** Largest size of a record. */
export const RECORD_BYTES_MAX = 65_532

/** Most nodes in one GRAPH record; a larger graph has several records. */
export const GRAPH_NODES_MAX = 16_000

/** `worker` or `call` of a block that has none. */
export const NONE = 0xffffffff

/** Offsets of the fields of a block's header. */
export enum Header {
  magic = 0,
  size = 4,
  checksum = 8,
  kind = 12,
  writer = 14,
  sequence = 16,
  tid = 20,
  base = 24,
  needs = 32,
  dropped = 36,
  worker = 40,
  call = 44,
}

/** Kinds of blocks. */
export enum BlockKind {
  Run = 1,
  Definitions = 2,
  Events = 3,
  Ring = 4,
}

/** Types of records. */
export enum RecordType {
  Fact = 1,
  Clocks = 2,
  End = 3,
  Name = 16,
  Op = 17,
  Type = 18,
  Buffer = 19,
  Mapping = 20,
  Tensor = 21,
  Graph = 22,
  Counted = 23,
  NvtxDomain = 24,
  NvtxCategory = 25,
  Thread = 26,
  Refusal = 27,
  Pages = 28,
  Weight = 29,
  Operator = 32,
  OperatorInner = 33,
  OperatorFused = 34,
  Cursor = 35,
  Token = 36,
  GraphRun = 37,
  Experts = 38,
  Copy = 39,
  Free = 40,
  Counter = 41,
  RangeBegin = 42,
  RangeEnd = 43,
  Loss = 44,
  OperatorLong = 45,
  State = 46,
  Counts = 47,
  CountsScaled = 48,
  Level = 49,
  Part = 50,
  NvtxPush = 52,
  NvtxPop = 53,
  NvtxStart = 54,
  NvtxEnd = 55,
  NvtxMark = 56,
  NvtxNamed = 57,
  Function = 58,
  Sequence = 59,
  Task = 60,
  Message = 61,
  Resources = 62,
  Affinity = 63,
  GpuQueue = 64,
  GpuWork = 65,
  GpuSubmission = 66,
  GpuPipeline = 67,
  GpuWait = 68,
  GpuClock = 69,
  GpuComplete = 70,
  OperatorSmall = 71,
  OperatorSmallInner = 72,
  OperatorSmallFused = 73,
  Rpc = 74,
}

/** Size of records with a fixed size, or of the part before the repeated fields. */
export const RECORD_BYTES: Readonly<Record<number, number>> = {
  [RecordType.Fact]: 12,
  [RecordType.Clocks]: 28,
  [RecordType.End]: 28,
  [RecordType.Name]: 12,
  [RecordType.Op]: 12,
  [RecordType.Type]: 12,
  [RecordType.Buffer]: 44,
  [RecordType.Mapping]: 36,
  [RecordType.Tensor]: 116,
  [RecordType.Graph]: 16,
  [RecordType.Counted]: 16,
  [RecordType.NvtxDomain]: 12,
  [RecordType.NvtxCategory]: 16,
  [RecordType.Thread]: 12,
  [RecordType.Refusal]: 20,
  [RecordType.Pages]: 44,
  [RecordType.Weight]: 64,
  [RecordType.Operator]: 20,
  [RecordType.OperatorInner]: 24,
  [RecordType.OperatorFused]: 24,
  [RecordType.Cursor]: 16,
  [RecordType.Token]: 44,
  [RecordType.GraphRun]: 40,
  [RecordType.Experts]: 28,
  [RecordType.Copy]: 44,
  [RecordType.Free]: 16,
  [RecordType.Counter]: 24,
  [RecordType.RangeBegin]: 16,
  [RecordType.RangeEnd]: 12,
  [RecordType.Loss]: 20,
  [RecordType.OperatorLong]: 40,
  [RecordType.State]: 24,
  [RecordType.Counts]: 8,
  [RecordType.CountsScaled]: 8,
  [RecordType.Level]: 36,
  [RecordType.Part]: 28,
  [RecordType.NvtxPush]: 40,
  [RecordType.NvtxPop]: 16,
  [RecordType.NvtxStart]: 48,
  [RecordType.NvtxEnd]: 20,
  [RecordType.NvtxMark]: 40,
  [RecordType.NvtxNamed]: 28,
  [RecordType.Function]: 52,
  [RecordType.Sequence]: 52,
  [RecordType.Task]: 28,
  [RecordType.Message]: 20,
  [RecordType.Resources]: 60,
  [RecordType.Affinity]: 20,
  [RecordType.GpuQueue]: 44,
  [RecordType.GpuWork]: 68,
  [RecordType.GpuSubmission]: 44,
  [RecordType.GpuPipeline]: 28,
  [RecordType.GpuWait]: 36,
  [RecordType.GpuClock]: 44,
  [RecordType.GpuComplete]: 36,
  [RecordType.OperatorSmall]: 12,
  [RecordType.OperatorSmallInner]: 16,
  [RecordType.OperatorSmallFused]: 16,
  [RecordType.Rpc]: 76,
}

/** Ends of the numbers of a small operator: 20 bits of a tensor, 20 of the wait, 24 of the computing, from the lowest of a u64 on. */
export const SMALL_END = { tensor: 2 ** 20, wait: 2 ** 20, compute: 2 ** 24 } as const

/** Size of a span in a TOKEN record. */
export const SPAN_BYTES = 12

/** `usage` of a BUFFER record, by number. */
export const BUFFER_USAGES = ['any', 'weights', 'compute'] as const

/** `kind` of a TOKEN record, by number. */
export const TOKEN_KINDS = ['decode', 'encode', 'warm-up', 'compute'] as const

/** Bits of a TOKEN record's kind: the kind itself, and flags (ggtrace-records.h documents them). */
export const TokenBits = {
  kind: 0xff,
  leftOut: 0x100,
  allOutput: 0x200,
  embeds: 0x400,
  byGraph: 0x800,
  inferredKind: 0x1000,
  mayWarmUp: 0x2000,
  followsUnread: 0x4000,
} as const

/** `kind` of a COPY record, by number. */
export const COPY_KINDS = ['get', 'set', 'copy'] as const

/** `what` of a PART record, by number. */
export const PARTS = ['allocate', 'reserve', 'recorder'] as const

/** `question` of a REFUSAL record, by number. */
export const QUESTIONS_OF_SCHEDULER = ['supports-op', 'offload-op', 'supports-memory'] as const

/** `moment` of a PAGES record, by number. */
export const PAGE_MOMENTS = ['first', 'last'] as const

/** A run of a PAGES record: the number of pages is above these bits, which are a node, or none. */
export const PageBits = { node: 12, noPage: 0xfff, unknown: 0xffe } as const

/** Size of a tensor in a REFUSAL record. */
export const REFUSED_TENSOR_BYTES = 72

/** Number of the parameters of an op in a REFUSAL record. */
export const OP_PARAMETERS = 16

/** `state` of a STATE record, by number. */
export const THREAD_STATES = ['running', 'runnable', 'blocked', 'ended'] as const

/** `level` of a LEVEL record, by number: what is recorded from then on. */
export const LEVELS = ['nothing', 'calls', 'graphs', 'operators'] as const

/** Payload type of an NVTX record, by NVTX's number. */
export const NVTX_PAYLOADS = ['none', 'u64', 'i64', 'f64', 'u32', 'i32', 'f32'] as const

/** `what` of an NVTX_NAMED record, by number. */
export const NVTX_OBJECTS = [
  'CUdevice',
  'CUcontext',
  'CUstream',
  'CUevent',
  'cudaDevice',
  'cudaStream',
  'cudaEvent',
  'resource',
] as const

/** `unit` of a COUNTED record, by number. */
export const COUNTER_UNITS = ['count', 'ns', 'bytes'] as const

/** Most counters of a log. */
export const COUNTERS_MAX = 16

/** Flag of a tensor: it is in the graph, but not computed; for example views. */
export const TENSOR_NOT_COMPUTED = 1

const SEED = 0x811c9dc5
const PRIME = 0x01000193
/** A local copy, because access to globals is slow inside a node:vm context, which jest and others use. */
const { imul } = Math

/** The checksum of a block at offset `at` of `view` with `size` bytes: of all bytes from its kind on. */
export function checksum(view: DataView, at: number, size: number): number {
  let [a, b, c, d, e, f, g, h] = [SEED, SEED + 1, SEED + 2, SEED + 3, SEED + 4, SEED + 5, SEED + 6, SEED + 7]
  const end = at + size
  let word = at + Header.kind
  for (; word + 32 <= end; word += 32) {
    a = imul(a ^ view.getUint32(word, true), PRIME)
    b = imul(b ^ view.getUint32(word + 4, true), PRIME)
    c = imul(c ^ view.getUint32(word + 8, true), PRIME)
    d = imul(d ^ view.getUint32(word + 12, true), PRIME)
    e = imul(e ^ view.getUint32(word + 16, true), PRIME)
    f = imul(f ^ view.getUint32(word + 20, true), PRIME)
    g = imul(g ^ view.getUint32(word + 24, true), PRIME)
    h = imul(h ^ view.getUint32(word + 28, true), PRIME)
  }
  const lanes = [a, b, c, d, e, f, g, h]
  for (let lane = 0; word < end; word += 4, lane++) {
    lanes[lane] = imul(lanes[lane]! ^ view.getUint32(word, true), PRIME)
  }
  let sum = 0
  for (let lane = 0; lane < 8; lane++)
    sum ^= (lanes[lane]! << (4 * lane)) | (lane === 0 ? 0 : lanes[lane]! >>> (32 - 4 * lane))
  return sum >>> 0
}

/** `what` of a FUNCTION record, by number. */
export const FUNCTION_PURPOSES = [
  'sample',
  'accept',
  'create-sampler',
  'tokenize',
  'detokenize',
  'token-to-piece',
  'synchronize',
  'load-model',
  'read-header',
  'map',
  'copy-weights',
  'create-context',
  'reserve',
  'save-state',
  'restore-state',
  'load-lora',
  'set-lora',
  'get-embeddings',
  'tokenize-media',
  'encode-media',
  'decode-media',
  'draft',
  'verify',
  'accept-draft',
  'write-log',
  'wait-to-send',
] as const

/** `what` of a SEQUENCE record, by number. */
export const SEQUENCE_CHANGES = ['remove', 'shift', 'copy', 'keep', 'clear'] as const

/** `what` of a TASK record, by number. */
export const TASK_STEPS = [
  'post',
  'defer',
  'resume',
  'launch',
  'prompt',
  'reuse',
  'reprocess',
  'progress',
  'draft',
  'checkpoint',
  'timings',
  'release',
  'send',
  'cancel',
  'error',
] as const

/** `what` of a GPU_WORK record, by number. */
export const GPU_WORKS = ['operator', 'copy', 'fill', 'graph'] as const

/** `what` of a GPU_WAIT record, by number: the function that waited, or what was done to a graph of CUDA. */
export const GPU_WAITS = [
  'vkWaitForFences',
  'vkWaitSemaphores',
  'vkQueueWaitIdle',
  'vkDeviceWaitIdle',
  'cudaStreamSynchronize',
  'cudaEventSynchronize',
  'cudaDeviceSynchronize',
  'hipStreamSynchronize',
  'hipEventSynchronize',
  'hipDeviceSynchronize',
  'capture of a CUDA graph',
  'cudaGraphInstantiate',
  'cudaGraphExecUpdate',
  'capture of a HIP graph',
  'hipGraphInstantiate',
  'hipGraphExecUpdate',
] as const

/** `api` of a GPU_QUEUE record, by number. */
export const GPU_APIS = ['vulkan', 'cuda', 'hip'] as const

/** The function of a GPU_SUBMISSION record of CUDA, and by HIP's names of HIP, by its number of command buffers. */
export const CUDA_FUNCTIONS = [
  'cudaLaunchKernel',
  'cudaLaunchKernelExC',
  'cudaLaunchCooperativeKernel',
  'cudaMemcpyAsync',
  'cudaMemcpy2DAsync',
  'cudaMemcpyPeerAsync',
  'cudaMemsetAsync',
  'cudaGraphLaunch',
  'cublasGemm',
  'cudaMemcpy3DPeerAsync',
] as const

/** `command` of an RPC record, by number: those of ggml-rpc's protocol. */
export const RPC_COMMANDS = [
  'ALLOC_BUFFER',
  'GET_ALIGNMENT',
  'GET_MAX_SIZE',
  'BUFFER_GET_BASE',
  'FREE_BUFFER',
  'BUFFER_CLEAR',
  'SET_TENSOR',
  'SET_TENSOR_HASH',
  'GET_TENSOR',
  'COPY_TENSOR',
  'GRAPH_COMPUTE',
  'GET_DEVICE_MEMORY',
  'INIT_TENSOR',
  'GET_ALLOC_SIZE',
  'HELLO',
  'DEVICE_COUNT',
  'GRAPH_RECOMPUTE',
  'MEMSET_TENSOR',
] as const
