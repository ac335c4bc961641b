/* Operators per worker, reconstructed from two hooks: the start of a node, and barriers. */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"
#include "recorder/worker.h"

/*
 * A worker starts to compute a node; the first fields of `params` are `int ith, nth`. Or it reaches a barrier, where `wait` waits.
 * For what the short paths below do not handle.
 */
void operators_start(const int * params, const void * tensor);
void operators_barrier(void (*wait)(void *), void * threadpool);

/* The node that starts now chooses experts. */
void operators_choose_experts(int index);

/*
 * The common case: the node that follows the current one, or a fused pair behind it, each of which waited at a barrier. What delays a
 * worker here delays all of them.
 */
static inline bool operators_start_plain(const void * tensor) {
    const struct worker * worker = &this_worker;
    const uint32_t count = worker->barrier_count;
    if (__builtin_expect(!worker->is_plain || !count, 0)) return false;
    const struct graph_node * nodes = worker->graph->nodes;
    const uint32_t * ids = worker->ids;
    const int behind = nodes[worker->node].next;
    const struct barrier last = *kept(count - 1);
    struct barrier end = last;
    uint64_t inner = worker->waits - (last.leave - last.enter);
    int index = behind;
    if (nodes[behind].tensor != tensor) {
        index = nodes[nodes[behind].next].next;
        if (!nodes[behind].fuses_with_next || nodes[index].tensor != tensor || count < 2) return false;
        end = *kept(count - 2);
        inner -= end.leave - end.enter;
    }
    __builtin_prefetch(&nodes[nodes[index].next]); /* the weights have evicted it from the caches since the last call */
    if (worker->id) ggtrace_operator(worker->writer, worker->id, worker->start, end.enter, end.leave, inner);
    if (index != behind && ids[behind]) {
        ggtrace_operator_fused(worker->writer, ids[behind], end.leave, last.enter, last.leave, ids[nodes[behind].next]);
    }
    worker_begin_node(index, last.leave); /* nothing happened since then: saves a clock read */
    if (__builtin_expect(nodes[index].chooses_experts && worker->is_first, 0)) operators_choose_experts(index);
    return true;
}

/* The common case: a barrier of the graph that this worker is in. */
static inline bool operators_barrier_plain(void * threadpool) {
    const struct worker * worker = &this_worker;
    if (__builtin_expect(!worker->is_plain || atomic_load_explicit(&worker->graph->edges, memory_order_relaxed) != worker->edges, 0)) return false;
    const uint64_t enter = clock_scaled(&worker->scale);
    worker->wait(threadpool);
    worker_add_barrier(enter, worker->is_alone ? enter : clock_scaled(&worker->scale));
    return true;
}

/* How many operators this thread has started. */
uint32_t operators_seen(void);

/* Returns and resets the number of nodes and of barriers that this thread's hooks saw outside of known graphs. */
void operators_outside_graphs(uint32_t * starts, uint32_t * barriers);
void operators_reset_outside_graphs(void);

/* Barriers are not seen: from now on, an operator ends when the next one of its thread starts. */
void operators_infer_ends(void);

/* The thread that runs a graph reports its start and its end. */
void operators_graph_begin(struct graph * graph, uint64_t now);
void operators_graph_end(struct graph * graph, uint64_t now);

/* That thread left the graph by an exception or longjmp. */
void operators_graph_left(struct graph * graph);

/* For the child of a fork, which has no other worker. */
void operators_forked(void);

/* When the program ends: writes what its workers hold back. */
void operators_finish(void);
