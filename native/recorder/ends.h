/*
 * The recording ends in a handler of exit(): other threads of the program may still compute. ggml's objects are destroyed by such handlers
 * too, and a handler that takes its time after them lets these threads compute without them, and die.
 */
#pragma once

#include "common/system.h"

/* When the handler is registered: at the end of the first stage of each kind of loading (its `what`), and at these. */
enum { ENDS_FROM_START = 30, ENDS_FROM_GRAPH = 31 };

void ends_register_once(uint32_t when);

extern _Atomic uint32_t ends_registered;

/*
 * Handlers run in the reverse order of their registration. ggml creates most of its objects when it first needs them: while it loads a
 * model, creates a context, computes a graph. So the handler is registered after each of these; the first of its runs ends the recording.
 */
static inline void ends_register(uint32_t when) {
    if (!(atomic_load_explicit(&ends_registered, memory_order_relaxed) >> when & 1)) ends_register_once(when);
}
