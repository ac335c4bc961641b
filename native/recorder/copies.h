/* Copies between host and backend buffers, and between backends, inside a call. */
#pragma once

#include "common/system.h"

/*
 * Begins a copy in the hook of that frame address (frames.h): returns its start time, or 0 if it is not recorded. Only copies inside a call are recorded: loading a model sets
 * thousands of tensors and is not part of the run. Copy functions call each other; the outermost one is recorded.
 */
uint64_t copies_begin(uintptr_t here);

/* Ends the copy that began at `start`: from a tensor (GGTRACE_GET) or to it (GGTRACE_SET). */
void copies_end(uintptr_t here, uint64_t start, const void * tensor, size_t size, uint32_t kind);

/* Ends the copy of a tensor's data that began at `start`, such as a split's input. For asynchronous copies, the time is that of the call. */
void copies_end_between(uintptr_t here, uint64_t start, const void * from, const void * to);

/* Records the source of a tensor's data while a model is loaded. */
void copies_note_origin(const void * tensor, const void * data, size_t offset, size_t size);
