/*
 * The environment variables that `ggml2perfetto record` sets and the recorder reads: the only list of them in C.
 * lib/node/record/environment.ts is the list in TypeScript; test/house.test.ts compares the two.
 */
#pragma once

#include "common/system.h"

#define ENV_OUT "GGML2PERFETTO_OUT"               /* path of the log; without it nothing is recorded */
#define ENV_NEW "GGML2PERFETTO_NEW"               /* path of the log until it replaces an older file of that name */
#define ENV_OLD "GGML2PERFETTO_OLD"               /* inode of that older file */
#define ENV_REPORT "GGML2PERFETTO_REPORT"         /* path of the file for what logs cannot contain, see report.h */
#define ENV_LEVEL "GGML2PERFETTO_LEVEL"           /* token, graph, op */
#define ENV_ASK "GGML2PERFETTO_ASK"               /* path of questions for a backend (ask.c): the process answers them, and ends */
#define ENV_SYS "GGML2PERFETTO_SYS"               /* for tests: a folder with files of another machine's /sys, which describe its CPUs */
#define ENV_STATES "GGML2PERFETTO_STATES"         /* 0: no thread states */
#define ENV_COUNTERS "GGML2PERFETTO_COUNTERS"     /* names, separated by commas */
#define ENV_GPU "GGML2PERFETTO_GPU"               /* 0: nothing of GPUs */
#define ENV_CUPTI "GGML2PERFETTO_CUPTI"         /* path of NVIDIA's libcupti, where it is not found */
#define ENV_GPU_EVENTS "GGML2PERFETTO_GPU_EVENTS" /* set: without CUPTI, times nodes of CUDA's devices by events */
#define ENV_SYNC "GGML2PERFETTO_SYNC"             /* set: compute nodes of backends without an operator hook one by one */
#define ENV_LIBRARIES "GGML2PERFETTO_LIBRARIES"   /* set: record a library that contains ggml and does not export it */
#define ENV_FUNCTIONS "GGML2PERFETTO_FUNCTIONS"   /* 0: no functions other than calls */
#define ENV_NVTX "GGML2PERFETTO_NVTX"             /* set: NVTX_INJECTION64_PATH names our library */
#define ENV_NVTX_EMIT "GGML2PERFETTO_NVTX_EMIT"   /* phases, tokens, graphs, operators */
#define ENV_CHILDREN "GGML2PERFETTO_CHILDREN"     /* set: record child processes too */
#define ENV_PID "GGML2PERFETTO_PID"               /* the recorded process; set by the recorder itself */
#define ENV_PRELOAD_BEFORE "GGML2PERFETTO_PRELOAD_BEFORE" /* LD_PRELOAD without the recorder, for children */
#define ENV_TOKENS "GGML2PERFETTO_TOKENS"         /* recorded calls: first..last */
#define ENV_EVERY "GGML2PERFETTO_EVERY"           /* every n-th of them */
#define ENV_OPS "GGML2PERFETTO_OPS"               /* recorded ops, separated by commas */
#define ENV_PAUSED "GGML2PERFETTO_PAUSED"         /* set: record nothing before the first resume */
#define ENV_TOGGLE "GGML2PERFETTO_TOGGLE"         /* number of the signal that pauses and resumes */
#define ENV_MAX_BYTES "GGML2PERFETTO_MAX_BYTES"   /* largest size of the log */
#define ENV_RING "GGML2PERFETTO_RING"             /* set: keep the last part of the run, not the first */
#define ENV_SLOW "GGML2PERFETTO_SLOW"             /* keep only calls that last so many nanoseconds, and what preceded them */
#define ENV_GUARD "GGML2PERFETTO_GUARD"           /* how much longer recorded calls may take, in percent */

/* The value of a variable; NULL if it is not set or empty. */
static inline const char * environment(const char * name) {
    const char * value = getenv(name);
    return value && *value ? value : NULL;
}
