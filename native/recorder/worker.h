/* A thread of ggml's pool, and the data it holds back until it is known which barrier ended which node. */
#pragma once

#include "common/system.h"
#include "common/clock.h"
#include "recorder/counters.h"
#include "recorder/graphs.h"

struct ggtrace_writer;

/*
 * What a thread's hooks saw since its last operator started. A node ends at a barrier, but ops contain barriers too, and
 * fused nodes pass no start hook. When the next node starts, the number of graph steps in between shows which barrier ended
 * which step. So the last barriers are kept.
 */
enum { BARRIERS_KEPT = 8, NO_WORKER = -1 };

struct barrier {
    uint64_t enter;
    uint64_t leave;
};

struct worker {
    /* What the short paths of operators.h use, close together. */

    /* Do they apply: in a node of a graph, with barriers, without counters and NVTX ranges? */
    bool is_plain;
    bool is_first; /* worker 0 */
    bool is_alone; /* a single worker does not wait */
    uint32_t edges; /* the graph's `edges` when this thread joined it */
    struct graph * graph;
    const uint32_t * ids; /* of its nodes in this run */
    /* Index of the node that is being computed; -1 before the first. */
    int node;
    uint32_t id; /* of its tensor in this run: the next run of the graph may have another one */
    /* Number of barriers since `start`; the last BARRIERS_KEPT of them are stored at their index modulo that. */
    uint32_t barrier_count;
    uint64_t start;
    uint64_t waits; /* total wait at all of them */
    struct clock_scale scale;       /* of this graph run */
    struct ggtrace_writer * writer; /* while in a graph */
    void (*wait)(void * threadpool); /* the real ggml_barrier */
    uint32_t seen;
    struct barrier barriers[BARRIERS_KEPT];

    int ith;
    int nth;
    uint64_t left;  /* when the last barrier of the previous graph opened */
    bool is_borrowed; /* the state belongs to another thread, whose writer must be used */
    struct worker * next;
    /* Is an NVTX range open? The last range of a graph ends at its last barrier: the number of barriers before that one. */
    bool is_announced;
    uint32_t barriers_left;
    /* Counts at the start of the operator, at each barrier, and after each barrier, as far as they were read. */
    bool has_start, reads_leave;
    uint32_t leaves; /* one bit per kept barrier */
    struct counts at_start, at_enter[BARRIERS_KEPT], at_leave[BARRIERS_KEPT];
} __attribute__((aligned(64)));

/* The state of this thread. */
extern __thread struct worker this_worker __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Barriers are not seen: an operator lasts until its thread's next one starts. */
extern HIDDEN _Atomic bool worker_ends_are_open;
/* The same of a single worker: it passes barriers without calling what is seen of them. Decided before the first graph. */
extern HIDDEN bool worker_alone_is_open;

static inline const struct barrier * kept(uint32_t index) {
    return &this_worker.barriers[index % BARRIERS_KEPT];
}

/* A node starts. */
static inline void worker_begin_node(int index, uint64_t now) {
    this_worker.seen++;
    this_worker.node = index;
    this_worker.id = this_worker.ids[index];
    this_worker.start = now;
    this_worker.barrier_count = 0;
    this_worker.waits = 0;
}

/* Adds a barrier that this thread has passed; returns its slot. */
static inline uint32_t worker_add_barrier(uint64_t enter, uint64_t leave) {
    const uint32_t count = this_worker.barrier_count, slot = count % BARRIERS_KEPT;
    this_worker.barriers[slot] = (struct barrier){enter, leave};
    this_worker.waits += leave - enter;
    __atomic_store_n(&this_worker.barrier_count, count + 1, __ATOMIC_RELEASE);
    return slot;
}

/* When this thread left the graph that has ended: at the last barrier it saw. The graph may be running again. */
uint64_t worker_left_at(void);

/* Writes the current operator, and the fused steps up to node `next`, now that their barriers are known. */
void worker_finish(int next, uint64_t now);

/* This thread is finished with its graph. */
void worker_leave_graph(uint64_t now);

/* Begins and ends the NVTX range of a node. */
void worker_announce(const struct graph * graph, int index, const void * tensor);
void worker_end_announced(void);
