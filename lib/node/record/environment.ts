/**
 * The environment variables that {@link record} sets for the recorder in the program's process: the only list of them in TypeScript.
 * native/common/environment.h is the list in C, with their meaning.
 */
export const RECORDER_ENVIRONMENT = {
  out: 'GGML2PERFETTO_OUT',
  new: 'GGML2PERFETTO_NEW',
  old: 'GGML2PERFETTO_OLD',
  report: 'GGML2PERFETTO_REPORT',
  level: 'GGML2PERFETTO_LEVEL',
  ask: 'GGML2PERFETTO_ASK',
  sys: 'GGML2PERFETTO_SYS',
  states: 'GGML2PERFETTO_STATES',
  counters: 'GGML2PERFETTO_COUNTERS',
  gpu: 'GGML2PERFETTO_GPU',
  cupti: 'GGML2PERFETTO_CUPTI',
  gpuEvents: 'GGML2PERFETTO_GPU_EVENTS',
  sync: 'GGML2PERFETTO_SYNC',
  functions: 'GGML2PERFETTO_FUNCTIONS',
  nvtx: 'GGML2PERFETTO_NVTX',
  nvtxEmit: 'GGML2PERFETTO_NVTX_EMIT',
  children: 'GGML2PERFETTO_CHILDREN',
  pid: 'GGML2PERFETTO_PID',
  preloadBefore: 'GGML2PERFETTO_PRELOAD_BEFORE',
  tokens: 'GGML2PERFETTO_TOKENS',
  every: 'GGML2PERFETTO_EVERY',
  ops: 'GGML2PERFETTO_OPS',
  paused: 'GGML2PERFETTO_PAUSED',
  toggle: 'GGML2PERFETTO_TOGGLE',
  bytesMax: 'GGML2PERFETTO_MAX_BYTES',
  ring: 'GGML2PERFETTO_RING',
  slow: 'GGML2PERFETTO_SLOW',
  guard: 'GGML2PERFETTO_GUARD',
} as const
