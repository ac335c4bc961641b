/* Operators per worker, reconstructed from two hooks: the start of a node, and barriers. */
#ifndef GGML2PERFETTO_OPERATORS_H
#define GGML2PERFETTO_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

struct graph;

/* A worker starts to compute a node; the first fields of `params` are `int ith, nth`. */
void operators_start(const int * params, const void * tensor);

/* A worker reaches a barrier, where `wait` waits. */
void operators_barrier(void (*wait)(void *), void * threadpool);

/* How many operators this thread has started. */
uint32_t operators_seen(void);

/* Returns and resets the number of nodes and of barriers that this thread's hooks saw outside of known graphs. */
void operators_outside_graphs(uint32_t * starts, uint32_t * barriers);
void operators_reset_outside_graphs(void);

/* Barriers are not seen: from now on, an operator ends when the next one of its thread starts. */
void operators_infer_ends(void);

/* The thread that runs a graph reports its start and its end. */
void operators_graph_begin(struct graph * graph, uint64_t now);
void operators_graph_end(struct graph * graph, uint64_t now);

/* For the child of a fork, which has no other worker. */
void operators_forked(void);

/* When the program ends: writes what its workers hold back. */
void operators_finish(void);

#endif
