/*
 * Keeps what recording costs below a set per cent: of every eight decode calls one is not recorded, and when those that
 * are take too much longer, less is recorded from then on.
 */
#ifndef GGML2PERFETTO_GUARD_H
#define GGML2PERFETTO_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* 0: no guard. */
void guard_set(uint32_t percent);

/* A call of llama_decode begins, of that many tokens; true: it is not to be recorded, for comparison. */
bool guard_begin(uint32_t tokens);

/* The same thread's call has ended. */
void guard_end(uint64_t start, uint64_t end);

#endif
