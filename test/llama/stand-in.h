/*
 * Declares llama.cpp's functions for programs that call a library that looks like llama.cpp, and for that library. Where llama.cpp's headers are in
 * the include path, they declare them: a definition that differs is an error then. Elsewhere the program still compiles, by the declarations
 * below, which stand-in.test.ts compares with the headers.
 */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#if __has_include("llama.h") && !defined(BY_HAND)
#include "ggml-backend.h"
#include "llama.h"
#else

#ifndef LLAMA_H
struct llama_context;
struct ggml_backend;
struct ggml_backend_sched;
struct ggml_cgraph;
struct ggml_context;
struct ggml_init_params { size_t mem_size; void * mem_buffer; _Bool no_alloc; };
enum ggml_status { GGML_STATUS_ALLOC_FAILED = -2, GGML_STATUS_FAILED = -1, GGML_STATUS_SUCCESS = 0, GGML_STATUS_ABORTED = 1 };
struct llama_batch {
    int32_t n_tokens;
    int32_t * token;
    float * embd;
    int32_t * pos, * n_seq_id, ** seq_id;
    int8_t * logits;
};
#endif

int32_t llama_decode(struct llama_context * context, struct llama_batch batch);
int32_t llama_encode(struct llama_context * context, struct llama_batch batch);
const char * llama_version(void);
const char * ggml_version(void);
struct ggml_context * ggml_init(struct ggml_init_params params);
enum ggml_status ggml_backend_graph_compute_async(struct ggml_backend * backend, struct ggml_cgraph * graph);
enum ggml_status ggml_backend_sched_graph_compute_async(struct ggml_backend_sched * scheduler, struct ggml_cgraph * graph);

#endif
#endif
