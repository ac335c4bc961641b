/*
 * Graphs that are built for each call, at the same addresses: finds the nodes that differ from the call before, such as views of the KV
 * cache. Callers hold the registry's lock.
 */
#pragma once

#include "common/system.h"

struct graph;

enum { CHANGED_MAX = 1024, INPUTS_UNKNOWN = -1 };

/* Finds the inputs of a new graph, and the KV cache. */
void changes_prepare(struct graph * graph);

/*
 * The indexes of the nodes of `graph` that have changed, or one of their sources, in order: at most `most` of them (CHANGED_MAX at most).
 * -1: there are more, `cgraph` is another graph, or the graph cannot be compared. `inputs_differ`: has an input changed?
 */
int changes_find(const struct graph * graph, void * cgraph, int indexes[], int most, bool * inputs_differ);

/* The graph is from now on as it is now: its inputs, and these nodes. */
void changes_accept(struct graph * graph, const int indexes[], int count);
