/* Graph runs: one for each backend's split of a scheduled graph, or one for a graph that is computed by itself. */
#pragma once

#include "recorder/frames.h"

struct graph;

/* A graph run, if it has begun; `is_recorded` false: it is not recorded. */
struct run {
    bool is_begun, is_recorded, is_announced, has_operators, has_workers; /* has_workers: operators of the CPU are seen */
    struct graph * graph; /* NULL: not known, or not recorded, see runs_know_graph */
    void * runs_on, * cgraph; /* as given to runs_begin */
    uint32_t backend; /* id of its name */
    uint32_t split;
    uint32_t operators_before;
    uint64_t start;
};

/* A context was created: does what the first graph run would do otherwise, in the time of a call. */
void runs_prepare(int level);

/*
 * `here`: of the hook (frames.h). `outer` keeps the run that this thread is inside of already, until runs_end: a custom operator may compute a
 * graph. `backend` is NULL if ggml is called without one: its CPU code computes the graph.
 */
void runs_begin(struct run * outer, uintptr_t here, void * backend, void * cgraph, int level);

/* A scheduler begins and ends computing the splits of a graph. Returns whether that is one run. */
bool runs_schedule(struct run * outer, uintptr_t here, void * cgraph, int level);
void runs_scheduled(const struct run * outer, bool is_run, uintptr_t here, void * cgraph, int level, int status);

/* The graph run that this thread is inside of; NULL: none. */
const struct run * runs_current(void);

/* Finds the graph of that run, also if the run is not recorded: what is kept of it is used by later runs. */
void runs_know_graph(void);

/*
 * For backends without an operator hook, and only if requested: makes the scheduler compute node by node, and times each node until
 * `synchronize` returns. Such a run is slower than one without the recorder; the log contains a note about it.
 */
bool runs_synchronise(void);
void runs_synchronised(void * cgraph);

void runs_end(const struct run * outer, uintptr_t here, int status);

/* An eval callback that makes a scheduler compute node by node. */
bool runs_want_every_node(void * tensor, bool ask, void * user);
