import type { BufferUsage } from '../model/events.ts'
import type { Unit } from '../sink/track.ts'
import { PIXEL_NS } from './counter-line.ts'
import type * as of from './of.ts'
import {
  AFTER_BUFFERS,
  at,
  bufferRank,
  counter,
  firstRows,
  group,
  runFacts,
  runTitle,
  threadTitle,
  track,
} from './place.ts'

const RANK_MAX = 2 ** 31 - 2

/** Counter tracks of one kind are next to each other: one for each of up to 64 workers. */
const workerCounter = {
  rank: ({ nth, worker }: of.Counter) => (nth + 1) * 64 + worker,
  name: ({ worker, counter, per }: of.Counter) => `worker ${worker}: ${counter} ${per}`,
  description: ({ counter, per }: of.Counter) =>
    `What ${counter} counted on the worker's thread in each operator, ${per} of computing.`,
  unit: 'count',
  axis: ({ counter, per }: of.Counter) => `${counter} ${per}`,
  ofSummedCalls: 'nothing',
} as const

/** Of counters that change with each operator. */
const PIXEL = `Of the values within ${PIXEL_NS / 1e3} µs only the largest and the last one; all of them with --detail full.`

const kvCache = (place: number, name: string, what: string, unit: Unit) =>
  counter<{ readonly number: number }>('memory', {
    rank: ({ number }) => AFTER_BUFFERS + 1 + 2 * number + place,
    name,
    description:
      `${what} of the KV cache that contain tokens after each call: as many as positions, for each sequence. Computed from ` +
      'the positions in the batches: the log does not record tokens that were removed since, or that sequences share.',
    unit,
  })

const CALLS = {
  call: 'One slice per llama_decode call; a prefill takes a whole batch of tokens at once.',
  graph: 'One slice per graph that a scheduler computed: calls of llama.cpp are not recorded.',
  step: 'One slice per engine step (vLLM, SGLang), from its launch to the end of the GPU work that it launched.',
} as const

/** Roles of contexts in speculative decoding, inferred from the order of calls. */
const ROLES = {
  target:
    'Its llama_context verifies tokens that another one drafts (inferred: it takes several tokens with an output each).',
  draft:
    'Its llama_context drafts tokens for another one (inferred: the other one verifies some right after its calls).',
} as const

/** Workers, slots and layers of experts that have rows of the run; further ones are in a group, which viewers close. */
const ROWS_AT_ONCE = 8

/** The place of a row of a slot. */
const ofSlot = (place: number) => ({
  rank: ({ slot }: { readonly slot: number }) => (slot < ROWS_AT_ONCE ? at(1, 32) : 0) + 8 * slot + place,
  beyond: ({ slot }: { readonly slot: number }) => (slot < ROWS_AT_ONCE ? undefined : 'requests'),
})

/** Of figures that are drawn only where calls are not recorded. */
const NO_CALLS = "From the server's own figures at the end of each request (inferred): its calls are not recorded."

/** The ranks of offsets in the run: of the first buffer of a usage, which shows where a call is in the model, and in the tokens before. */
const OFFSETS_AT_ONCE: Partial<Record<BufferUsage, number>> = { weights: at(9, 134), 'kv-cache': at(9, 135) }

const ofFurtherWorkers = ({ worker }: of.Worker) => (worker < ROWS_AT_ONCE ? undefined : 'workers')

const CUDA_CALLS = 'Calls of the CUDA runtime, driver and libraries, by thread.'
const HIP_CALLS = 'Calls of the HIP runtime, by thread.'
const VULKAN_CALLS = 'Submissions to the queues of GPUs, waits for them, and the compilation of pipelines, by thread.'
const OS_CALLS = 'Calls of the operating system’s libraries that took long or wait, by thread.'
const BLAS_CALLS =
  'Matrix products and other calls of BLAS libraries and of oneDNN, with sizes, types and what the library chose.'

/** Rows of calls, by thread. */
const callsOfThread = (what: string, description: string, rank: number) => ({
  rank: ({ nth }: of.Nth) => nth,
  ahead: firstRows<of.Nth & of.Thread>(4, rank, ({ thread, tid }) => `${threadTitle(thread, tid)}: ${what}`),
  name: ({ thread, tid }: of.Thread) => threadTitle(thread, tid),
  description,
})

/** ` CCCL`: the domain of NVTX in a name; nothing for the default one. */
const inDomain = (domain: string | undefined) => (domain === undefined ? '' : ` ${domain}`)

const ofStream = {
  rank: ({ nth }: of.Nth) => nth,
  name: ({ device, stream }: of.Stream) => `GPU ${device}: ${stream}`,
}

/**
 * Every track: its group, its place in the group, its name and its description, in the order of the viewer. A property that
 * depends on something, such as a worker's number, is a function. docs/reference/tracks.md describes the same tracks in the same order.
 *
 *     run                  LLM <command>
 *       phase                Phase
 *       worker               worker 0
 *       workerState          worker 0: state
 *       workers              Further workers
 *         worker               worker 8
 */
export const LAYOUT = {
  run: group<of.Run>('trace', { rank: ({ input }) => input, name: runTitle, description: runFacts }),

  findings: track<{ readonly verdict: string | undefined }>('run', {
    rank: at(0),
    name: 'Findings',
    description: ({ verdict }) =>
      `${verdict === undefined ? '' : `${verdict}.\n`}` +
      'What made the run slow, as the command why says it, most time first: over the calls of the phase, or the request, that each is about. ' +
      'Click one for its evidence, how to check it, and what to do.',
  }),

  phase: track<{ readonly idleMs: number }>('run', {
    rank: at(0, 1),
    rows: 7,
    name: 'Phase',
    description: ({ idleMs }) =>
      `Successive calls of one kind: prefill, decode, failed; load = before the first call; idle = no call for ${idleMs} ms.`,
  }),

  loading: track('run', {
    rank: at(0, 8),
    rows: 7,
    name: 'Loading',
    description:
      'What the program called to load the model before its first call, stage by stage; the thread that loads first.',
  }),

  queueLength: counter('run', {
    rank: at(1),
    name: 'queue length',
    description: 'Requests that were posted and that no slot worked on yet.',
    unit: 'requests',
  }),

  slotsBusy: counter('run', {
    rank: at(1, 1),
    name: 'slots busy',
    description:
      'Slots that worked on a request, or sequences that did; of what clients measure, requests without an answer yet.',
    unit: 'slots',
  }),

  slotsInPrefill: counter('run', {
    rank: at(1, 2),
    name: 'slots in prefill',
    description: `Slots that processed a prompt. ${NO_CALLS}`,
    unit: 'slots',
  }),

  slotsInDecode: counter('run', {
    rank: at(1, 3),
    name: 'slots in decode',
    description: `Slots that generated tokens. ${NO_CALLS}`,
    unit: 'slots',
  }),

  queue: track('run', {
    rank: at(1, 4),
    rows: 24,
    name: 'Queue',
    description: 'Requests before a slot began to work on them; the rest of each is in the row of its slot.',
  }),

  promptRate: counter('run', {
    rank: at(1, 28),
    name: 'prompt tok/s',
    description: `Tokens of prompts that all slots processed together, each prompt at its mean rate. ${NO_CALLS}`,
    unit: 'tok/s',
  }),

  answerRate: counter('run', {
    rank: at(1, 29),
    name: 'generated tok/s',
    description: `Tokens that all slots generated together, each answer at its mean rate. ${NO_CALLS}`,
    unit: 'tok/s',
  }),

  slot: track<{ readonly slot: number }>('run', {
    ...ofSlot(0),
    rows: 6,
    name: ({ slot }) => `slot ${slot}`,
    description: ({ slot }) =>
      `Requests that slot ${slot} (sequence ${slot} of the llama_context) worked on, one after the other, and below each the ` +
      'parts of its time: calls with its tokens, sampling, drafts; stalled = calls and samplers of other requests ran while it ' +
      'waited; other = the remainder.',
  }),

  slotTokens: counter<{ readonly slot: number }>('run', {
    ...ofSlot(7),
    name: ({ slot }) => `slot ${slot}: tokens`,
    description: ({ slot }) =>
      `Tokens in the cache of slot ${slot}: those that a prompt found there, the prompt, and at the end the answer, too. ${NO_CALLS}`,
    unit: 'tokens',
    axis: () => 'tokens',
  }),

  inFlight: track('run', {
    rank: at(1, 128),
    rows: 126,
    name: 'In flight',
    description:
      'Requests of which no slot is known, as a client measured them, or as spans of a server describe them; those at the same time are in ' +
      'further rows. Below each its parts (inferred): until the first token, and from there to the last one.',
  }),

  requests: group('run', {
    rank: at(1, 255),
    name: 'Requests',
    description: `Requests of further slots, from the ${ROWS_AT_ONCE + 1}th on, and what sequences have in the KV cache.`,
  }),

  cachedTokens: counter<{ readonly context: number; readonly sequence: number }>('requests', {
    rank: ({ context, sequence }) => 64 + 8 * sequence + 7 + 1024 * context,
    name: ({ context, sequence }) =>
      `${context > 0 ? `context ${context + 1}, ` : ''}sequence ${sequence}: tokens in the KV cache`,
    description: ({ sequence }) =>
      `Tokens of sequence ${sequence} in the memory of its llama_context: from the positions in calls, and from what was removed.`,
    unit: 'tokens',
    axis: () => 'tokens',
  }),
  benchmarks: track('run', {
    rank: at(2),
    rows: 3,
    name: 'Benchmark',
    description:
      'Tests that a program measured itself, such as those of llama-bench, with their repetitions. Only durations are recorded: ' +
      'repetitions are laid end to end from the start of their test (inferred).',
  }),
  tokens: track<{
    readonly context: number
    readonly what: keyof typeof CALLS
    readonly role: keyof typeof ROLES | undefined
  }>('run', {
    rank: ({ context }) => at(3, context),
    rows: ({ context }) => 16 - context,
    name: ({ context, role }) => (role ? `Tokens: ${role}` : context > 0 ? `Tokens: context ${context + 1}` : 'Tokens'),
    description: ({ what, role }) => (role ? `${CALLS[what]} ${ROLES[role]}` : CALLS[what]),
  }),

  gpuWork: track<of.Stream>('run', {
    rank: ({ nth }) => at(4, nth),
    name: ({ device, stream, nth }) => (nth === 0 ? 'GPU' : `GPU ${device}: ${stream}`),
    description: ({ device, stream, nth }) =>
      `Work of the queue of GPUs that has ${nth === 0 ? 'most of it' : 'most of it but for those above'} (GPU ${device}, ${stream}), below the ` +
      'calls; where there is very much, neighbours are one slice. All queues and all details are in the group GPU of the viewer.',
  }),

  'tok/s': counter('run', {
    rank: at(5),
    rows: 16,
    name: 'tok/s',
    description:
      'Tokens of each call by its time, per second; 0 between calls. Calls that ' +
      'failed, or whose end is unknown, have no rate.',
    unit: 'tok/s',
  }),

  graphs: track('run', {
    rank: at(6),
    rows: 16,
    name: 'Graphs',
    description:
      'One slice per split of a graph: the part of it that the scheduler computes on one backend. Between them, the rest of ' +
      'the time of the call, in stretches from 1 µs on: what the program does outside graphs, or waits for. `recorder: describe graph` is a ' +
      'cost of recording, not of the program.',
    ofSummedCalls: 'sums',
  }),

  workers: group('run', {
    rank: at(7, 128),
    name: 'Further workers',
    description: `Work of each worker thread from the ${ROWS_AT_ONCE + 1}th on: one slice per operator (node of the graph), then its barrier wait.`,
  }),

  worker: track<of.Worker & { readonly tid: number; readonly place?: string }>('run', {
    rank: ({ worker }) => (worker < ROWS_AT_ONCE ? at(7) : 0) + 16 * worker,
    beyond: ofFurtherWorkers,
    rows: 16,
    name: ({ worker, place }) => (place === undefined ? `worker ${worker}` : `worker ${worker} · ${place}`),
    description: ({ worker, tid }) =>
      `Operators that worker ${worker} (ggml's ith) computed. Slices are compute time; the barrier slice after one is ` +
      `the wait for the other workers.${tid < 0 ? '' : ` Thread ${tid} computed the first one; where another one follows, its first operator has the argument tid.`}`,
    ofSummedCalls: 'sums',
  }),

  workerState: track<of.Worker & { readonly isFromSwitches: boolean }>('run', {
    rank: ({ worker }) => (worker < ROWS_AT_ONCE ? at(7) : 0) + 16 * worker + 12,
    beyond: ofFurtherWorkers,
    rows: 4,
    name: ({ worker }) => `worker ${worker}: state`,
    description: ({ worker, isFromSwitches }) =>
      `Whether the thread that served worker ${worker} ran, waited for a CPU because it was preempted, or was blocked. ` +
      (isFromSwitches
        ? "From the scheduler's events, which show the thread that took the CPU; where some are missing, from the states in the log."
        : 'The kernel does not show unprivileged users which thread had the CPU instead.'),
  }),

  copies: track('run', {
    rank: at(8),
    rows: 8,
    name: 'Copies',
    description: 'Transfers of tensor data: set = into a backend buffer, get = out of it, copy = between two.',
  }),

  functions: group('run', {
    rank: at(8, 12),
    name: 'Functions',
    description: 'What the program called around its llama_decode calls: samplers, text, waiting, loading, states.',
  }),
  threadFunctions: track<of.Nth & { readonly tid: number }>('functions', {
    rank: ({ nth }) => nth,
    ahead: firstRows(2, at(8, 16), ({ tid }) => `thread ${tid}: functions`),
    name: ({ tid }) => `thread ${tid}`,
    description: ({ tid }) => `Functions that thread ${tid} called, nested as it called them.`,
  }),

  rpc: group('run', {
    rank: at(8, 32),
    name: 'RPC',
    description: 'Messages of ggml-rpc: to servers, and from the hosts of clients.',
  }),
  rpcConnection: track<of.Connection>('rpc', {
    rank: ({ nth }) => 16 * nth,
    ahead: {
      rank: ({ nth }) => (nth < 4 ? at(8, 64 + 16 * nth) : undefined),
      name: ({ direction, other }) => `RPC ${direction} ${other}`,
    },
    rows: 16,
    name: ({ direction, other }) => `${direction} ${other}`,
    description: ({ direction, other }) =>
      direction === 'to'
        ? `Messages of ggml-rpc to the server ${other}, from the begin of the request to the end of the answer, if the command has one.`
        : `Messages of ggml-rpc from clients on ${other}, from the first byte of the request until the answer is sent, or the server waits for the next one.`,
  }),

  'GB/s': counter('run', {
    ofSummedCalls: 'nothing',
    rank: at(9),
    rows: 16,
    name: 'GB/s',
    description:
      'Bytes that the operators of a graph read and write, by the time from its first operator to its last; 0 between ' +
      'graphs. Computed from shapes and sizes: each source counts once, MUL_MAT_ID with the chosen experts. If the choice ' +
      'was not recorded, as many experts count as it may have used. CPU caches may provide part of the data.',
    unit: 'GB/s',
  }),

  'GFLOP/s': counter('run', {
    ofSummedCalls: 'nothing',
    rank: at(9, 16),
    rows: 16,
    name: 'GFLOP/s',
    description:
      'Floating-point operations of the matrix products of a graph, by the time from its first operator to its last; 0 ' +
      'between graphs. Computed from shapes: a multiplication and an addition count 2.',
    unit: 'GFLOP/s',
  }),

  rates: group('run', {
    rank: at(9, 32),
    name: 'Rates',
    description: 'Rates and counts by operator of each worker.',
  }),
  workerRate: counter<of.Worker & of.Nth & { readonly rate: string }>('rates', {
    ofSummedCalls: 'nothing',
    rank: ({ nth, worker }) => (nth + 1) * 64 + worker,
    name: ({ worker, rate }) => `worker ${worker}: ${rate}`,
    description: ({ rate }) => `${rate} of each operator, from counts that are arguments of the operator.`,
    unit: 'count',
    axis: ({ rate }) => rate,
  }),
  workerCounter: counter<of.Counter>('rates', { ...workerCounter }),

  experts: group('run', {
    rank: at(10),
    name: 'Experts',
    description:
      'Experts that the router of each layer chose (some logs contain only those of the first token of a batch). A slice ' +
      'spans the operators that used the choice.',
  }),

  expertsOfLayer: track<{ readonly layer: number }>('experts', {
    rank: ({ layer }) => (layer + 1) * 16,
    ahead: {
      rank: ({ layer }) => (layer >= 0 && layer < ROWS_AT_ONCE ? at(9, 64 + 8 * layer) : undefined),
      name: ({ layer }) => `layer ${layer}: experts`,
    },
    rows: 8,
    name: ({ layer }) => (layer < 0 ? 'no layer' : `layer ${layer}`),
    description: ({ layer }) => `Experts chosen in ${layer < 0 ? 'an unknown layer' : `layer ${layer}`}.`,
  }),
  memory: group('run', {
    rank: at(11),
    name: 'Memory',
    description:
      'Where each operator reads: a value is valid until the next operator reads elsewhere, or the graph run ends. Live ' +
      'tensors in the compute buffers, use of the KV cache, allocations.',
  }),
  offsetRead: counter<of.Buffer & { readonly offsetsFrom: string }>('memory', {
    ofSummedCalls: 'nothing',
    rank: bufferRank(0),
    ahead: {
      rank: ({ usage, nth }) => (nth === 1 ? OFFSETS_AT_ONCE[usage] : undefined),
      name: ({ title }) => `${title}: offset read`,
    },
    name: ({ title }) => `${title}: offset read`,
    description: ({ label, offsetsFrom }) =>
      `Offset of each operator's source in this buffer (${label}), in bytes from ${offsetsFrom}; 0 between graph runs. ${PIXEL}`,
    unit: 'bytes',
    axis: ({ usage }) => usage,
  }),
  live: counter<of.Buffer>('memory', {
    ofSummedCalls: 'nothing',
    rank: bufferRank(1),
    ahead: {
      rank: ({ usage, nth }) => (usage === 'compute' && nth <= 2 ? at(9, 129 + nth) : undefined),
      name: ({ title }) => `${title}: live`,
    },
    name: ({ title }) => `${title}: live`,
    description: ({ label }) =>
      `Sum of the sizes of the tensors that live in this buffer (${label}), from first write to last read. Sampled ` +
      `where operators start; views and in-place results count once. ${PIXEL}`,
    unit: 'bytes',
  }),
  arena: group<of.Buffer>('memory', {
    rank: bufferRank(3),
    name: ({ title }) => `${title}: tensors`,
    description: ({ label }) =>
      `Tensors in this buffer (${label}): one row for each offset at which tensors begin, lowest first, as a map of the ` +
      'memory. A slice lasts from the first worker that writes the tensor to the last that reads it or a view of it; an ' +
      'in-place op ends its source. Tensors of different rows may use the same memory, but never at the same time.',
  }),
  tensors: track<{ readonly offset: number; readonly place: string }>('arena', {
    // Backends align tensors to at least 32 bytes.
    rank: ({ offset }) => Math.min(Math.floor(offset / 32), RANK_MAX - 1),
    name: ({ place }) => `at ${place}`,
    description: ({ offset }) =>
      `Tensors that begin at offset ${offset}, one after the other: first write to last read.`,
  }),
  otherTensors: track<{ readonly rowsMax: number }>('arena', {
    rank: RANK_MAX,
    name: 'other offsets',
    description: ({ rowsMax }) => `Tensors at further offsets: only the first ${rowsMax} offsets have separate rows.`,
  }),
  touched: counter('memory', {
    ofSummedCalls: 'nothing',
    rank: AFTER_BUFFERS,
    ahead: { rank: () => at(9, 128), name: () => 'bytes touched per operator' },
    name: 'bytes touched per operator',
    description:
      'Sum of the sizes of the sources of the operator that worker 0 computes, until the barrier after it opens; 0 ' +
      `if no operator follows at once. Tensors count as a whole: MUL_MAT_ID with all experts, although it reads only some. ${PIXEL}`,
    unit: 'bytes',
  }),
  kvCells: {
    ...kvCache(0, 'KV cache: cells used (inferred)', 'Cells', 'cells'),
    ahead: {
      rank: ({ number }: { readonly number: number }) => (number === 0 ? at(9, 132) : undefined),
      name: () => 'KV cache: cells used (inferred)',
    },
  },
  kvBytes: kvCache(1, 'KV cache: bytes used (inferred)', 'Bytes of the cells', 'bytes'),
  sizes: group('memory', {
    rank: AFTER_BUFFERS + 2048,
    name: 'Sizes',
    description: 'Bytes of the backend buffers: constant once the model is loaded.',
  }),
  size: counter<of.Buffer>('sizes', {
    rank: bufferRank(2),
    name: ({ title }) => `${title}: size`,
    description: ({ label }) => `Size of this buffer (${label}): the space for live tensors.`,
    unit: 'bytes',
  }),
  allocated: counter<of.Nth & { readonly buffers: string }>('sizes', {
    rank: ({ nth }) => AFTER_BUFFERS + nth,
    name: ({ buffers }) => `${buffers}: allocated`,
    description: ({ buffers }) =>
      `Bytes of the backend buffers called ${buffers}, from when they were allocated until they were freed.`,
    unit: 'bytes',
  }),
  faults: group('run', {
    rank: at(11, 8),
    name: 'Faults and I/O',
    description: 'Page faults and reads from disks while operators were computed, and the weights that they read.',
  }),
  workerFaults: track<of.Worker>('faults', {
    rank: ({ worker }) => 2 * worker,
    rows: 2,
    name: ({ worker }) => `worker ${worker}`,
    description: ({ worker }) =>
      `Operators in which worker ${worker} had major page faults, or read from a disk, named by the weights that they ` +
      'read: pages of the mapped model file that were not in memory.',
  }),
  workerFaultCounter: counter<of.Counter>('faults', { ...workerCounter }),
  accesses: group('run', {
    rank: at(11, 10),
    name: 'Memory samples',
    description:
      'Page faults, loads and stores that perf sampled with their addresses, by the tensor that was at the address: from another ' +
      'file, joined with this log.',
  }),
  accessRate: counter<of.Nth & { readonly what: string }>('accesses', {
    rank: ({ nth }) => nth,
    ahead: firstRows(4, at(11, 32), ({ what }) => `${what} per ms`),
    name: ({ what }) => `${what} per ms`,
    description: ({ what }) =>
      `Number of ${what} per millisecond, in tensors and elsewhere: events, that is samples multiplied by the period of sampling.`,
    unit: 'count',
  }),
  accessRole: track<of.Nth & { readonly tensors: string }>('accesses', {
    rank: ({ nth }) => 64 + nth,
    ahead: firstRows(2, at(11, 36), ({ tensors }) => `${tensors}: samples`),
    name: ({ tensors }) => tensors,
    description: ({ tensors }) =>
      `Samples in ${tensors}, in all layers: a slice for each interval with samples. Its name and colour are the power of two of ` +
      'their number.',
  }),
  gpu: group('run', { rank: at(11, 12), name: 'GPU', description: 'Work of the GPUs, by stream.' }),
  streamWork: track<of.Stream>('gpu', {
    ...ofStream,
    ahead: firstRows(4, at(11, 16), ofStream.name),
    description: 'Kernels, operators, copies and fills, as the GPU ran them.',
  }),
  ranges: group('run', { rank: at(12), name: 'Ranges', description: 'Named ranges of each thread.' }),
  threadRanges: track<of.Nth & { readonly tid: number }>('ranges', {
    rank: ({ nth }) => nth,
    name: ({ tid }) => `thread ${tid}`,
    description: ({ tid }) => `Named ranges of thread ${tid}.`,
  }),
  nvtx: group('run', {
    rank: at(12, 8),
    name: 'NVTX',
    description: 'Ranges and marks that the program announced through NVTX, by domain.',
  }),
  nvtxNames: track('nvtx', {
    rank: 0,
    name: 'Names',
    description: 'Names that the program gave to streams, devices and other objects through NVTX.',
  }),
  nvtxDomain: group<of.Nth & { readonly domain: string | undefined }>('nvtx', {
    rank: ({ nth }) => 1 + nth,
    name: ({ domain = 'default domain' }) => domain,
    description: ({ domain }) =>
      `Ranges and marks of the program in NVTX's ${domain === undefined ? 'default domain' : `domain ${domain}`}.`,
  }),
  nvtxRanges: track('nvtxDomain', {
    rank: 0,
    rows: 16,
    name: 'Ranges',
    description: 'Ranges that were started and ended, each perhaps on another thread.',
  }),
  nvtxThread: track<of.Thread & of.Nth & { readonly domain: string | undefined }>('nvtxDomain', {
    rank: ({ nth }) => 16 + nth,
    ahead: firstRows(
      4,
      at(12, 20),
      ({ thread, tid, domain }) => `${threadTitle(thread, tid)}: NVTX${inDomain(domain)}`,
    ),
    name: ({ thread, tid }) => threadTitle(thread, tid),
    description: ({ tid, domain = 'default domain' }) =>
      `Ranges that thread ${tid} pushed and popped, and its marks, in NVTX's ${domain}.`,
  }),
  nvtxOnGpu: group('run', {
    rank: at(12, 9),
    name: 'NVTX on the GPU',
    description: 'NVTX ranges on the GPU: from the first to the last piece of work that was launched in each.',
  }),
  nvtxThreadOnGpu: track<of.Thread & of.Nth & { readonly domain: string | undefined }>('nvtxOnGpu', {
    rank: ({ nth }) => nth,
    ahead: firstRows(
      4,
      at(12, 24),
      ({ thread, tid, domain }) => `${threadTitle(thread, tid)}: NVTX${inDomain(domain)} on the GPU`,
    ),
    name: ({ thread, tid, domain }) => `${threadTitle(thread, tid)}${domain === undefined ? '' : `, ${domain}`}`,
    description: ({ domain }) =>
      `GPU work that was launched within ranges of ${domain === undefined ? 'the default domain' : `the domain ${domain}`}, ` +
      'on their thread.',
  }),
  cudaCalls: group('run', { rank: at(12, 10), name: 'CUDA API', description: CUDA_CALLS }),
  cudaThread: track('cudaCalls', callsOfThread('CUDA API', CUDA_CALLS, at(12, 32))),
  hipCalls: group('run', { rank: at(12, 10), name: 'HIP API', description: HIP_CALLS }),
  hipThread: track('hipCalls', callsOfThread('HIP API', HIP_CALLS, at(12, 32))),
  vulkanCalls: group('run', { rank: at(12, 10), name: 'Vulkan API', description: VULKAN_CALLS }),
  vulkanThread: track('vulkanCalls', callsOfThread('Vulkan API', VULKAN_CALLS, at(12, 32))),
  osCalls: group('run', { rank: at(12, 11), name: 'OS runtime', description: OS_CALLS }),
  osThread: track('osCalls', callsOfThread('OS runtime', OS_CALLS, at(12, 36))),
  blasCalls: group('run', { rank: at(12, 11), name: 'Math libraries', description: BLAS_CALLS }),
  blasLibrary: track<of.Nth & { readonly library: string }>('blasCalls', {
    rank: ({ nth }) => 64 * nth,
    ahead: {
      rank: ({ nth }) => (nth < 2 ? at(12, 64 + 64 * nth) : undefined),
      name: ({ library }) => `${library}: calls`,
    },
    rows: 64,
    name: ({ library }) => library,
    description: ({ library }) => `Calls of ${library}, as its logger wrote them.`,
  }),
  /** Of {@link own} tracks those that are at the top, where the viewer closes groups. */
  ownAtTop: track<of.Own>('run', {
    rank: ({ nth }) => at(12, 40 + Math.min(nth, 15)),
    name: ({ name }) => name,
    description: ({ description }) => description,
    kind: ({ holds }) => holds,
    unit: ({ unit }) => unit,
  }),
  gpuWaits: group('run', {
    rank: at(12, 12),
    name: 'GPU synchronization',
    description: 'Waits of the host, by stream.',
  }),
  streamWaits: track<of.Stream>('gpuWaits', {
    ...ofStream,
    ahead: firstRows<of.Stream>(4, at(12, 192), ({ device, stream }) => `GPU ${device} waits: ${stream}`),
    description: 'Waits for the stream, its events or its context; events that were recorded on it.',
  }),
  series: group('run', { rank: at(13), name: 'Counters', description: 'Numeric series as recorded.' }),
  oneSeries: counter<of.Nth & { readonly name: string; readonly unit: Unit }>('series', {
    rank: ({ nth }) => nth,
    ahead: firstRows<of.Nth & { readonly name: string }>(4, at(13, 128), ({ name }) => name),
    name: ({ name }) => name,
    description: ({ name }) => `${name}, as recorded.`,
    ofSummedCalls: 'nothing',
    unit: ({ unit }) => unit,
  }),
  power: group<of.Nth & { readonly device: string }>('run', {
    rank: ({ nth }) => at(13, 1 + Math.min(nth, 14)),
    name: ({ device }) => device,
    description: ({ device }) => `Power, clocks and utilization of ${device}, as a tool or the kernel reported them.`,
  }),
  meter: counter<of.Meter>('power', {
    rank: ({ nth }) => nth,
    ahead: {
      rank: ({ nth, group }) => (nth < 8 && group < 2 ? at(13, 64 + 8 * group + nth) : undefined),
      name: ({ device, name }) => `${device}: ${name}`,
    },
    name: ({ name }) => name,
    description: ({ about }) => about,
    unit: ({ unit }) => unit,
  }),

  issues: track<{ readonly shownMax: number }>('run', {
    rank: at(14),
    name: 'Issues',
    description: ({ shownMax }) => `Losses and bad records, at the time when they happened (the first ${shownMax}).`,
  }),

  threadStates: group('run', {
    rank: at(14, 8),
    name: 'Thread states',
    description: 'When the traced threads ran, and when they waited.',
  }),
  threadState: track<of.Thread & of.Nth>('threadStates', {
    rank: ({ nth }) => nth,
    ahead: firstRows(ROWS_AT_ONCE, at(14, 16), ({ thread }) => `${thread}: state`),
    name: ({ thread }) => thread,
    description: ({ tid }) =>
      `When thread ${tid} ran, when it was runnable (preempted, or woken and not yet running), and when it was blocked.`,
  }),

  /** Leading tracks are after the ranges, the first seven in order; the others after all tracks above. */
  own: track<of.Own>('run', {
    rank: ({ nth, leads }) => (leads ? at(12, 1 + Math.min(nth, 6)) : at(15, nth)),
    name: ({ name }) => name,
    description: ({ description }) => description,
    kind: ({ holds }) => holds,
    unit: ({ unit }) => unit,
    ofProcess: ({ ofProcess }) => ofProcess,
    ofThread: ({ ofThread }) => ofThread,
  }),

  /** After the groups of all inputs. */
  cpus: group('trace', {
    rank: 127,
    name: 'CPUs',
    description: 'The thread on each CPU, since the first recorded switch.',
  }),
  cpu: track<{ readonly cpu: number }>('cpus', {
    rank: ({ cpu }) => cpu,
    name: ({ cpu }) => `CPU ${cpu}`,
    description: ({ cpu }) => `Threads that ran on CPU ${cpu}.`,
  }),
} as const
