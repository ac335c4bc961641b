#define _GNU_SOURCE
#include "recorder/operators.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "recorder/counters.h"
#include "recorder/experts.h"
#include "recorder/graphs.h"
#include "nvtx/emit.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

/*
 * What a thread's hooks saw since its last operator started. A node ends at a barrier, but ops have barriers inside, too,
 * and fused nodes pass no start hook: which barrier ended what is known when the next node starts, from the number of
 * steps of the graph in between. So the last barriers are kept.
 */
enum { BARRIERS_KEPT = 8, NO_WORKER = -1, EXPECTED_AHEAD = 4, FINISH_WITHIN_NS = 1000000000 };

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

/* Barriers are not seen: an operator lasts until the thread's next one starts. */
static _Atomic bool ends_are_open;
/* Nodes that this thread started to compute of no graph that we know. */
static __thread uint32_t strangers __attribute__((tls_model("initial-exec")));
static __thread struct worker worker __attribute__((tls_model("initial-exec"))) = {.ith = NO_WORKER, .node = -1};
/* All threads that were workers and have not ended. */
static struct worker * workers;
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static const struct barrier * kept(uint32_t index) {
    return &worker.barriers[index % BARRIERS_KEPT];
}

/* Steps between two computed nodes: each of them passed no hook. A RMS_NORM and what multiplies it are one step. */
static int count_steps(const struct graph * graph, int from, int to) {
    int steps = 0;
    for (int i = from; i < to; i = graph->nodes[i].next) {
        steps++;
        if (graph->nodes[i].fuses_with_next && graph->nodes[i].next < to) i = graph->nodes[i].next;
    }
    return steps;
}

/* What was waited at the barriers before this one, of those that are kept. */
static uint64_t inner_wait(uint32_t end_barrier) {
    uint64_t sum = worker.waits;
    const uint32_t oldest = worker.barrier_count > BARRIERS_KEPT ? worker.barrier_count - BARRIERS_KEPT : 0;
    for (uint32_t i = end_barrier > oldest ? end_barrier : oldest; i < worker.barrier_count; i++) sum -= kept(i)->leave - kept(i)->enter;
    return sum;
}

/* What was counted when a barrier opened; NULL where nobody looked. */
static const struct counts * counts_behind(uint32_t barrier) {
    const uint32_t slot = barrier % BARRIERS_KEPT;
    return worker.leaves >> slot & 1 ? &worker.at_leave[slot] : NULL;
}

/* Before its operator. `to`: NULL where that ends now, on this thread. */
static void write_counts(struct ggtrace_writer * writer, uint64_t start, const struct counts * from, const struct counts * to) {
    struct counts now;
    if (!counters_on() || !from || (!to && worker.is_borrowed)) return;
    if (!to) counters_read(&now);
    counters_write(writer, start, from, to ? to : &now);
}

/* Where nobody saw an end: the operator that is under way, and the fused steps up to node `next`, in one. */
static void finish_open(struct ggtrace_writer * writer, int first_fused, int next, uint64_t end) {
    const struct graph * graph = worker.graph;
    int first = worker.node, last = -1;
    for (int i = first_fused; i < next; i = graph->nodes[i].next) {
        if (first < 0) first = i;
        else last = i;
    }
    if (first < 0 || !graph->nodes[first].id) return;
    write_counts(writer, worker.start, worker.has_start ? &worker.at_start : NULL, NULL);
    if (last >= 0 && graph->nodes[last].id) ggtrace_operator_fused(writer, graph->nodes[first].id, worker.start, end, end, graph->nodes[last].id);
    else ggtrace_operator(writer, graph->nodes[first].id, worker.start, end, end, inner_wait(worker.barrier_count));
}

/* When a graph ended that this thread left: at its last barrier, as far as it saw it. It may be under way again. */
static uint64_t left_at(void) {
    const struct graph * graph = worker.graph;
    if (atomic_load_explicit(&ends_are_open, memory_order_relaxed) && graph) {
        const uint64_t ended = atomic_load_explicit(&graph->ended, memory_order_relaxed);
        const uint32_t passed = atomic_load_explicit(&graph->edges, memory_order_acquire) - worker.edges;
        if (passed == 1 || passed == 2) return ended;
    }
    return worker.barrier_count ? kept(worker.barrier_count - 1)->leave : worker.start;
}

/* Writes the operator that is under way, and the fused steps up to node `next`, now that their barriers are known. */
static void finish_steps(int next, uint64_t now) {
    struct ggtrace_writer * writer = worker.is_borrowed ? worker.writer : recording_writer((uint32_t) worker.ith);
    const struct graph * graph = worker.graph;
    if (!writer || !graph) return;
    const int first_fused = worker.node < 0 ? graph->first : graph->nodes[worker.node].next;
    if (atomic_load_explicit(&ends_are_open, memory_order_relaxed)) {
        finish_open(writer, first_fused, next, now);
        return;
    }
    const uint32_t count = worker.barrier_count;
    const int steps = first_fused < next ? count_steps(graph, first_fused, next) : 0;
    /* Each fused step ends at one of the last barriers; fewer barriers than steps: one worker alone, or a cut graph. */
    const uint32_t oldest = count > BARRIERS_KEPT ? count - BARRIERS_KEPT : 0;
    uint32_t at = count > (uint32_t) steps ? count - (uint32_t) steps : 0;
    if (at < oldest) at = oldest;
    uint64_t cursor = worker.start;
    const struct counts * from = worker.has_start ? &worker.at_start : NULL;
    if (worker.node >= 0) {
        const bool has_end = at > 0;
        const struct barrier end = has_end ? *kept(at - 1) : (struct barrier){now, now};
        const uint64_t inner = has_end ? inner_wait(at - 1) : 0;
        const uint32_t tensor = graph->nodes[worker.node].id;
        if (tensor) write_counts(writer, worker.start, from, has_end ? &worker.at_enter[(at - 1) % BARRIERS_KEPT] : NULL);
        if (tensor) ggtrace_operator(writer, tensor, worker.start, end.enter, end.leave, inner);
        cursor = end.leave;
        from = has_end ? counts_behind(at - 1) : NULL;
    }
    for (int i = first_fused; i < next && at < count; i = graph->nodes[i].next, at++) {
        const uint32_t first = graph->nodes[i].id;
        if (graph->nodes[i].fuses_with_next && graph->nodes[i].next < next) i = graph->nodes[i].next;
        const struct barrier end = *kept(at);
        if (first) write_counts(writer, cursor, from, &worker.at_enter[at % BARRIERS_KEPT]);
        if (first) ggtrace_operator_fused(writer, first, cursor, end.enter, end.leave, graph->nodes[i].id);
        cursor = end.leave;
        from = counts_behind(at);
    }
}

static void end_announced(void) {
    if (!worker.is_announced) return;
    worker.is_announced = false;
    nvtx_emit_pop();
}

/* Nobody tells when an operator ends: its range lasts until the next one's, or to the last barrier that the graph had before. */
static void announce(const struct graph * graph, int index, const void * tensor) {
    end_announced();
    if (!graph->nodes[index].id) return;
    nvtx_emit_operator((const char *) tensor + recording.layout.name, registry_op_name(tensor), (uint64_t) index);
    worker.is_announced = true;
    const bool is_last = count_steps(graph, graph->nodes[index].next, graph->node_count) == 0;
    worker.barriers_left = is_last ? atomic_load_explicit(&graph->last_barriers, memory_order_relaxed) : 0;
}

/* Without a graph, barriers that were seen are kept: they belong to the next one, whose first nodes may be fused. */
static void leave_graph(uint64_t now) {
    if (!worker.is_borrowed) end_announced();
    if (!worker.graph) return;
    finish_steps(worker.graph->node_count, now);
    if (worker.barrier_count) worker.left = kept(worker.barrier_count - 1)->leave;
    worker.graph = NULL;
    worker.node = -1;
    worker.barrier_count = 0;
    worker.waits = 0;
}

static void on_thread_exit(void * unused) {
    (void) unused;
    pthread_mutex_lock(&workers_lock);
    for (struct worker ** link = &workers; *link; link = &(*link)->next) {
        if (*link != &worker) continue;
        *link = worker.next;
        break;
    }
    pthread_mutex_unlock(&workers_lock);
    if (recording_level() > LEVEL_OFF) {
        leave_graph(left_at());
    }
    counters_leave();
}

static void make_exit_key(void) {
    pthread_key_create(&exit_key, on_thread_exit);
}

/* A thread meets its first node of a graph's run. */
static void enter_graph(struct graph * graph, int ith, uint64_t now) {
    if (worker.ith == NO_WORKER) {
        pthread_once(&exit_once, make_exit_key);
        pthread_setspecific(exit_key, &worker);
        pthread_mutex_lock(&workers_lock);
        worker.next = workers;
        workers = &worker;
        pthread_mutex_unlock(&workers_lock);
    }
    leave_graph(atomic_load_explicit(&ends_are_open, memory_order_relaxed) ? left_at() : now);
    worker.ith = ith;
    worker.graph = graph;
    worker.edges = atomic_load_explicit(&graph->edges, memory_order_relaxed);
    const uint64_t begun = atomic_load_explicit(&graph->begun, memory_order_relaxed);
    worker.start = begun > worker.left ? begun : worker.left;
    /* Where its first nodes are fused, it counts from the next barrier on: it may have waited long for the graph. */
    worker.has_start = false;
    worker.reads_leave = counters_on();
    struct ggtrace_writer * writer = worker.writer = recording_writer((uint32_t) ith);
    if (writer) ggtrace_call(writer, now, atomic_load_explicit(&graph->call, memory_order_relaxed));
}

/* The index of `tensor` if it is the next node, or the next after some that were fused; else -1. */
static int expected_node(const void * tensor) {
    const struct graph * graph = worker.graph;
    if (!graph) return -1;
    int index = worker.node < 0 ? graph->first : graph->nodes[worker.node].next;
    for (int tries = 0; tries < EXPECTED_AHEAD && index < graph->node_count; tries++, index = graph->nodes[index].next) {
        if (graph->nodes[index].tensor == tensor) return index;
    }
    return -1;
}

/* What was done here until now is not the operator's. A fused node behind it has no hook that could look where it starts. */
static void start_counting(const struct graph * graph) {
    const int next = graph->nodes[worker.node].next;
    worker.reads_leave = next < graph->node_count && graph->nodes[next].fuses_with_next;
    worker.has_start = true;
    worker.start = clock_now();
    counters_read(&worker.at_start);
}

/* Weights have driven the next node out of the caches since the last token. */
static void look_ahead(const struct graph * graph, int index) {
    __builtin_prefetch(&graph->nodes[graph->nodes[index].next]);
}

static __attribute__((noinline)) void start_any(const int * params, const void * tensor) {
    struct graph * graph = worker.graph;
    int index = expected_node(tensor);
    uint64_t now;
    const bool is_open = atomic_load_explicit(&ends_are_open, memory_order_relaxed);
    if (index >= 0 && worker.barrier_count > 0 && !is_open) {
        now = kept(worker.barrier_count - 1)->leave; /* nothing lies between: a clock read is saved */
    } else {
        if (counters_on()) counters_join();
        now = clock_now();
        if (index < 0) {
            graph = graphs_find_node(tensor, &index);
            /* Not of a graph that we saw begin: it is left out, or unknown. */
            if (!graph || !(atomic_load_explicit(&graph->edges, memory_order_relaxed) & 1)) {
                leave_graph(is_open || worker.barrier_count ? left_at() : now);
                strangers++;
                return;
            }
            if (graph != worker.graph || index <= worker.node) enter_graph(graph, params[0], now);
        }
    }
    if (worker.node >= 0 || worker.barrier_count > 0) finish_steps(index, now);
    worker.seen++;
    worker.ith = params[0];
    worker.nth = params[1];
    worker.node = index;
    worker.start = now;
    worker.barrier_count = 0;
    worker.waits = 0;
    if (params[0] == 0 && graph->nodes[index].experts) experts_record(graph, index, now);
    if (nvtx_emits(EMIT_OPERATORS)) announce(graph, index, tensor);
    if (counters_on()) start_counting(graph);
    look_ahead(graph, index);
}

/* Counters are read, ranges announced, or ends not seen. */
static bool is_special(void) {
    const uint32_t emits = atomic_load_explicit(&nvtx_emits_now, memory_order_relaxed) & (EMIT_AHEAD | EMIT_OPERATORS);
    return emits | (uint32_t) counters_count | (uint32_t) atomic_load_explicit(&ends_are_open, memory_order_relaxed);
}

/* Most starts: of the node behind the one before, which waited at a barrier. The rest are start_any's. */
void operators_start(const int * params, const void * tensor) {
    struct graph * graph = worker.graph;
    const uint32_t barriers = worker.barrier_count;
    if (__builtin_expect(!graph || worker.node < 0 || !barriers || is_special(), 0)) {
        start_any(params, tensor);
        return;
    }
    const struct graph_node * done = &graph->nodes[worker.node];
    const int index = done->next;
    struct ggtrace_writer * writer = recording_writer((uint32_t) worker.ith);
    if (__builtin_expect(graph->nodes[index].tensor != tensor || !writer, 0)) {
        start_any(params, tensor);
        return;
    }
    const struct barrier end = *kept(barriers - 1);
    if (done->id) ggtrace_operator(writer, done->id, worker.start, end.enter, end.leave, worker.waits - (end.leave - end.enter));
    worker.seen++;
    worker.node = index;
    worker.start = end.leave; /* nothing lies between: a clock read is saved */
    worker.barrier_count = 0;
    worker.waits = 0;
    if (worker.ith == 0 && graph->nodes[index].experts) experts_record(graph, index, end.leave);
    look_ahead(graph, index);
}

uint32_t operators_seen(void) {
    return worker.seen;
}

/* What else is done where a barrier opened. */
static void look_behind_barrier(uint32_t slot) {
    const bool reads = worker.reads_leave && worker.graph;
    worker.leaves = (worker.leaves & ~(1u << slot)) | (uint32_t) reads << slot;
    if (reads) counters_read(&worker.at_leave[slot]);
    if (worker.is_announced && worker.barriers_left && --worker.barriers_left == 0) end_announced();
}

void operators_barrier(void (*wait)(void *), void * threadpool) {
    /* A graph's caller cannot see its end before all workers are at its last barrier: this barrier is another graph's. */
    if (worker.graph && atomic_load_explicit(&worker.graph->edges, memory_order_relaxed) != worker.edges) {
        leave_graph(left_at());
    }
    const uint64_t enter = clock_now();
    if (counters_on() && worker.graph) counters_read(&worker.at_enter[worker.barrier_count % BARRIERS_KEPT]);
    wait(threadpool);
    const uint32_t count = worker.barrier_count, slot = count % BARRIERS_KEPT;
    struct barrier * here = &worker.barriers[slot];
    here->enter = enter;
    here->leave = worker.nth == 1 ? enter : clock_now(); /* the only worker does not wait */
    worker.waits += here->leave - enter;
    if (__builtin_expect(counters_on() || worker.is_announced, 0)) look_behind_barrier(slot);
    __atomic_store_n(&worker.barrier_count, count + 1, __ATOMIC_RELEASE);
}

void operators_forget_strangers(void) {
    leave_graph(left_at());
    worker.barrier_count = 0;
    strangers = 0;
}

void operators_strangers(uint32_t * starts, uint32_t * barriers) {
    *starts = strangers;
    *barriers = worker.barrier_count;
}

void operators_infer_ends(void) {
    atomic_store(&ends_are_open, true);
}

void operators_graph_begin(struct graph * graph, uint64_t now) {
    leave_graph(now);
    worker.barrier_count = 0;
    worker.waits = 0;
    atomic_store_explicit(&graph->begun, now, memory_order_relaxed);
    atomic_fetch_add_explicit(&graph->edges, 1, memory_order_relaxed);
    enter_graph(graph, 0, now);
    if (!counters_on()) return;
    counters_join();
    worker.has_start = true;
    worker.start = clock_now();
    counters_read(&worker.at_start);
}

void operators_graph_end(struct graph * graph, uint64_t now) {
    atomic_store_explicit(&graph->last_barriers, worker.barrier_count, memory_order_relaxed);
    atomic_store_explicit(&graph->ended, now, memory_order_relaxed);
    leave_graph(now);
    atomic_fetch_add_explicit(&graph->edges, 1, memory_order_relaxed);
}

/* Has the graph ended that another thread worked on last? */
static bool has_ended(const struct worker * other) {
    return other->graph && atomic_load_explicit(&other->graph->edges, memory_order_acquire) != other->edges;
}

/* Has that thread taken down when it ended? On a busy machine it may have to wait for a CPU first. */
static bool is_through(const struct worker * other, uint64_t deadline) {
    const struct graph * graph = other->graph;
    if (atomic_load_explicit(&ends_are_open, memory_order_relaxed)) return true;
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
    pthread_mutex_init(&workers_lock, NULL); /* a thread that is not here may have held it */
}

void operators_finish(void) {
    pthread_mutex_lock(&workers_lock);
    struct worker * const next = worker.next;
    const uint64_t deadline = ggtrace_now() + FINISH_WITHIN_NS;
    uint32_t lost = 0;
    for (const struct worker * other = workers; other; other = other->next) {
        if (other == &worker || !has_ended(other)) continue;
        if (!is_through(other, deadline)) {
            lost++;
            continue;
        }
        worker = *other;
        worker.next = next;
        worker.is_borrowed = true;
        leave_graph(left_at());
    }
    pthread_mutex_unlock(&workers_lock);
    struct ggtrace_writer * writer = lost ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_loss(writer, clock_now(), lost, registry_name("the last operators of workers that had no CPU"));
}
