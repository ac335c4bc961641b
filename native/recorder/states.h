/*
 * The states of the program's threads: running, waiting for a CPU, blocked. The kernel reports them through one software
 * event per CPU, which an ordinary user may open.
 */
#ifndef GGML2PERFETTO_STATES_H
#define GGML2PERFETTO_STATES_H

#include "log/ggtrace.h"

/* Opens the events. Must run before the program creates threads: only threads created later are included. */
void states_prepare(void);

/* Writes states to the log from now on. Returns NULL, or the reason why it is not possible, in words. */
const char * states_start(struct ggtrace * log);

/* Writes the remaining states, and ends. */
void states_stop(void);

/* For the child of a fork, whose states are not recorded. */
void states_forked(void);

#endif
