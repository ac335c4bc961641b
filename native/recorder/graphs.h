/*
 * The graphs that ggml computes. Each is defined in the log once, and recognised when it is computed again. The thread that
 * starts a graph calls all functions except graphs_find_node, before the graph's workers run.
 */
#pragma once

#include "common/system.h"
#include "recorder/graph.h"

/* Call it when the registry knows the layout of tensors. */
void graphs_init(void);

/*
 * The graph that is about to be computed: a known one, or a new one, defined now. NULL if it cannot be read. The nodes of a `scheduled`
 * graph do not change until a scheduler reports that graphs may change; other graphs may change at any time. Its memory is not used for another
 * graph until graphs_leave.
 */
struct graph * graphs_get(void * cgraph, uint32_t backend, bool scheduled);
void graphs_leave(struct graph * graph);
void graphs_may_change(void);

/* Memory is reserved for a graph like those that will be computed: takes the log's space for their definitions, before a call waits for it. */
void graphs_expect(void * cgraph);

/* A node was started that is no link of its graph: this ggml passes the hook for views, as versions up to 2025 do. */
void graphs_note_view(const void * tensor);

bool graphs_has_nodes(void * cgraph);

/* The id of the node of a graph with a single node; else 0. */
uint32_t graphs_only_node(void * cgraph);

/* The id of a node that is computed and recorded; else 0. */
uint32_t graphs_node(const void * node);

/* The graph that is computed now and has the node `tensor`, and the node's index; NULL if there is none. No lock: called by workers. */
struct graph * graphs_find_node(const void * tensor, int * index);
