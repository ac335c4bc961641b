/*
 * The environment variables that `ggml2perfetto record` sets and the recorder reads: the one table of them in C.
 * lib/node/record/environment.ts is the one in TypeScript; test/house.test.ts compares the two.
 */
#ifndef GGML2PERFETTO_ENVIRONMENT_H
#define GGML2PERFETTO_ENVIRONMENT_H

#include <stdlib.h>

#define ENV_OUT "GGML2PERFETTO_OUT"               /* path of the log; without it nothing is recorded */
#define ENV_NEW "GGML2PERFETTO_NEW"               /* path of the log until it replaces an older file of that name */
#define ENV_OLD "GGML2PERFETTO_OLD"               /* inode of that older file */
#define ENV_LEVEL "GGML2PERFETTO_LEVEL"           /* token, graph, op */
#define ENV_STATES "GGML2PERFETTO_STATES"         /* 0: no thread states */
#define ENV_COUNTERS "GGML2PERFETTO_COUNTERS"     /* names with commas between them */
#define ENV_SYNC "GGML2PERFETTO_SYNC"             /* set: nodes of backends without an operator hook are computed one by one */
#define ENV_NVTX "GGML2PERFETTO_NVTX"             /* set: NVTX_INJECTION64_PATH is ours */
#define ENV_NVTX_EMIT "GGML2PERFETTO_NVTX_EMIT"   /* phases, tokens, graphs, operators */
#define ENV_CHILDREN "GGML2PERFETTO_CHILDREN"     /* set: child processes are recorded, too */
#define ENV_PID "GGML2PERFETTO_PID"               /* the process that is recorded; set by the recorder itself */
#define ENV_PRELOAD_BEFORE "GGML2PERFETTO_PRELOAD_BEFORE" /* LD_PRELOAD without us, for children */
#define ENV_TOKENS "GGML2PERFETTO_TOKENS"         /* calls that are recorded: first..last */
#define ENV_EVERY "GGML2PERFETTO_EVERY"           /* every n-th of them */
#define ENV_OPS "GGML2PERFETTO_OPS"               /* ops that are recorded, with commas between them */
#define ENV_PAUSED "GGML2PERFETTO_PAUSED"         /* set: nothing is recorded before the first resume */
#define ENV_TOGGLE "GGML2PERFETTO_TOGGLE"         /* number of the signal that pauses and resumes */
#define ENV_MAX_BYTES "GGML2PERFETTO_MAX_BYTES"   /* largest size of the log */
#define ENV_RING "GGML2PERFETTO_RING"             /* set: the last part of the run is kept, not the first */
#define ENV_GUARD "GGML2PERFETTO_GUARD"           /* percent that recorded calls may take longer */

/* The value of a variable; NULL where it is not set, or empty. */
static inline const char * environment(const char * name) {
    const char * value = getenv(name);
    return value && *value ? value : NULL;
}

#endif
