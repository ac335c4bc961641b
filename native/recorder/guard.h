/*
 * Keeps the cost of recording below a given percentage: one of every eight decode calls is not recorded, and if the recorded
 * calls take too much longer, less is recorded from then on.
 */
#pragma once

#include "common/system.h"

/* 0: no guard. */
void guard_set(uint32_t percent);

/* A call of llama_decode with that many tokens begins. true: it is not recorded, for comparison. */
bool guard_begin(uint32_t tokens);

/* The call of this thread was left by an exception or longjmp: its time is unknown. */
void guard_leave(void);

/* The call of this thread has ended. */
void guard_end(uint64_t start, uint64_t end);
