/*
 * The graphs that ggml computes: each is defined in the log once, and recognised when it comes again. All but
 * graphs_find_node is called by the thread that starts a graph, before the graph's workers run.
 */
#ifndef GGML2PERFETTO_GRAPHS_H
#define GGML2PERFETTO_GRAPHS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fingerprint;

/* Once the registry knows what tensors look like. */
void graphs_init(void);

/* What a worker looks at when it meets a node: side by side, as memory is slow and a worker comes by once a token. */
struct graph_node {
    const void * tensor;
    /* 0: operators of this kind are not recorded. */
    uint32_t id;
    /* Index of the next node that is computed; node_count = none. */
    int next;
    /* Id of the tensor that holds the expert ids of a MUL_MAT_ID, where it is the first to use them; else 0. */
    uint32_t experts;
    /* Is the node computed in one go with the next one (RMS_NORM with the MUL behind it) where ggml can? */
    bool fuses_with_next;
};

/* A graph as it was met. */
struct graph {
    uint32_t id;
    uint32_t backend; /* name */
    int node_count;
    uint64_t fingerprint;
    uint64_t freed; /* buffers, before it was met */
    struct graph_node * nodes; /* and one behind them, of no tensor */
    /* Index of the first node that is computed. node_count = none. */
    int first;
    /* The nodes as they were, one behind the other: a graph that comes again is recognised by comparing. */
    char * snapshot;
    struct fingerprint * fingerprints; /* of the nodes */
    /* Where ggml last had it, and in which generation of scheduled graphs. */
    const void * cgraph;
    uint32_t generation;
    /* The call that the graph is computed for now. */
    _Atomic uint32_t call;
    /* Odd while the graph is computed: counts where that began and where it ended. */
    _Atomic uint32_t edges;
    _Atomic uint64_t begun, ended;
    /* Barriers that its caller saw since it started its last operator; all workers see as many. */
    _Atomic uint32_t last_barriers;
    struct graph * next_known;
};

/*
 * The graph that is about to be computed: met before, or defined now. NULL when it cannot be told. Is it `scheduled`, its
 * nodes are as they were until a scheduler says that graphs may change; other graphs may change at any time.
 */
struct graph * graphs_get(void * cgraph, uint32_t backend, bool scheduled);
void graphs_may_change(void);

bool graphs_has_nodes(void * cgraph);

/* The id of the node of a graph that has but one; else 0. */
uint32_t graphs_only_node(void * cgraph);

/* The id of a node that is computed and to be recorded; else 0. */
uint32_t graphs_node(const void * node);

/* The latest graph that `tensor` is a node of, and its index; NULL if there is none. No lock: for workers. */
struct graph * graphs_find_node(const void * tensor, int * index);

#endif
