/* What registry.c and graphs.c share. Functions here want the lock to be held. */
#ifndef GGML2PERFETTO_REGISTRY_INSIDE_H
#define GGML2PERFETTO_REGISTRY_INSIDE_H

#include <pthread.h>
#include <stdbool.h>

#include "recorder/registry.h"

struct registry {
    pthread_mutex_t lock;
    struct ggtrace * log;
    const struct ggml_api * api;
    const struct tensor_layout * layout;
    bool gave_up;
    /* Buffers freed so far: what is met after that is new, though it may lie where something lay and look the same. */
    uint64_t freed;
};

extern struct registry registry;

/* The id of a tensor, defined now if need be. */
uint32_t registry_tensor_locked(const void * tensor);

/* How much of a tensor's struct makes it what it is: all up to its name, and that. */
size_t registry_told_bytes(void);

/* A tensor's struct as a key, and that together with its sources' as they were when its graph was met. */
struct fingerprint {
    uint64_t own, whole;
};

/* All of that, and of its sources, as a key: whatever differs makes another tensor. Of nodes, once they were met so. */
uint64_t registry_fingerprint(const void * tensor);
uint64_t registry_fingerprint_node(const void * node);

/* What a node was met as; a graph that is computed again sets it, because another graph may have used the same memory. */
struct fingerprint registry_get_fingerprint(const void * node);
void registry_set_fingerprint(const void * node, struct fingerprint fingerprint);

/* ggml skips nodes that need no computing (ggml-cpu.c: ggml_op_is_empty, the compute flag). */
bool registry_is_computed(const void * node);

#endif
