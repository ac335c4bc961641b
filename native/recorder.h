/*
 * The recorder inside a traced program: one log, opened when ggml is first called, and how much is recorded.
 */
#ifndef GGML2PERFETTO_RECORDER_H
#define GGML2PERFETTO_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ggtrace.h"
#include "layout.h"

/* What is recorded: each level holds the ones before it. */
enum recorder_level { LEVEL_AHEAD = -1, LEVEL_OFF, LEVEL_TOKEN, LEVEL_GRAPH, LEVEL_OPERATOR };

/* The level in force: LEVEL_AHEAD before the log is opened; LEVEL_OFF in a forked child, after the end, and on failure. */
extern _Atomic int recorder_level;

/*
 * Opens the log, at the first call of a hooked function; `caller` is the address that called it, and tells which
 * library's ggml this is. Returns the level in force.
 */
int recorder_begin(const void * caller);

/* The log, opened if need be, also by who has nothing to do with ggml; NULL: there is none, or no longer. */
struct ggtrace * recorder_log(void);

/* Level in force, the log being opened if need be. */
static inline int recorder_ready(const void * caller) {
    const int level = atomic_load_explicit(&recorder_level, memory_order_relaxed);
    return level != LEVEL_AHEAD ? level : recorder_begin(caller);
}

/* False once it is clear that nothing will be recorded. */
static inline bool recorder_may_record(void) {
    return atomic_load_explicit(&recorder_level, memory_order_relaxed) != LEVEL_OFF;
}

/* Are nodes of backends without an operator hook to be timed one by one? */
bool recorder_synchronises(void);

/* Where the fields of this ggml's tensors lie. */
const struct tensor_layout * recorder_layout(void);

/* This thread's writer; NULL when there is none to be had. */
struct ggtrace_writer * recorder_writer(uint32_t worker);

/*
 * The function `name` that a program would have called without us, seen from `caller`. Backends are loaded with
 * RTLD_LOCAL, which RTLD_NEXT does not see: the caller's own library is asked.
 */
void * recorder_resolve(const char * name, const void * caller);

#endif
