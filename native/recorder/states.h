/*
 * When the program's threads ran, waited for a CPU and were blocked: the kernel tells, by one software event per CPU
 * that an ordinary user may open.
 */
#ifndef GGML2PERFETTO_STATES_H
#define GGML2PERFETTO_STATES_H

#include "log/ggtrace.h"

/* Asks the kernel to tell. Before the program has threads: theirs are told only if they come later. */
void states_prepare(void);

/* Writes them to the log from now on. Returns NULL, or why it cannot be, in words. */
const char * states_start(struct ggtrace * log);

/* Writes what came until now, and ends. */
void states_stop(void);

/* In the child of a fork, which is not told of. */
void states_forked(void);

#endif
