/* What registry.c and graphs.c share. Callers hold the lock. */
#pragma once

#include "common/system.h"
#include "common/table.h"
#include "recorder/registry.h"

struct registry {
    pthread_mutex_t lock;
    struct ggtrace * log;
    const struct ggml_api * api;
    const struct tensor_layout * layout;
    bool gave_up;
    /* Number of buffers freed so far: objects met after a free are new, even with the address and contents of an old one. */
    uint64_t freed;
    uint32_t walk; /* number of the graph that is looked at for the first time, see registry_begin_walk; 0: none */
    struct table graphs; /* that the log defines, since the last free */
};

extern HIDDEN struct registry registry;

/* The id of a tensor, defined now if necessary. */
uint32_t registry_tensor_locked(const void * tensor);

/* The same for a node whose fingerprint was computed just now: its `whole`. */
uint32_t registry_node_locked(const void * node, uint64_t fingerprint);

/* The number of bytes of a tensor's struct that identify it: everything up to the end of its name. */
size_t registry_compared_bytes(void);

/* What a log contains of a tensor, and the ids of its sources. */
struct description {
    struct ggtrace_tensor definition;
    uint32_t sources[TENSOR_SOURCES_MAX];
};

/* Fills in what needs look-ups: not id, sizes and addresses. */
void registry_describe(const void * tensor, struct description * description);

/* Fills in the rest, and writes the definition to the log. */
void registry_define(uint32_t id, const void * tensor, struct description * description);

/* The next function will be called for this fingerprint. */
void registry_expect_tensor(uint64_t fingerprint);

/* The id of the tensor with this fingerprint (0 if memory is short), and whether it must be defined now. */
uint32_t registry_new_tensor(uint64_t fingerprint, bool * is_new);

/* The buffer of a tensor, or of the tensor that it is a view of. */
void * registry_own_buffer(const void * tensor);

/* `own`: hash of a tensor's struct; `whole`: that and its sources, when its graph was recorded. */
struct fingerprint {
    uint64_t own, whole;
};

/* The key of a tensor and its sources: a change of any of them makes another tensor. For nodes, after they were recorded. */
uint64_t registry_fingerprint(const void * tensor);
struct fingerprint registry_fingerprint_node(const void * node);
uint64_t registry_own_fingerprint(const void * tensor);

/*
 * Until registry_end_walk, no tensor changes: each is hashed and looked up once, however many nodes have it as their source. That is
 * most of the work for a new graph.
 */
void registry_begin_walk(void);
void registry_end_walk(void);

/* Sets the fingerprint of a node. Set again when a graph is computed again, because another graph may have used the same memory. */
void registry_set_fingerprint(const void * node, struct fingerprint fingerprint);

/* Where the registry keeps it, until a buffer is freed; NULL if memory is short. */
struct fingerprint * registry_fingerprint_of(const void * node);

/* A source of a node; NULL if there is none, or if the node is its own source (ggml_cast). */
const void * registry_source(const void * node, int i);
