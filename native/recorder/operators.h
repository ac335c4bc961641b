/* Operators per worker, put together from two hooks: the start of a node, and barriers. */
#ifndef GGML2PERFETTO_OPERATORS_H
#define GGML2PERFETTO_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

struct graph;

/* A worker starts to compute a node; `params` begins with `int ith, nth`. */
void operators_start(const int * params, const void * tensor);

/* A worker is at a barrier, and waits there by `wait`. */
void operators_barrier(void (*wait)(void *), void * threadpool);

/* How many operators this thread has started. */
uint32_t operators_seen(void);

/* What this thread's hooks saw outside of graphs that are known: nodes that were started, barriers; and forgets that. */
void operators_strangers(uint32_t * starts, uint32_t * barriers);
void operators_forget_strangers(void);

/* Barriers are not seen: from now on, an operator ends where its thread's next one starts. */
void operators_infer_ends(void);

/* The thread that runs a graph says when it began and that it is over. */
void operators_graph_begin(struct graph * graph, uint64_t now);
void operators_graph_end(struct graph * graph, uint64_t now);

/* This is the child of a fork: no other worker is here. */
void operators_forked(void);

/* The program ends: what its workers hold back is written. */
void operators_finish(void);

#endif
