/* Calls of llama_decode, llama_encode and the like: each is numbered, recorded with its tokens, and known to what happens inside it. */
#ifndef GGML2PERFETTO_CALLS_H
#define GGML2PERFETTO_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/batch.h"

/* Between llama_set_warmup(true) and (false). */
void calls_set_warm_up(bool warm_up);

/*
 * llama.cpp's tools no longer call llama_set_warmup: they make a call of one or two tokens, and clear the context's memory
 * (common_init_from_params; common_context_can_seq_rm tries in this way what a context can do). Such a call is recorded once it is known
 * to be one: the context that it was made with, or NULL; a context was cleared or reset; it was freed; the program ends.
 */
const void * calls_held(void);
void calls_reset(const void * context);
void calls_forget(const void * context);
void calls_finish(void);

/* A call that was begun, for calls_end. */
struct call {
    struct batch batch; /* read before calls_begin */
    void * context;
    uint32_t kind; /* GGTRACE_DECODE and so on, with flags */
    const char * part; /* what it computes, where that has a name; NULL: it has none */
    bool may_warm_up; /* and is numbered and recorded when that is known */
    bool is_announced;
    uint64_t start;
};

/*
 * The kind of a graph that a scheduler computes outside of calls, and its tokens: from the names of its inputs, which are those of
 * llama.cpp and whisper.cpp; else it is unknown, as is the number of tokens.
 */
uint32_t calls_read_graph(struct call * call, void * cgraph);

void calls_begin(struct call * call, void * context, uint32_t kind, const void * caller);
void calls_end(const struct call * call, int result);

/* Inside its call, this thread passes another of the functions that may be calls. */
void calls_pass(uint32_t kind);

/* This thread's call: its number, GGTRACE_NO_CALL outside of calls and in a warm-up. */
uint32_t calls_current(void);

/* Is this thread inside a call? */
bool calls_inside(void);

/* Is what happens on this thread now to be recorded? */
bool calls_take(void);

#endif
