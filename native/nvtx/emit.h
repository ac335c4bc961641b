/*
 * The other way round: announces what an unmodified llama.cpp does as NVTX ranges, in the domain `llama.cpp`, to whatever
 * tool NVTX_INJECTION64_PATH names; as if llama.cpp itself used NVTX.
 */
#ifndef GGML2PERFETTO_NVTX_EMIT_H
#define GGML2PERFETTO_NVTX_EMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What is announced, as asked for: bits. Each is a category of the domain, by its number. */
enum nvtx_emitted { EMIT_PHASES = 1, EMIT_TOKENS = 2, EMIT_GRAPHS = 4, EMIT_OPERATORS = 8 };

#define EMIT_NO_INDEX UINT64_MAX

/* 0: nothing. EMIT_AHEAD: it is not known yet. */
extern _Atomic uint32_t nvtx_emits_now;
#define EMIT_AHEAD 0x80000000u

/* Looks for a tool and joins it, by the first who has something to announce. Returns what is announced. */
uint32_t nvtx_emit_begin(void);

static inline bool nvtx_emits(enum nvtx_emitted what) {
    uint32_t emits = atomic_load_explicit(&nvtx_emits_now, memory_order_relaxed);
    if (__builtin_expect(emits & EMIT_AHEAD, 0)) emits = nvtx_emit_begin();
    return emits & (uint32_t) what;
}

/* A range of this thread, and its end. name: one of few. EMIT_NO_INDEX: it has none. */
void nvtx_emit_push(enum nvtx_emitted what, const char * name, uint64_t index);
void nvtx_emit_pop(void);

/* An operator, called by its tensor's role (its name without the layer) and its op. */
void nvtx_emit_operator(const char * tensor, const char * op, uint64_t index);

/* A call of that phase begins: the phase before it ends, if it was another. */
void nvtx_emit_phase(const char * phase);

/* What is left open ends. */
void nvtx_emit_finish(void);

/* In the child of a fork nothing is announced. */
void nvtx_emit_forked(void);

#endif
