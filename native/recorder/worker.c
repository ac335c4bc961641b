#include "recorder/worker.h"

#include "nvtx/emit.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

__thread struct worker this_worker __attribute__((tls_model("initial-exec"))) = {.ith = NO_WORKER, .node = -1};
_Atomic bool worker_ends_are_open;
bool worker_alone_is_open;

/* Number of steps between two computed nodes, none of which passed a hook. An RMS_NORM and the MUL after it are one step. */
static int count_steps(const struct graph * graph, int from, int to) {
    int steps = 0;
    for (int i = from; i < to; i = graph->nodes[i].next) {
        steps++;
        if (graph->nodes[i].fuses_with_next && graph->nodes[i].next < to) i = graph->nodes[i].next;
    }
    return steps;
}

/* The time waited at the kept barriers before this one. */
static uint64_t inner_wait(uint32_t end_barrier) {
    uint64_t sum = this_worker.waits;
    const uint32_t oldest = this_worker.barrier_count > BARRIERS_KEPT ? this_worker.barrier_count - BARRIERS_KEPT : 0;
    for (uint32_t i = end_barrier > oldest ? end_barrier : oldest; i < this_worker.barrier_count; i++) sum -= kept(i)->leave - kept(i)->enter;
    return sum;
}

/* The counts when a barrier opened; NULL if they were not read. */
static const struct counts * counts_behind(uint32_t barrier) {
    const uint32_t slot = barrier % BARRIERS_KEPT;
    return this_worker.leaves >> slot & 1 ? &this_worker.at_leave[slot] : NULL;
}

/* Writes counts before their operator. `to` NULL: the operator ends now, on this thread. */
static void write_counts(struct ggtrace_writer * writer, uint64_t start, const struct counts * from, const struct counts * to) {
    struct counts now;
    if (!counters_on() || !from || (!to && this_worker.is_borrowed)) return;
    if (!to) counters_read(&now);
    counters_write(writer, start, from, to ? to : &now);
}

/* Without known ends: writes the current operator and the fused steps up to node `next` as one. */
static void finish_open(struct ggtrace_writer * writer, int first_fused, int next, uint64_t end) {
    const struct graph * graph = this_worker.graph;
    int first = this_worker.node, last = -1;
    for (int i = first_fused; i < next; i = graph->nodes[i].next) {
        if (first < 0) first = i;
        else last = i;
    }
    const uint32_t tensor = first < 0 ? 0 : first == this_worker.node ? this_worker.id : this_worker.ids[first];
    if (!tensor) return;
    write_counts(writer, this_worker.start, this_worker.has_start ? &this_worker.at_start : NULL, NULL);
    if (last >= 0 && this_worker.ids[last]) ggtrace_operator_fused(writer, tensor, this_worker.start, end, end, this_worker.ids[last]);
    else ggtrace_operator(writer, tensor, this_worker.start, end, end, inner_wait(this_worker.barrier_count));
}

uint64_t worker_left_at(void) {
    const struct graph * graph = this_worker.graph;
    if (atomic_load_explicit(&worker_ends_are_open, memory_order_relaxed) && graph) {
        const uint64_t ended = atomic_load_explicit(&graph->ended, memory_order_relaxed);
        const uint32_t passed = atomic_load_explicit(&graph->edges, memory_order_acquire) - this_worker.edges;
        if (passed == 1 || passed == 2) return ended;
    }
    return this_worker.barrier_count ? kept(this_worker.barrier_count - 1)->leave : this_worker.start;
}

void worker_finish(int next, uint64_t now) {
    struct ggtrace_writer * writer = this_worker.is_borrowed ? this_worker.writer : recording_writer((uint32_t) this_worker.ith);
    const struct graph * graph = this_worker.graph;
    if (!writer || !graph) return;
    const int first_fused = this_worker.node < 0 ? graph->first : graph->nodes[this_worker.node].next;
    if (atomic_load_explicit(&worker_ends_are_open, memory_order_relaxed) || (worker_alone_is_open && this_worker.nth == 1)) {
        finish_open(writer, first_fused, next, now);
        return;
    }
    const uint32_t count = this_worker.barrier_count;
    const int steps = first_fused < next ? count_steps(graph, first_fused, next) : 0;
    /* Each fused step ends at one of the last barriers; with fewer barriers than steps: a single worker, or an aborted graph. */
    const uint32_t oldest = count > BARRIERS_KEPT ? count - BARRIERS_KEPT : 0;
    uint32_t at = count > (uint32_t) steps ? count - (uint32_t) steps : 0;
    if (at < oldest) at = oldest;
    uint64_t cursor = this_worker.start;
    const struct counts * from = this_worker.has_start ? &this_worker.at_start : NULL;
    if (this_worker.node >= 0) {
        const bool has_end = at > 0;
        const struct barrier end = has_end ? *kept(at - 1) : (struct barrier){now, now};
        const uint64_t inner = has_end ? inner_wait(at - 1) : 0;
        const uint32_t tensor = this_worker.id;
        if (tensor) write_counts(writer, this_worker.start, from, has_end ? &this_worker.at_enter[(at - 1) % BARRIERS_KEPT] : NULL);
        if (tensor) ggtrace_operator(writer, tensor, this_worker.start, end.enter, end.leave, inner);
        cursor = end.leave;
        from = has_end ? counts_behind(at - 1) : NULL;
    }
    for (int i = first_fused; i < next && at < count; i = graph->nodes[i].next, at++) {
        const uint32_t first = this_worker.ids[i];
        if (graph->nodes[i].fuses_with_next && graph->nodes[i].next < next) i = graph->nodes[i].next;
        const struct barrier end = *kept(at);
        if (first) write_counts(writer, cursor, from, &this_worker.at_enter[at % BARRIERS_KEPT]);
        if (first) ggtrace_operator_fused(writer, first, cursor, end.enter, end.leave, this_worker.ids[i]);
        cursor = end.leave;
        from = counts_behind(at);
    }
}

void worker_end_announced(void) {
    if (!this_worker.is_announced) return;
    this_worker.is_announced = false;
    nvtx_emit_pop();
}

/* The end of an operator is unknown: its range lasts until the next one starts, or until the last barrier of the graph's previous run. */
void worker_announce(const struct graph * graph, int index, const void * tensor) {
    worker_end_announced();
    if (!this_worker.ids[index]) return;
    nvtx_emit_operator((const char *) tensor + recording.layout.name, registry_op_name(tensor), (uint64_t) index);
    this_worker.is_announced = true;
    const bool is_last = count_steps(graph, graph->nodes[index].next, graph->node_count) == 0;
    this_worker.barriers_left = is_last ? atomic_load_explicit(&graph->last_barriers, memory_order_relaxed) : 0;
}

/* Without a graph, barriers are kept: they belong to the next graph, whose first nodes may be fused. */
void worker_leave_graph(uint64_t now) {
    if (!this_worker.is_borrowed) worker_end_announced();
    if (!this_worker.graph) return;
    worker_finish(this_worker.graph->node_count, now);
    if (this_worker.barrier_count) this_worker.left = kept(this_worker.barrier_count - 1)->leave;
    atomic_fetch_sub_explicit(&this_worker.graph->users, 1, memory_order_release);
    this_worker.graph = NULL;
    this_worker.is_plain = false;
    this_worker.node = -1;
    this_worker.barrier_count = 0;
    this_worker.waits = 0;
}
