/* The contents of a call's batch: a llama_batch, or a llama_batch_ext (llama.cpp 0.7.0). */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

/* The number of tokens, and their sequences and positions, for as many spans as fit. */
struct batch {
    uint32_t tokens;
    uint32_t outputs; /* tokens with an output: logits, or an embedding */
    uint32_t last_output; /* place of the last of them; GGTRACE_NO_NUMBER: there is none */
    uint32_t span_count;
    struct ggtrace_span spans[GGTRACE_SPANS_MAX];
};

/*
 * llama_decode takes its llama_batch by value, and its size differs between versions. The hook passes on as many bytes as any
 * version has. The bytes after the batch belong to the caller's frame and can be copied safely (x86-64: on the stack; arm64:
 * by reference to the caller's copy).
 */
struct any_batch {
    int32_t tokens;
    char rest[140];
};

/* Reads a llama_batch. */
void batch_read(struct batch * batch, const struct any_batch * any);

/*
 * A llama_batch_ext is opaque: its contents follow from the functions that fill it. An entry of index `index` was added with
 * its sequence (an index below 0: the function failed); its position was set; all entries were removed; the entry of an index got an output.
 */
void batch_ext_added(const void * any, int32_t index, int32_t sequence);
void batch_ext_placed(const void * any, int32_t index, int32_t position);
void batch_ext_cleared(const void * any);
void batch_ext_output(const void * any, int32_t index);

/* Reads a llama_batch_ext. */
void batch_ext_read(struct batch * batch, const void * any);

/* Does each sequence have exactly one token, which is not its first? */
bool batch_decodes(const struct batch * batch);
