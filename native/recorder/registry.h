/*
 * The recorder's knowledge of ggml's tensors, buffers and mapped files. Each is defined in the log once, at first use. The
 * thread that starts a graph calls these functions, before the graph's workers run. All take one lock.
 */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"
#include "recorder/layout.h"

/* Sets the log for definitions; then the layout of tensors, which all functions but those for names need. `layout` and `api` must stay valid. */
void registry_open(struct ggtrace * log);
void registry_init(const struct ggml_api * api, const struct tensor_layout * layout);

/* The id of a text; 0 for none. */
uint32_t registry_name(const char * text);

/* Defines a text under a new id; the caller must remember the id. */
uint32_t registry_new_name(const char * text, size_t bytes);

/* ggml's name of the op of a node. */
const char * registry_op_name(const void * node);

/* The id of a tensor, defined now if necessary. */
uint32_t registry_tensor(const void * tensor);

/* The id of the buffer that contains a tensor, defined now if necessary; 0 for none. */
uint32_t registry_tensor_buffer(const void * tensor);

/* Size of a tensor's data in bytes. */
uint64_t registry_tensor_bytes(const void * tensor);

/* `data` is being copied into the whole of `tensor`, perhaps from a mapped file. Works before registry_init too. */
void registry_note_origin(const void * tensor, const void * data, uint64_t bytes);

/* ggml's name of a backend. */
const char * registry_backend_title(void * backend);

/* The layout of this ggml's tensors is unknown: tensors and graphs are ignored from now on. */
void registry_give_up(void);

/* A buffer was just allocated. Works before registry_init too. */
void registry_note_allocation(const void * buffer, uint64_t time);

/* A buffer of weights is about to be used: defines it, and finds the mapped files, before a call waits for it. */
void registry_expect_buffer(void * buffer);

/* Removes a buffer that is about to be freed. Returns its id; 0 if it was never used. */
uint32_t registry_buffer_forget(void * buffer);

/* Calls `note` with each buffer that is defined from now on, under the registry's lock. Before the first one. */
void registry_note_buffers(void (*note)(uint32_t id, uint64_t base, uint64_t size));
