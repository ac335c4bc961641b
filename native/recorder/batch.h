/* What is in a call's batch, whichever version of llama.cpp made it: a llama_batch, or a llama_batch_ext (llama.cpp 0.7.0). */
#ifndef GGML2PERFETTO_BATCH_H
#define GGML2PERFETTO_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "log/ggtrace.h"

/* How many tokens, and their sequences and positions, as many spans as there is room for. */
struct batch {
    uint32_t tokens;
    uint32_t outputs; /* tokens with an output: logits, or an embedding */
    uint32_t span_count;
    struct ggtrace_span spans[GGTRACE_SPANS_MAX];
};

/*
 * llama_decode takes its llama_batch by value, and its size has changed over time. As much is passed on as any version
 * has: what lies behind the batch belongs to the caller's frame and may be copied, too (x86-64: on the stack; arm64: by
 * reference to the caller's copy).
 */
struct any_batch {
    int32_t tokens;
    char rest[140];
};

/* Reads a llama_batch. */
void batch_read(struct batch * batch, const struct any_batch * any);

/*
 * A llama_batch_ext is opaque: what is in it follows from the functions that fill it. An entry of index `index` was added
 * with its sequence (an index below 0: it was not); its position was set; all entries were taken out; one got an output.
 */
void batch_ext_added(const void * any, int32_t index, int32_t sequence);
void batch_ext_placed(const void * any, int32_t index, int32_t position);
void batch_ext_cleared(const void * any);
void batch_ext_output(const void * any);

/* Reads a llama_batch_ext. */
void batch_ext_read(struct batch * batch, const void * any);

/* Is it one token of each of its sequences, none of them their first? */
bool batch_decodes(const struct batch * batch);

#endif
