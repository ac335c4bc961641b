#include "recorder/operators.h"

#include "common/clock.h"
#include "common/hold.h"
#include "recorder/affinity.h"
#include "recorder/experts.h"
#include "nvtx/emit.h"
#include "recorder/numa.h"
#include "recorder/recording.h"
#include "recorder/registry.h"
#include "recorder/worker.h"

enum { EXPECTED_AHEAD = 4, FINISH_WITHIN_NS = 1000000000 };

/* Number of nodes that this thread started to compute in unknown graphs. */
static __thread uint32_t starts_outside_graphs __attribute__((tls_model("initial-exec")));
/* All threads that were workers and have not ended. */
static struct worker * workers;
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void on_thread_exit(void * unused) {
    (void) unused;
    pthread_mutex_lock(&workers_lock);
    for (struct worker ** link = &workers; *link; link = &(*link)->next) {
        if (*link != &this_worker) continue;
        *link = this_worker.next;
        break;
    }
    pthread_mutex_unlock(&workers_lock);
    if (recording_level() > LEVEL_OFF) {
        worker_leave_graph(worker_left_at());
    }
    counters_leave();
}

static void make_exit_key(void) {
    pthread_key_create(&exit_key, on_thread_exit);
}

/* This thread starts the first node of a graph run. */
static void enter_graph(struct graph * graph, int ith, uint64_t now) {
    if (this_worker.ith == NO_WORKER) {
        pthread_once(&exit_once, make_exit_key);
        pthread_setspecific(exit_key, &this_worker);
        HOLD(&workers_lock);
        this_worker.next = workers;
        workers = &this_worker;
    }
    worker_leave_graph(atomic_load_explicit(&worker_ends_are_open, memory_order_relaxed) ? worker_left_at() : now);
    this_worker.ith = ith;
    atomic_fetch_add_explicit(&graph->users, 1, memory_order_relaxed);
    this_worker.graph = graph;
    this_worker.ids = graph->ids;
    this_worker.edges = atomic_load_explicit(&graph->edges, memory_order_relaxed);
    const uint64_t begun = atomic_load_explicit(&graph->begun, memory_order_relaxed);
    this_worker.start = begun > this_worker.left ? begun : this_worker.left;
    /* If the first nodes are fused, counting starts at the next barrier: the thread may have waited long for the graph. */
    this_worker.has_start = false;
    this_worker.reads_leave = counters_on();
    this_worker.scale = clock_scale();
    struct ggtrace_writer * writer = this_worker.writer = recording_writer((uint32_t) ith);
    if (!writer) return;
    const uint32_t call = atomic_load_explicit(&graph->call, memory_order_relaxed);
    ggtrace_call(writer, now, call);
    /* With --numa, ggml binds the calling thread after this, too. */
    if (ith != 0 || !numa_has_nodes()) affinity_look(writer, now, call);
}

/* The calling thread is where it computes the graph. */
static void look_at_first(uint64_t now) {
    affinity_look(this_worker.writer, now, atomic_load_explicit(&this_worker.graph->call, memory_order_relaxed));
}

/* The index of `tensor` if it is the next node, or the next after some that were fused; else -1. */
static int expected_node(const void * tensor) {
    const struct graph * graph = this_worker.graph;
    if (!graph) return -1;
    int index = this_worker.node < 0 ? graph->first : graph->nodes[this_worker.node].next;
    for (int tries = 0; tries < EXPECTED_AHEAD && index < graph->node_count; tries++, index = graph->nodes[index].next) {
        if (graph->nodes[index].tensor == tensor) return index;
    }
    return -1;
}

/* Excludes the recorder's own work so far from the operator's counts. A fused node after it has no hook to mark its start. */
static void start_counting(const struct graph * graph) {
    const int next = graph->nodes[this_worker.node].next;
    this_worker.reads_leave = next < graph->node_count && graph->nodes[next].fuses_with_next;
    this_worker.has_start = true;
    this_worker.start = clock_now();
    counters_read(&this_worker.at_start);
}

/* Does this thread read counters, announce ranges, or see no barriers? Decided before the first graph, or between two. */
static bool is_special(void) {
    const uint32_t emits = atomic_load_explicit(&nvtx_emits_now, memory_order_relaxed) & (EMIT_AHEAD | EMIT_OPERATORS);
    return emits | counters_count | (uint32_t) atomic_load_explicit(&worker_ends_are_open, memory_order_relaxed);
}

/* A single worker whose barriers are not seen: once for a log. */
static void note_alone(void) {
    static atomic_bool was_noted;
    if (atomic_load_explicit(&was_noted, memory_order_relaxed) || atomic_exchange(&was_noted, true)) return;
    ggtrace_fact(recording.log, "operators.end", "inferred: a single worker calls no barrier of OpenMP; an operator lasts until its thread's next one starts");
}

void operators_start(const int * params, const void * tensor) {
    struct graph * graph = this_worker.graph;
    int index = expected_node(tensor);
    uint64_t now;
    const bool is_open = atomic_load_explicit(&worker_ends_are_open, memory_order_relaxed);
    if (index >= 0 && this_worker.barrier_count > 0 && !is_open) {
        now = kept(this_worker.barrier_count - 1)->leave; /* nothing happened since then: saves a clock read */
    } else {
        if (counters_on()) counters_join();
        now = clock_now();
        if (index < 0) {
            graph = graphs_find_node(tensor, &index);
            /* The node's graph did not pass a hook at its start: it is left out or unknown. */
            if (!graph) {
                worker_leave_graph(is_open || this_worker.barrier_count ? worker_left_at() : now);
                starts_outside_graphs++;
                return;
            }
            if (graph != this_worker.graph || index <= this_worker.node) enter_graph(graph, params[0], now);
            else graphs_note_view(tensor);
        }
    }
    if (params[0] == 0 && this_worker.node < 0 && this_worker.writer && numa_has_nodes()) look_at_first(now);
    if (this_worker.node >= 0 || this_worker.barrier_count > 0) worker_finish(index, now);
    this_worker.ith = params[0];
    this_worker.nth = params[1];
    this_worker.is_first = params[0] == 0;
    this_worker.is_alone = params[1] == 1;
    worker_begin_node(index, now);
    if (worker_alone_is_open && this_worker.is_alone) note_alone();
    if (params[0] == 0 && graph->nodes[index].chooses_experts) experts_record(graph, index, now);
    if (nvtx_emits(EMIT_OPERATORS)) worker_announce(graph, index, tensor);
    if (counters_on()) start_counting(graph);
    this_worker.is_plain = !is_special() && this_worker.writer && this_worker.wait;
}

void operators_choose_experts(int index) {
    experts_record(this_worker.graph, index, this_worker.start);
}

uint32_t operators_seen(void) {
    return this_worker.seen;
}

/* Additional work after a barrier opens. */
static void look_behind_barrier(uint32_t slot) {
    const bool reads = this_worker.reads_leave && this_worker.graph;
    this_worker.leaves = (this_worker.leaves & ~(1u << slot)) | (uint32_t) reads << slot;
    if (reads) counters_read(&this_worker.at_leave[slot]);
    if (this_worker.is_announced && this_worker.barriers_left && --this_worker.barriers_left == 0) worker_end_announced();
}

void operators_barrier(void (*wait)(void *), void * threadpool) {
    /* The caller of a graph cannot see its end before all workers reach its last barrier: this barrier belongs to another graph. */
    if (this_worker.graph && atomic_load_explicit(&this_worker.graph->edges, memory_order_relaxed) != this_worker.edges) {
        worker_leave_graph(worker_left_at());
    }
    this_worker.wait = wait;
    const uint64_t enter = clock_now();
    if (counters_on() && this_worker.graph) counters_read(&this_worker.at_enter[this_worker.barrier_count % BARRIERS_KEPT]);
    wait(threadpool);
    const uint32_t slot = worker_add_barrier(enter, this_worker.nth == 1 ? enter : clock_now()); /* a single worker does not wait */
    if (counters_on() || this_worker.is_announced) look_behind_barrier(slot);
}

void operators_reset_outside_graphs(void) {
    worker_leave_graph(worker_left_at());
    this_worker.barrier_count = 0;
    starts_outside_graphs = 0;
}

void operators_outside_graphs(uint32_t * starts, uint32_t * barriers) {
    *starts = starts_outside_graphs;
    *barriers = this_worker.barrier_count;
}

void operators_infer_ends(void) {
    atomic_store(&worker_ends_are_open, true);
}

void operators_graph_begin(struct graph * graph, uint64_t now) {
    worker_leave_graph(now);
    this_worker.barrier_count = 0;
    this_worker.waits = 0;
    atomic_store_explicit(&graph->begun, now, memory_order_relaxed);
    atomic_fetch_add_explicit(&graph->edges, 1, memory_order_release);
    enter_graph(graph, 0, now);
    if (!counters_on()) return;
    counters_join();
    this_worker.has_start = true;
    this_worker.start = clock_now();
    counters_read(&this_worker.at_start);
}

void operators_graph_end(struct graph * graph, uint64_t now) {
    atomic_store_explicit(&graph->last_barriers, this_worker.barrier_count, memory_order_relaxed);
    atomic_store_explicit(&graph->ended, now, memory_order_relaxed);
    worker_leave_graph(now);
    atomic_fetch_add_explicit(&graph->edges, 1, memory_order_relaxed);
}

void operators_graph_left(struct graph * graph) {
    if (!this_worker.barrier_count) this_worker.id = 0; /* when the operator ended, if it did, is not known */
    operators_graph_end(graph, worker_left_at());
}

/* Has the graph ended that another thread worked on last? */
static bool has_ended(const struct worker * other) {
    return other->graph && atomic_load_explicit(&other->graph->edges, memory_order_acquire) != other->edges;
}

/* Has that thread recorded its end? On a busy machine it may have to wait for a CPU first. */
static bool is_through(const struct worker * other, uint64_t deadline) {
    const struct graph * graph = other->graph;
    if (atomic_load_explicit(&worker_ends_are_open, memory_order_relaxed)) return true;
    const uint32_t barriers = atomic_load_explicit(&graph->last_barriers, memory_order_relaxed);
    const bool is_latest = atomic_load_explicit(&graph->edges, memory_order_relaxed) == other->edges + 1;
    while (__atomic_load_n(&other->barrier_count, __ATOMIC_ACQUIRE) != barriers) {
        if (!is_latest || ggtrace_now() > deadline) return false;
        nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return true;
}

void operators_forked(void) {
    workers = NULL;
    pthread_mutex_init(&workers_lock, NULL); /* a thread that does not exist in the child may have held it */
}

void operators_finish(void) {
    pthread_mutex_lock(&workers_lock);
    struct worker * const next = this_worker.next;
    const uint64_t deadline = ggtrace_now() + FINISH_WITHIN_NS;
    uint32_t lost = 0;
    for (const struct worker * other = workers; other; other = other->next) {
        if (other == &this_worker || !has_ended(other)) continue;
        if (!is_through(other, deadline)) {
            lost++;
            continue;
        }
        this_worker = *other;
        this_worker.next = next;
        this_worker.is_borrowed = true;
        worker_leave_graph(worker_left_at());
    }
    pthread_mutex_unlock(&workers_lock);
    struct ggtrace_writer * writer = lost ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_loss(writer, clock_now(), lost, registry_name("the last operators of workers that had no CPU"));
}
