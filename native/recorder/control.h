/* Which calls, and which of their operators, are recorded: controlled by the environment, the program itself, or a signal. */
#pragma once

#include "common/system.h"

/* Reads the environment; call it first. `fact` is called with each restriction that applies. */
void control_read(void (*fact)(const char * key, const char * value));

/* Are the events of this call recorded? Calls count from 0; GGTRACE_NO_CALL: warm-ups, and events outside of calls. */
bool control_takes(uint32_t call);

/* Are events after this call recorded, and before the next one? GGTRACE_NO_CALL: before the first call. */
bool control_takes_after(uint32_t call);

/* Are operators of this op recorded? */
bool control_takes_op(const char * op);
bool control_takes_all_ops(void);

/* The size limit of the log in bytes; 0: none. */
uint64_t control_bytes_max(void);

/* From which duration on calls are kept; 0: all are. */
uint64_t control_slow_ns(void);

/* Does the log keep its last part when it reaches the size limit? */
bool control_keeps_last(void);
