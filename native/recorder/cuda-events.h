/*
 * Times of CUDA's devices without CUPTI: pairs of events around what a graph run is on its stream, or (GGML2PERFETTO_GPU_EVENTS) around what
 * each of its nodes is there, also in CUDA graphs. So a time is that of a span on a stream, not of a kernel. No function waits for a device.
 */
#pragma once

#include "common/system.h"
#include "recorder/cuda-launched.h"

/* Where a thread launches something: on a stream, in a graph run (its start, and the id of its graph; 0: in none), at a node or not. */
struct cuda_at {
    uint32_t device, queue, graph;
    void * stream;
    uint64_t run;
    bool is_at_node;
};

/* Once, before ggml-cuda, which contains `address`, uses a device. `why`: there is no CUPTI. What is recorded instead is in the log. */
void cuda_events_start(const void * address, const char * why);
bool cuda_events_are_on(void);
bool cuda_events_have_nodes(void);

/*
 * The thread launches something; `id` 0: it captures, or the launch is not recorded. Returns the number of spans that begin; if one is of a
 * node, the caller puts its operator into `*operator`.
 */
uint32_t cuda_events_launch(const struct cuda_at * at, uint32_t id, struct cuda_operator ** operator);

/* The stream is about to wait, or another will wait for it: a span of a node does not contain that, and is in the branch of a captured graph. */
void cuda_events_divide(void * stream);

/* The last node of the operator is known; so is the end of a graph run. */
void cuda_events_node_ends(void);
void cuda_events_run_ends(void);

/* This thread begins or ends to capture; what it captured last became a graph that can be launched; that was destroyed. */
void cuda_events_captures(bool begins, uint32_t device);
void cuda_events_instantiated(const void * exec);
void cuda_events_destroyed(const void * exec);

/* Around the launch of such a graph; `id` 0: it is not recorded. Begin returns the number of its spans. */
uint32_t cuda_events_graph_begin(const struct cuda_at * at, const void * exec, uint32_t id);
void cuda_events_graph_end(const void * exec, void * stream, uint32_t id);

/* In the child of a fork there are no devices; the program ends. */
void cuda_events_forked(void);
void cuda_events_finish(void);
