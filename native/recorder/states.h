/*
 * The states of the program's threads: running, waiting for a CPU, blocked. The kernel reports them through one software
 * event per CPU, which an ordinary user may open.
 */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

/*
 * Opens the events. Must run before the program creates threads: only threads created later are included. A process that may only
 * start the program that computes (`may_wrap`) takes less of the user's memory for events, so that its children have enough.
 */
void states_prepare(bool may_wrap);

/* Writes states to the log from now on. Returns NULL, or the reason why it is not possible, in words. */
const char * states_start(struct ggtrace * log);

/* Writes the remaining states, and ends. */
void states_stop(void);

/* For the child of a fork, whose states are not recorded. */
void states_forked(void);
