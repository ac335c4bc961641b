/* Functions of the program's libraries that are not calls: sampling, text, waiting, loading, state, speculation. Each becomes a FUNCTION record. */
#pragma once

#include "common/system.h"
#include "common/clock.h"
#include "log/ggtrace-requests.h"

#define CONTEXT(pointer) ((uint64_t) (uintptr_t) (pointer))

/* When the log is opened: reads whether functions are recorded, and records which of them the program's libraries do not export. */
void functions_open(void (*fact)(const char * key, const char * value));

/*
 * A call passed no hook of llama.cpp's C functions, which call the method at whose hook this is called: recorded once, as a fact, with the
 * reason. `caller`: the return address of that hook.
 */
void functions_note_bypassed(const void * caller);

/* What of llama.cpp was seen to begin, as a fact: what was begun and never ended leaves no record. */
enum functions_seen { SEEN_NOTHING, SEEN_FUNCTIONS, SEEN_CALLS };
void functions_note_seen(enum functions_seen what);

/* Are functions, and changes of sequences, recorded at all? */
bool functions_are_recorded(void);

/*
 * Are functions of this thread recorded now? Inside a call, if its events are; else if the last call is one of those that were chosen,
 * without regard to `every`: functions between two calls are part of both.
 */
bool functions_take(void);

/* A function begins: `start` is 0 if it is not recorded. */
static inline void functions_begin(struct ggtrace_function * function, uint32_t what) {
    *function = (struct ggtrace_function){
        .what = what,
        .sequence = GGTRACE_NO_NUMBER,
        .output = GGTRACE_NO_NUMBER,
        .value = GGTRACE_UNKNOWN_VALUE,
    };
    if (functions_take()) function->start = clock_now();
}

/* The function returns: it is written. */
void functions_end(struct ggtrace_function * function);

/* `function`, from here to the end of the block. It is not written if an exception ends the block. */
#define RECORDED(what)                                                          \
    struct ggtrace_function function __attribute__((cleanup(functions_end)));   \
    functions_begin(&function, (what))

/*
 * The same for functions that mostly return at once, and would fill the log: written from 1 µs on. With the name of a backend, unless
 * it is NULL.
 */
void functions_end_long(struct ggtrace_function * function, void * backend);

/*
 * Is this conversion of a token recorded? A program may convert its whole vocabulary: those before the first call, and those after
 * many others since the last call, are left out. The program ends: how many those were becomes a fact.
 */
bool functions_take_piece(void);
void functions_finish(void);

/* The id of a text that is requested often: most are not hashed again. */
uint32_t functions_name(const char * text);

/* The id of the name of a file, without its folders. */
uint32_t functions_file_name(const char * path);
