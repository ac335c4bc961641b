/* Which calls, and which of their operators, are recorded: as the environment says, and as the program or a signal does. */
#ifndef GGML2PERFETTO_CONTROL_H
#define GGML2PERFETTO_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the environment; before any of the others. `tell` is called with each restriction that is in force. */
void control_read(void (*tell)(const char * key, const char * value));

/* Is what happens in this call to be recorded? Calls count from 0; warm-ups and what is no call: GGTRACE_NO_CALL. */
bool control_takes(uint32_t call);

/* Are operators of this kind to be recorded? */
bool control_takes_op(const char * op);

/* The size of the log at most, in bytes; 0: any. */
uint64_t control_bytes_max(void);

/* Is it the last part of the log that is to be kept where it would be larger? */
bool control_keeps_last(void);

#endif
