/*
 * What the recorder knows of ggml's tensors, graphs, buffers and mapped files: each is defined in the log once, when it
 * is first met. Everything here is called by the thread that starts a graph, before the graph's workers run, and takes
 * one lock; only graph_find and the graphs themselves are read by workers.
 */
#ifndef GGML2PERFETTO_REGISTRY_H
#define GGML2PERFETTO_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ggtrace.h"
#include "layout.h"

/* A graph as it was met: its nodes, their ids, and which of them are computed. */
struct graph {
    uint32_t id;
    uint32_t backend; /* name */
    int node_count;
    uint64_t fingerprint;
    uint64_t freed; /* buffers, before it was met */
    const void ** nodes;
    /* 0: operators of this kind are not recorded. */
    uint32_t * ids;
    /* Index of the first node that is computed; for every node, of the next one. node_count = none. */
    int first;
    int * next;
    /* Is the node computed in one go with the next one (RMS_NORM with the MUL behind it) where ggml can? */
    uint8_t * fuses_with_next;
    /* Id of the tensor that holds the expert ids of a MUL_MAT_ID, where it is the first to use them; else 0. */
    uint32_t * experts;
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
    _Atomic uint64_t begun;
    /* Barriers that its caller saw since it started its last operator; all workers see as many. */
    _Atomic uint32_t last_barriers;
    struct graph * next_known;
};

/* Where definitions go; then, for all but names, what ggml's things look like: `layout` and `api` must outlive it. */
void registry_open(struct ggtrace * log);
void registry_init(const struct ggml_api * api, const struct tensor_layout * layout);

/* The id of a text; 0 for none. */
uint32_t registry_name(const char * text);

/* A new id for a text, which is defined under it; for who remembers it. */
uint32_t registry_new_name(const char * text, size_t bytes);

/* What ggml calls the op of a node. */
const char * registry_op_name(const void * node);

/*
 * The graph that is about to be computed: met before, or defined now. NULL when it cannot be told. Is it `scheduled`, its
 * nodes are as they were until a scheduler says that graphs may change; other graphs may change at any time.
 */
struct graph * registry_graph(void * cgraph, uint32_t backend, bool scheduled);
void registry_graphs_may_change(void);

/* The id of a tensor, defined now if need be. */
uint32_t registry_tensor(const void * tensor);

/* The id of the node of a graph that has but one; else 0. */
uint32_t registry_only_node(void * cgraph);

/* The id of the buffer that a tensor lies in, defined now if need be; 0 for none. */
uint32_t registry_tensor_buffer(const void * tensor);

/* Size of a tensor's data in bytes. */
uint64_t registry_tensor_bytes(const void * tensor);

/* `data` are being copied into the whole of `tensor`, perhaps from a mapped file. Works before registry_init, too. */
void registry_note_origin(const void * tensor, const void * data, uint64_t bytes);

/* What ggml calls a backend, and the id of that. */
const char * registry_backend_title(void * backend);
uint32_t registry_backend_name(void * backend);

/* This ggml's tensors cannot be understood: tensors and graphs are not looked at any more. */
void registry_give_up(void);

/* A buffer was just allocated. Works before registry_init, too. */
void registry_note_allocation(const void * buffer, uint64_t time);

/* The id of a buffer that is about to be freed, and forgets it; 0 if it was never met. */
uint32_t registry_buffer_forget(void * buffer);

/* The latest graph that `tensor` is a node of, and its index; NULL if there is none. No lock: for workers. */
struct graph * registry_find_node(const void * tensor, int * index);

#endif
