/*
 * What a program launches on CUDA's devices, for which operators, and when they computed it. A launch is made on the thread that computes
 * the graph; the device's times come later, from CUPTI, on a thread of the recorder. All functions are thread-safe.
 */
#pragma once

#include "common/system.h"
#include "log/ggtrace-gpu.h"
#include "recorder/cuda-launched.h"

/* A launch that is made now; `id` 0: it is not recorded. */
struct cuda_launch {
    uint32_t id;
    enum cuda_function function;
    void * stream;
    uint64_t start;
    struct cuda_what what;
    const void * exec; /* the graph that is launched */
    uint32_t spans; /* between events, that begin with it */
};

/* Around the function that launches; what another library launches (`is_foreign`) is not recorded. In between, the caller sets `what`, and `exec` of a CUDA_GRAPH_LAUNCH. */
void cuda_launch_begin(struct cuda_launch * launch, enum cuda_function function, void * stream, bool is_foreign);
void cuda_launch_end(const struct cuda_launch * launch, bool is_done);

/* Between these two, too: around the launch of a graph, as events see it. */
void cuda_graph_launch_begin(struct cuda_launch * launch);
void cuda_graph_launch_end(const struct cuda_launch * launch);

/* The loop over a graph's nodes arrives at one; the graph run of this thread ends, or what it captured does: its last node is known. */
void cuda_node(const void * tensor);
void cuda_settle(void);

/* The thread left the graph run by an exception or longjmp. */
void cuda_leave(void);

/* Between the begin and the end of a capture, this thread's launches become nodes of a graph. */
void cuda_captures(bool begins);

/* A node was made by a launch of this thread; it was cloned. Ids of CUPTI. */
void cuda_node_created(uint64_t node);
void cuda_node_cloned(uint64_t original, uint64_t node);

/*
 * What this thread captured last was made a graph that can be launched, or gave one its parameters, node by node.
 */
void cuda_graph_instantiated(const void * exec);
void cuda_graph_updated(const void * exec);

/* The ids of the operators of a node of a graph; false: unknown. */
bool cuda_node_operator(uint64_t node, struct cuda_operator * operator);

/* A launch by its id: its call and its operators. False: it is not known any more, or its last operator is not known yet (`is_open`). */
struct cuda_launched {
    uint32_t call, graph;
    struct cuda_operator operator;
};
bool cuda_launched(uint32_t id, struct cuda_launched * launched, bool * is_open);
