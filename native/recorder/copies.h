/* Copies between host and backend buffers, and between backends, inside a call. */
#ifndef GGML2PERFETTO_COPIES_H
#define GGML2PERFETTO_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Begins a copy: its start, or 0 where it is not recorded. Only inside a call: loading a model sets thousands of tensors, and is no
 * part of the run. Copies call one another: the outermost is recorded.
 */
uint64_t copies_begin(void);

/* Ends what began at `start`: a copy from a tensor (GGTRACE_GET) or to it (GGTRACE_SET). */
void copies_end(uint64_t start, const void * tensor, size_t size, uint32_t kind);

/* Ends what began at `start`: a copy of a tensor's data, such as a split's input. Asynchronous ones are timed as the caller sees them. */
void copies_end_between(uint64_t start, const void * from, const void * to);

/* Notes where a tensor's data comes from while a model is loaded. */
void copies_note_origin(const void * tensor, const void * data, size_t offset, size_t size);

#endif
