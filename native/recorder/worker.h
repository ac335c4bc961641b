/* A thread of ggml's pool, and what it holds back until it is known which barrier ended which node. */
#ifndef GGML2PERFETTO_WORKER_H
#define GGML2PERFETTO_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/counters.h"
#include "recorder/graphs.h"

struct ggtrace_writer;

/*
 * What a thread's hooks saw since its last operator started. A node ends at a barrier, but ops have barriers inside, too,
 * and fused nodes pass no start hook: which barrier ended what is known when the next node starts, from the number of
 * steps of the graph in between. So the last barriers are kept.
 */
enum { BARRIERS_KEPT = 8, NO_WORKER = -1 };

struct barrier {
    uint64_t enter;
    uint64_t leave;
};

struct worker {
    uint32_t seen;
    int ith;
    int nth;
    struct graph * graph;
    uint32_t edges; /* the graph's, when it was met */
    uint64_t left;  /* when the last barrier of the graph before opened */
    /* Index of the node being computed; -1 before the first. */
    int node;
    uint64_t start;
    /* All barriers since `start`; the last BARRIERS_KEPT of them at index modulo that. */
    uint32_t barrier_count;
    uint64_t waits; /* at all of them */
    struct ggtrace_writer * writer;
    bool is_borrowed; /* the state is another thread's, and its writer is to be used */
    struct worker * next;
    /* Announced as an NVTX range that is open; the graph's last one ends at its last barrier: how many there are before that. */
    bool is_announced;
    uint32_t barriers_left;
    struct barrier barriers[BARRIERS_KEPT];
    /* What was counted when the operator started, when barriers were reached, and when they opened, as far as it was read. */
    bool has_start, reads_leave;
    uint32_t leaves; /* a bit for each kept barrier */
    struct counts at_start, at_enter[BARRIERS_KEPT], at_leave[BARRIERS_KEPT];
};

/* Of this thread. */
extern __thread struct worker this_worker __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Barriers are not seen: an operator lasts until the thread's next one starts. */
extern _Atomic bool worker_ends_are_open;

static inline const struct barrier * kept(uint32_t index) {
    return &this_worker.barriers[index % BARRIERS_KEPT];
}

/* When a graph ended that this thread left: at its last barrier, as far as it saw it. It may be under way again. */
uint64_t worker_left_at(void);

/* Writes the operator that is under way, and the fused steps up to node `next`, now that their barriers are known. */
void worker_finish(int next, uint64_t now);

/* The thread has nothing more to do with its graph. */
void worker_leave_graph(uint64_t now);

/* The NVTX range of a node that starts; its end. */
void worker_announce(const struct graph * graph, int index, const void * tensor);
void worker_end_announced(void);

#endif
