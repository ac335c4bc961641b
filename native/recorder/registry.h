/*
 * What the recorder knows of ggml's tensors, buffers and mapped files: each is defined in the log once, when it is first
 * met. Everything here is called by the thread that starts a graph, before the graph's workers run, and takes one lock.
 */
#ifndef GGML2PERFETTO_REGISTRY_H
#define GGML2PERFETTO_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "log/ggtrace.h"
#include "recorder/layout.h"

/* Where definitions go; then, for all but names, what ggml's things look like: `layout` and `api` must outlive it. */
void registry_open(struct ggtrace * log);
void registry_init(const struct ggml_api * api, const struct tensor_layout * layout);

/* The id of a text; 0 for none. */
uint32_t registry_name(const char * text);

/* A new id for a text, which is defined under it; for who remembers it. */
uint32_t registry_new_name(const char * text, size_t bytes);

/* What ggml calls the op of a node. */
const char * registry_op_name(const void * node);

/* The id of a tensor, defined now if need be. */
uint32_t registry_tensor(const void * tensor);

/* The id of the buffer that a tensor lies in, defined now if need be; 0 for none. */
uint32_t registry_tensor_buffer(const void * tensor);

/* Size of a tensor's data in bytes. */
uint64_t registry_tensor_bytes(const void * tensor);

/* `data` are being copied into the whole of `tensor`, perhaps from a mapped file. Works before registry_init, too. */
void registry_note_origin(const void * tensor, const void * data, uint64_t bytes);

/* What ggml calls a backend. */
const char * registry_backend_title(void * backend);

/* This ggml's tensors cannot be understood: tensors and graphs are not looked at any more. */
void registry_give_up(void);

/* A buffer was just allocated. Works before registry_init, too. */
void registry_note_allocation(const void * buffer, uint64_t time);

/* The id of a buffer that is about to be freed, and forgets it; 0 if it was never met. */
uint32_t registry_buffer_forget(void * buffer);

#endif
