/*
 * What a program launches on CUDA's devices, for which operators, and when they computed it. A launch is made on the thread that computes
 * the graph; the device's times come later, from CUPTI, on a thread of the recorder. All functions are thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "log/ggtrace-gpu.h"

/* The functions that launch: `buffers` of a GPU_SUBMISSION. */
enum cuda_function { CUDA_LAUNCH_KERNEL, CUDA_LAUNCH_EX, CUDA_LAUNCH_COOPERATIVE, CUDA_MEMCPY, CUDA_MEMCPY_2D, CUDA_MEMCPY_PEER, CUDA_MEMSET, CUDA_GRAPH_LAUNCH, CUDA_GEMM };

/* Operators of a launch: from the loop over the nodes of a graph; 0: of none. */
struct cuda_operator {
    uint32_t tensor, last, graph, part; /* part: n > 0: the n-th further launch for it */
};

/* A launch that is made now; `id` 0: it is not recorded. */
struct cuda_launch {
    uint32_t id;
    enum cuda_function function;
    void * stream;
    uint64_t start;
};

void cuda_launch_begin(struct cuda_launch * launch, enum cuda_function function, void * stream);
void cuda_launch_end(const struct cuda_launch * launch, uint32_t works, bool is_done);

/* The loop over a graph's nodes arrives at one; the graph run of this thread ends, or what it captured does: its last node is known. */
void cuda_node(const void * tensor);
void cuda_settle(void);

/* Between the begin and the end of a capture, this thread's launches become nodes of a graph. */
void cuda_captures(bool begins);

/* A node was made by a launch of this thread; it was cloned. Ids of CUPTI. */
void cuda_node_created(uint64_t node);
void cuda_node_cloned(uint64_t original, uint64_t node);

/*
 * What this thread captured last was made a graph that can be launched, or gave one its parameters, node by node. And how many nodes such a
 * graph has; 1: unknown.
 */
void cuda_graph_instantiated(const void * exec);
void cuda_graph_updated(const void * exec);
uint32_t cuda_graph_works(const void * exec);

/* The ids of the operators of a node of a graph; false: unknown. */
bool cuda_node_operator(uint64_t node, struct cuda_operator * operator);

/* A launch by its id: its call and its operators. False: it is not known any more, or its last operator is not known yet (`is_open`). */
struct cuda_launched {
    uint32_t call, graph;
    struct cuda_operator operator;
};
bool cuda_launched(uint32_t id, struct cuda_launched * launched, bool * is_open);

/* The queue of a stream, defined in the log now if necessary; `number`: CUPTI's of the stream. */
uint32_t cuda_queue(uint32_t device, uint32_t number);

/* This thread's current device; the name of a device. */
void cuda_set_device(int device);
uint32_t cuda_device(void);
void cuda_name_device(uint32_t device, const char * name);
