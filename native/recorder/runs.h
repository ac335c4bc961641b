/* Runs of graphs: one for each backend's split of a scheduled graph, or one for a graph that is computed on its own. */
#ifndef GGML2PERFETTO_RUNS_H
#define GGML2PERFETTO_RUNS_H

#include <stdbool.h>
#include <stdint.h>

struct graph;

/* A run that was begun, for runs_end; not recorded where `is_recorded` is false. */
struct run {
    bool is_recorded, is_announced, has_operators;
    struct graph * graph;
    uint32_t backend; /* name */
    uint32_t split;
    uint32_t operators_before;
    uint64_t start;
};

/* `backend` is NULL where ggml is called without one: its CPU code computes the graph. */
void runs_begin(struct run * run, void * backend, void * cgraph, int level);

/* A scheduler begins to compute the splits of a graph, and is done with them. */
void runs_schedule(struct run * run, void * cgraph, int level);
void runs_scheduled(const struct run * run, void * cgraph, int level, int status);

/* Is this thread inside a run? */
bool runs_inside(void);

/*
 * Where a backend has no operator hook, and only if asked for: the scheduler is made to compute node by node, and each node is timed
 * until its backend is done, which `synchronize` waits for. Such a run is slower than one without us; the log says so.
 */
bool runs_synchronise(const struct run * run);
void runs_synchronised(const struct run * run, void * cgraph);

void runs_end(const struct run * run, int status);

/* An eval callback that makes a scheduler compute node by node. */
bool runs_want_every_node(void * tensor, bool ask, void * user);

#endif
