/* NUMA policies of the kernel, of threads and of memory. */
#pragma once

#include "common/system.h"

/* Of this thread: `interleave:0-1`, as /proc/self/numa_maps has it; 0: the default one, one node, or not known. A system call. */
uint32_t numa_policy_of_thread(void);

/* Of memory, at 64 addresses: each different one once, separated by commas. One thread at a time. */
uint32_t numa_policies_of(uint64_t base, uint64_t size);
