/* What is in a llama_batch, whichever version of llama.cpp made it. */
#ifndef GGML2PERFETTO_BATCH_H
#define GGML2PERFETTO_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "log/ggtrace.h"

/*
 * llama_decode takes its llama_batch by value, and its size has changed over time. As much is passed on as any version
 * has: what lies behind the batch belongs to the caller's frame and may be copied, too (x86-64: on the stack; arm64: by
 * reference to the caller's copy).
 */
struct any_batch {
    int32_t tokens;
    char rest[140];
};

/* Sequences and positions of its tokens, as many spans as there is room for; returns how many. */
uint32_t batch_spans(const struct any_batch * batch, struct ggtrace_span spans[GGTRACE_SPANS_MAX]);

/* Is it one token of each of its sequences, and no prompt? */
bool batch_decodes(const struct any_batch * batch);

#endif
