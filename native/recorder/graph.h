/* A graph that ggml computes, as the recorder knows it. graphs.c makes and changes them. */
#pragma once

#include "common/system.h"

struct fingerprint;
struct changing;

/* What a worker looks at when a node starts. In few bytes, because it reads them once per call, when they are no longer in a cache. */
struct graph_node {
    const void * tensor;
    /* Index of the next node that is computed; node_count = none. */
    int next;
    /* Does ggml compute the node in one step with the next one (RMS_NORM with the MUL after it) if it can? */
    bool fuses_with_next;
    /* Is it the first MUL_MAT_ID that uses its expert ids? */
    bool chooses_experts;
};

/* A graph as it was when it was recorded. First what workers look at. */
struct graph {
    struct graph_node * nodes; /* followed by one entry without a tensor */
    /*
     * One for each node; 0: its operators are not recorded. When nodes change, `spare_ids` is filled and takes its place: a worker may not
     * have written its last operator of the run before.
     */
    uint32_t * ids, * spare_ids;
    /* Of a node that chooses experts: the id of the tensor with their ids; else 0. */
    uint32_t * experts;
    int node_count;
    /* Index of the first node that is computed; node_count = none. */
    int first;
    /* Odd while the graph is computed: counts the begin and the end of each graph run. */
    _Atomic uint32_t edges;
    /* The call for which the graph is computed now. */
    _Atomic uint32_t call;
    _Atomic uint64_t begun, ended;
    /* Number of barriers that the calling thread passed since its last operator started; equal on all workers. */
    _Atomic uint32_t last_barriers;

    /* The thread that computes it, and workers that have not left it. Without any, and when a buffer was freed, its memory is used again. */
    _Atomic uint32_t users;
    int capacity, input_capacity; /* of the arrays with one entry per node, and of those of inputs */

    uint32_t id;
    uint32_t backend; /* id of its name */
    uint64_t fingerprint;
    uint64_t freed; /* number of buffers freed before it was recorded */
    /* A copy of the nodes, to recognise the graph when it is computed again. */
    char * snapshot;
    struct fingerprint * fingerprints; /* one per node */
    /* Its sources that are neither nodes nor weights, and a copy of them; input_count INPUTS_UNKNOWN: they are not watched. */
    const void ** inputs;
    char * inputs_snapshot;
    int input_count;
    struct changing ** changing; /* of nodes that have changed, for descriptions.c */
    bool has_views; /* nodes that are views have links, too */
    /* Its last address in ggml, and the generation of scheduled graphs at that time. */
    const void * cgraph;
    uint32_t generation;
    struct graph * next_known;
};
