/* Calls of llama_decode, llama_encode and similar functions: each gets a number and is recorded with its tokens; events inside it refer to it. */
#ifndef GGML2PERFETTO_CALLS_H
#define GGML2PERFETTO_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "log/ggtrace-requests.h"
#include "recorder/batch.h"

/* Between llama_set_warmup(true) and llama_set_warmup(false). */
void calls_set_warm_up(bool warm_up);

/*
 * Current tools of llama.cpp do not call llama_set_warmup: they make a call of one or two tokens, then clear the context's memory
 * (common_init_from_params; common_context_can_seq_rm also tests a context this way). Such a call is held until the recorder knows
 * its kind. The functions: the context of the held call, or NULL; a context was cleared or reset; it was freed; the program ends.
 */
const void * calls_held(void);
void calls_reset(const void * context);
void calls_forget(const void * context);
void calls_finish(void);

/* A call that has begun, for calls_end. */
struct call {
    struct batch batch; /* read before calls_begin */
    void * context;
    uint32_t kind; /* GGTRACE_DECODE etc., with flags */
    const char * part; /* name of the part of the model that it computes; NULL: none */
    bool may_warm_up; /* the call is numbered and recorded when its kind is known */
    bool is_announced;
    uint64_t start;
};

/*
 * The kind and the tokens of a graph that a scheduler computes outside of calls: found by the names of its inputs in llama.cpp and
 * whisper.cpp; for other graphs both are unknown.
 */
uint32_t calls_read_graph(struct call * call, void * cgraph);

void calls_begin(struct call * call, void * context, uint32_t kind, const void * caller);
void calls_end(const struct call * call, int result);

/* This thread enters another call function inside its call. */
void calls_pass(uint32_t kind);

/* The number of the latest call of any thread; GGTRACE_NO_CALL before the first. */
uint32_t calls_latest(void);

/*
 * The calls of a context so far. Held: it may turn out to be a warm-up, which does not count. A change of the context's memory after
 * such a call is written, or left out, together with the call (only the first such change is).
 */
enum calls_of { CALLS_NONE, CALLS_HELD, CALLS_SOME };
enum calls_of calls_of_context(const void * context);
void calls_hold_change(const struct ggtrace_sequence * change);

/* A state was restored into a context: what follows is no warm-up. */
void calls_note_restored(const void * context);

/* Is the program warming up the model? */
bool calls_are_warm_ups(void);

/* The number of this thread's call; GGTRACE_NO_CALL outside of calls and in a warm-up. */
uint32_t calls_current(void);

/* Is this thread inside a call? */
bool calls_inside(void);

/* Are events of this thread recorded now? */
bool calls_take(void);

#endif
