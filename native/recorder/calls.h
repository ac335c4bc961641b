/* Calls of llama_decode and llama_encode: each is numbered, recorded with its tokens, and known to what happens inside it. */
#ifndef GGML2PERFETTO_CALLS_H
#define GGML2PERFETTO_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/batch.h"

/* Between llama_set_warmup(true) and (false). */
void calls_set_warm_up(bool warm_up);

/* A call that was begun, for calls_end. */
struct call {
    struct batch batch; /* read before calls_begin */
    void * context;
    uint32_t kind; /* GGTRACE_DECODE, GGTRACE_ENCODE, GGTRACE_WARM_UP */
    bool is_announced;
    uint64_t start;
};

void calls_begin(struct call * call, void * context, uint32_t kind);
void calls_end(const struct call * call, int result);

/* This thread's call: its number, GGTRACE_NO_CALL outside of calls and in a warm-up. */
uint32_t calls_current(void);

/* Is this thread inside a call? */
bool calls_inside(void);

/* Is what happens on this thread now to be recorded? */
bool calls_take(void);

#endif
