/* The recorder inside a program: opens a log when ggml is first called, and closes it when the program ends. */
#pragma once

#include "common/system.h"
#include "recorder/recording.h"

/*
 * Opens the log, at the first call of a hooked function. `caller` is the address of that call: the recorder uses the ggml that the
 * caller's library is linked to. Returns the current level.
 */
int recorder_begin(const void * caller);

/* The log, opened if necessary, also for callers outside of ggml; NULL: there is none, or it was closed. */
struct ggtrace * recorder_log(void);

/* ggml was found in a library that the program has loaded: writes what program_facts reports, if the log is open already. */
void recorder_note_program(void);

/* Ends the recording: nothing is recorded after this, and no log is opened. Returns whether there is a log to close. */
bool recorder_end(void);

/* The current level; opens the log if necessary. */
static inline int recorder_ready(const void * caller) {
    const int level = recording_level();
    return level != LEVEL_AHEAD ? level : recorder_begin(caller);
}
