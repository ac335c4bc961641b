/* Nodes that change with each call, in a graph that is built again: defines them without looking up what stays equal. Under the registry's lock. */
#pragma once

#include "common/system.h"

struct graph;

/*
 * Sets the fingerprints of these nodes of `graph`, in order, and their `ids`. The nodes have the sources that they had before. `others_differ`:
 * sources that are not nodes may have changed, too.
 */
void descriptions_renew(struct graph * graph, const int indexes[], int count, bool others_differ, uint32_t * ids);

/* The memory of `graph` is used for another graph. */
void descriptions_forget(struct graph * graph);
