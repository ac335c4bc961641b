/* Tables of the recorder that are full: what does not fit into them is counted. losses.c reports it in the log. */
#pragma once

#include "common/system.h"

enum full { FULL_NODES, FULL_FINGERPRINTS, FULL_CONTEXTS, FULL_COMMANDS, FULL_FENCES, FULL_QUEUES, FULL_REFUSALS, FULL_PAGES, FULL_WEIGHTS, FULL_RPC, FULL_TABLES };

extern _Atomic uint32_t full_counts[FULL_TABLES];
/* Since the last report, a count has reached a power of two: few reports, although the process may be killed at any time. */
extern _Atomic bool full_has_much;

/* Something did not fit into this table. Returns NULL. From any thread, under any lock. */
void * full_count(enum full table);
