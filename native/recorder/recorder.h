/* The recorder inside a traced program: opens one log when ggml is first called, and closes it when the program ends. */
#ifndef GGML2PERFETTO_RECORDER_H
#define GGML2PERFETTO_RECORDER_H

#include "recorder/recording.h"

/*
 * Opens the log, at the first call of a hooked function; `caller` is the address that called it: the ggml that its library
 * is linked to is the one that is recorded. Returns the level in force.
 */
int recorder_begin(const void * caller);

/* The log, opened if need be, also for callers that have nothing to do with ggml; NULL: there is none, or no longer. */
struct ggtrace * recorder_log(void);

/* Nothing is recorded from now on, and no log is opened. Is there a log to be closed? */
bool recorder_end(void);

/* Level in force, the log being opened if need be. */
static inline int recorder_ready(const void * caller) {
    const int level = recording_level();
    return level != LEVEL_AHEAD ? level : recorder_begin(caller);
}

#endif
