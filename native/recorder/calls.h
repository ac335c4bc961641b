/* Calls of llama_decode, llama_encode and similar functions: each gets a number and is recorded with its tokens; events inside it refer to it. */
#pragma once

#include "common/system.h"
#include "log/ggtrace-requests.h"
#include "recorder/batch.h"

/* Between llama_set_warmup(true) and llama_set_warmup(false). */
void calls_set_warm_up(bool warm_up);

/*
 * A warm-up without llama_set_warmup: calls after which the context's memory is cleared, or after one or two tokens its counters, before
 * anything uses them (common_init_from_params; common_context_can_seq_rm also tests a context this way; benchmarks). A context's first calls
 * are held until it is known what they are, or written as calls that may be a warm-up. The functions: the context of the held calls, or NULL; a context's memory was cleared; its
 * counters were reset; something uses its outputs or its memory; it was freed; the program ends.
 */
const void * calls_held(void);
void calls_cleared(const void * context, bool are_tests_known); /* is a test of the memory passed to calls_hold_change? */
void calls_reset(const void * context);
void calls_used(const void * context);
void calls_read(const void * context); /* its outputs are used */
void calls_forget(const void * context);
void calls_finish(void);

/* Is a call recorded when it is known what it is? And does it get its number only then? */
enum holding { NOT_HELD, HELD, HELD_WITHOUT_NUMBER };

/* A call that has begun, for calls_end. */
struct call {
    struct batch batch; /* read before calls_begin */
    void * context;
    uint32_t kind; /* GGTRACE_DECODE etc., with flags */
    const char * part; /* name of the part of the model that it computes; NULL: none */
    enum holding holding;
    bool is_announced;
    bool follows_unread; /* no output of the context's call before it was read */
    uintptr_t at; /* of its hook */
    uint64_t since; /* when its graph was allocated, outside of calls; 0: it begins with calls_begin */
    uint64_t start;
    struct ggtrace_resources resources;
};

/*
 * The kind and the tokens of a graph that a scheduler computes outside of calls: found by the names of its inputs in llama.cpp and
 * whisper.cpp; for other graphs both are unknown.
 */
uint32_t calls_read_graph(struct call * call, void * cgraph);

/* The hook that a call passes: a value of its own, its frame address (frames.h), its return address. */
struct call_hook {
    const void * which;
    uintptr_t at;
    const void * caller;
};

void calls_begin(struct call * call, struct call_hook hook, void * context, uint32_t kind);
void calls_end(struct call * call, int result);

/* This thread enters another call function inside its call. */
void calls_pass(uint32_t kind);

/* The number of the latest call of any thread; GGTRACE_NO_CALL before the first. */
uint32_t calls_latest(void);

/*
 * The calls of a context so far. Held: they may turn out to be a warm-up, which does not count. A change of the context's memory after
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

/*
 * The same, at a hook that may begin one. No function calls itself for the same context: then the thread has left the call, from which nothing
 * returned, and this is another one.
 */
bool calls_inside_of(const void * context, const void * which);

/* Are events of this thread recorded now? */
bool calls_take(void);
