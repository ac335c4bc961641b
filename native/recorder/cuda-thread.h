/* The thread that asks for what CUDA's devices have completed, by CUPTI or by events, so that no thread of the program waits for it. */
#pragma once

#include "common/system.h"

/* Calls `ask` ten times a second, and once more at the end of the program, then with `is_last`. False: no thread can be started. */
bool cuda_thread_start(void (*ask)(bool is_last));

/* It asks at once. */
void cuda_thread_wake(void);

/* The last call of `ask` is made. False: it did not return within a second, as with a stuck device. */
bool cuda_thread_finish(void);
