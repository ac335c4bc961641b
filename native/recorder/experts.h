/* Records which experts the router chose. */
#pragma once

#include "common/system.h"

struct graph;

/* Records the expert ids for node `index`, a MUL_MAT_ID about to run: for every token of the batch, with any k. */
void experts_record(const struct graph * graph, int index, uint64_t now);
