/*
 * The opposite direction: announces the work of an unmodified llama.cpp as NVTX ranges, in the domain `llama.cpp`, to the
 * tool that NVTX_INJECTION64_PATH names, as if llama.cpp itself used NVTX.
 */
#pragma once

#include "common/system.h"

/* What is announced, as requested: bits. Each is a category of the domain, by its number. */
enum nvtx_emitted { EMIT_PHASES = 1, EMIT_TOKENS = 2, EMIT_GRAPHS = 4, EMIT_OPERATORS = 8 };

#define EMIT_NO_INDEX UINT64_MAX

/* 0: nothing. EMIT_AHEAD: not decided yet. */
extern _Atomic uint32_t nvtx_emits_now;
#define EMIT_AHEAD 0x80000000u

/* Looks for a tool and joins it, on the first call that has something to announce. Returns what is announced. */
uint32_t nvtx_emit_begin(void);

static inline bool nvtx_emits(enum nvtx_emitted what) {
    uint32_t emits = atomic_load_explicit(&nvtx_emits_now, memory_order_relaxed);
    if (__builtin_expect(emits & EMIT_AHEAD, 0)) emits = nvtx_emit_begin();
    return emits & (uint32_t) what;
}

/* Begins and ends a range of this thread. name: one of a small fixed set. EMIT_NO_INDEX: no index. */
void nvtx_emit_push(enum nvtx_emitted what, const char * name, uint64_t index);
void nvtx_emit_pop(void);

/* An operator, named by its tensor's role (the name without the layer) and its op. */
void nvtx_emit_operator(const char * tensor, const char * op, uint64_t index);

/* A call of that phase begins. If the phase changes, the phase before ends. */
void nvtx_emit_phase(const char * phase);

/* Ends open ranges. */
void nvtx_emit_finish(void);

/* After this, in the child of a fork, nothing is announced. */
void nvtx_emit_forked(void);
