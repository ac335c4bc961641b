/** What a {@link GgtraceThread} writes. Times are ns since the log's origin. */
import type {
  COPY_KINDS,
  FUNCTION_PURPOSES,
  GPU_APIS,
  GPU_WAITS,
  GPU_WORKS,
  NVTX_PAYLOADS,
  PARTS,
  SEQUENCE_CHANGES,
  TASK_STEPS,
  TOKEN_KINDS,
} from './ggtrace-layout.ts'

/** One worker's execution of one node. */
export interface GgtraceOperator {
  readonly tensor: number
  readonly startNs: number
  /** End of computing. */
  readonly endNs: number
  /** End of the barrier wait; by default the worker did not wait. */
  readonly waitEndNs?: number
  readonly innerWaitNs?: number
  /** The last of the nodes that were computed in one step. */
  readonly fusedTo?: number
  /** Counts of the operator, by index of the counter ({@link GgtraceWriter.counted}). */
  readonly counts?: readonly number[]
  /** Events were counted only part of the time, and extrapolated. */
  readonly isScaled?: boolean
}

/** What the kernel counted during a call or a function; times of the thread that are not known are -1. */
export interface GgtraceResources {
  readonly minorFaults: number
  readonly majorFaults: number
  readonly bytesRead: number
  /** Of all threads of the process. */
  readonly processCpuNs: number
  /** On a CPU. */
  readonly cpuNs?: number
  /** Able to run, but without a CPU. */
  readonly waitingNs?: number
}

/** One call of `llama_decode`. */
export interface GgtraceToken {
  readonly startNs: number
  readonly endNs: number
  /** -1 for a warm-up. */
  readonly call: number
  readonly tokens: number
  readonly kind?: (typeof TOKEN_KINDS)[number]
  readonly result?: number
  readonly context?: number
  readonly spans?: readonly GgtraceSpan[]
  /** Events inside the call were not recorded. */
  readonly isLeftOut?: boolean
  /** Several tokens, each of which has an output. */
  readonly areAllOutput?: boolean
  /** A decode call that computes embeddings. */
  readonly isForEmbeddings?: boolean
  /** No call was observed: kind and tokens come from the inputs of a graph. */
  readonly isByGraph?: boolean
  /** It may turn out to be a warm-up: then a second record of the call has the kind `warm-up`. */
  readonly mayWarmUp?: boolean
  /** No output of the call of its context before it was read, as in benchmarks. */
  readonly followsUnread?: boolean
  /** A warm-up that follows from what the program did after it. */
  readonly isInferred?: boolean
  readonly resources?: GgtraceResources
}

/** Consecutive tokens of a batch that belong to one sequence, at consecutive positions. */
export interface GgtraceSpan {
  readonly sequence: number
  /** Of the first token; -1 if llama.cpp assigns positions. */
  readonly position: number
  readonly tokens: number
}

/** One graph run on one backend. */
export interface GgtraceGraphRun {
  readonly startNs: number
  readonly endNs: number
  readonly graph: number
  readonly call: number
  readonly status?: number
  /** Id of the backend's name. */
  readonly backend?: number
  /** Number of the graph run within one run of a scheduler; -1 outside of a scheduler. */
  readonly split?: number
}

/** A router's choice: `ids` contains `k` experts for each token. */
export interface GgtraceExperts {
  readonly atNs: number
  readonly tensor: number
  readonly call: number
  readonly k: number
  readonly ids: ArrayLike<number>
}

/** A transfer of data; buffers are ids, 0 is memory outside of backend buffers. */
export interface GgtraceCopy {
  readonly startNs: number
  readonly endNs: number
  readonly bytes: number
  readonly from?: number
  readonly to?: number
  readonly tensor?: number
  readonly what: (typeof COPY_KINDS)[number]
}

/** A part of a call in which no graph is computed. */
export interface GgtracePart {
  readonly startNs: number
  readonly endNs: number
  /** -1 for a warm-up. */
  readonly call: number
  readonly what: (typeof PARTS)[number]
}

/** A function that is not a call: `name` is an id; -1 is not known, 0 no name or no context. */
export interface GgtraceFunction {
  readonly what: (typeof FUNCTION_PURPOSES)[number]
  readonly startNs: number
  readonly endNs: number
  readonly name?: number
  readonly context?: number
  readonly sequence?: number
  readonly output?: number
  readonly value?: number
  readonly resources?: GgtraceResources
}

/** A change of a sequence: positions as llama.cpp takes them, -1 for the start and the end. */
export interface GgtraceSequence {
  readonly what: (typeof SEQUENCE_CHANGES)[number]
  readonly atNs: number
  readonly sequence: number
  readonly context?: number
  readonly to?: number
  readonly from?: number
  readonly end?: number
  readonly delta?: number
  readonly isDone?: boolean
}

/** A step of a server's task; -1 is not known. */
export interface GgtraceTask {
  readonly what: (typeof TASK_STEPS)[number]
  readonly atNs: number
  readonly task?: number
  readonly slot?: number
}

/** A mark, or the begin of a range, in NVTX: `domain` and `message` are ids, the other fields as in NVTX. */
export interface GgtraceNvtx {
  readonly atNs: number
  readonly domain?: number
  readonly message?: number
  readonly category?: number
  /** 0xaarrggbb. */
  readonly color?: number
  readonly payload?: { readonly type: (typeof NVTX_PAYLOADS)[number]; readonly value: number | bigint }
}

/** A queue of a GPU; `device` counts from 0. */
export interface GgtraceGpuQueue {
  readonly device: number
  readonly name: string
  readonly family?: number
  readonly index?: number
  /** VkQueueFlagBits. */
  readonly flags?: number
  /** Valid bits of its timestamps; 0: it has none. */
  readonly bits?: number
  readonly api?: (typeof GPU_APIS)[number]
  readonly periodNs?: number
}

/**
 * What a GPU computed, copied or filled; of fused nodes `fusedTo` is the last one, `kernel` is the id of a name. Without `endNs`, its times
 * are unknown, `startNs` is that of its submission, and that record follows.
 */
export interface GgtraceGpuWork {
  readonly what: (typeof GPU_WORKS)[number]
  readonly startNs: number
  readonly endNs?: number
  readonly submission: number
  readonly queue: number
  readonly tensor?: number
  readonly fusedTo?: number
  readonly call?: number
  readonly graph?: number
  readonly kernel?: number
  readonly dispatches?: number
  readonly part?: number
  readonly bytes?: number
}

/** Command buffers that were submitted at once; `works`: number of their {@link GgtraceGpuWork}. */
export interface GgtraceGpuSubmission {
  readonly startNs: number
  readonly endNs: number
  readonly id: number
  readonly queue: number
  readonly buffers?: number
  readonly works: number
  readonly call?: number
  readonly graph?: number
}

/** A submission is known to be complete; the times of its command buffers on the GPU, if known. */
export interface GgtraceGpuComplete {
  readonly atNs: number
  readonly startNs?: number
  readonly endNs?: number
  readonly submission: number
  readonly queue: number
}

/** The host waited for a GPU. */
export interface GgtraceGpuWait {
  readonly what: (typeof GPU_WAITS)[number]
  readonly startNs: number
  readonly endNs: number
  readonly device: number
  readonly call?: number
}

/** A reading of a GPU's clock together with that of the log. */
export interface GgtraceGpuClock {
  readonly atNs: number
  readonly ticks: bigint
  readonly deviationNs: number
  readonly lateNs?: number
  readonly device: number
}

/** One side of a message of ggml-rpc; `client` and `server` are ids of names, the ends of the connection. */
export interface GgtraceRpc {
  readonly side: 'client' | 'server'
  /** Number of the command in ggml-rpc's protocol. */
  readonly command: number
  /** Of the connection's messages, from 0. */
  readonly number: number
  readonly client: number
  readonly server: number
  /** A client begins to send the request; a server has its first byte. */
  readonly startNs: number
  /** The request is sent; a server has its last byte. */
  readonly sentNs: number
  /** A client has the answer's first byte; a server begins to send it. Without it, there is no answer. */
  readonly answeredNs?: number
  readonly endNs: number
  readonly requestBytes: number
  readonly answerBytes?: number
  readonly call?: number
}
