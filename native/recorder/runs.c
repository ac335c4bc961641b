#include "recorder/runs.h"

#include "common/clock.h"
#include "nvtx/emit.h"
#include "recorder/calls.h"
#include "recorder/ends.h"
#include "recorder/graphs.h"
#include "recorder/losses.h"
#include "recorder/numa.h"
#include "recorder/operators.h"
#include "recorder/parts.h"
#include "recorder/reach.h"
#include "recorder/recording.h"
#include "recorder/registry.h"
#include "recorder/thread-runtimes.h"

enum { NO_SCHEDULER = -1 };
/* Number of graphs computed since the scheduler began. */
static __thread int splits __attribute__((tls_model("initial-exec"))) = NO_SCHEDULER;

/* The state when a scheduler last asked about a node, see runs_want_every_node. */
static __thread struct { uint64_t at; int splits; uint32_t operators; } asked __attribute__((tls_model("initial-exec")));

/* Kept here, as the frame of the hook may be gone when another hook looks at it. */
static __thread struct run current __attribute__((tls_model("initial-exec")));

const struct run * runs_current(void) {
    return current.is_begun ? &current : NULL;
}

/* Schedulers call ggml_backend_graph_compute_async without passing its hook: their work is recorded as one graph. */
static _Atomic bool is_bound;

static void note_bound(void) {
    if (atomic_exchange(&is_bound, true)) return;
    ggtrace_fact(recording.log, "graphs",
                 "whole: calls of ggml_backend_graph_compute_async are bound inside its library; the parts that a scheduler cuts a graph into are not seen");
}

static void leave_schedule(uint32_t before) {
    (void) before;
    splits = NO_SCHEDULER;
}

bool runs_schedule(struct run * outer, uintptr_t here, void * cgraph, int level) {
    const bool is_run = atomic_load_explicit(&is_bound, memory_order_relaxed);
    if (is_run) runs_begin(outer, here, NULL, cgraph, level);
    splits = 0;
    frames_begin(here, leave_schedule, 0);
    return is_run;
}

void runs_scheduled(const struct run * outer, bool is_run, uintptr_t here, void * cgraph, int level, int status) {
    const bool has_none = splits == 0 && !is_run;
    frames_end(here);
    splits = NO_SCHEDULER;
    numa_look();
    if (is_run) runs_end(outer, here, status);
    else if (has_none && status == 0 && level >= LEVEL_GRAPH && calls_take() && graphs_has_nodes(cgraph)) note_bound();
}

static void fact(const char * key, const char * value) {
    ggtrace_fact(recording.log, key, value);
}

void runs_prepare(int level) {
    if (level >= LEVEL_TOKEN) thread_runtimes_prepare(fact);
    if (level < LEVEL_OPERATOR || current.is_begun) return;
    current = (struct run){.is_begun = true}; /* the test's graph passes hooks, too */
    reach_find();
    current.is_begun = false;
}

static const char * title_of(void * backend) {
    return backend ? registry_backend_title(backend) : "CPU";
}

void runs_know_graph(void) {
    const bool is_known = !current.is_begun || current.is_recorded || !current.cgraph || current.graph;
    if (is_known || recording_level() < LEVEL_GRAPH) return;
    current.start = clock_now();
    current.graph = graphs_get(current.cgraph, registry_name(title_of(current.runs_on)), splits != NO_SCHEDULER);
}

/* The run has no record then: the log of a killed program lacks that of its last run, too. */
static void leave_run(uint32_t before) {
    (void) before;
    if (!current.is_begun) return;
    current.is_begun = false;
    if (current.graph && current.has_workers) operators_graph_left(current.graph);
    if (current.graph) graphs_leave(current.graph);
    if (current.is_recorded && current.is_announced) nvtx_emit_pop();
}

void runs_begin(struct run * outer, uintptr_t here, void * backend, void * cgraph, int level) {
    struct run * run = &current;
    outer->is_begun = run->is_begun;
    if (run->is_begun) *outer = *run;
    *run = (struct run){.is_begun = true, .runs_on = backend, .cgraph = cgraph};
    frames_begin(here, leave_run, 0);
    ends_register(ENDS_FROM_START);
    run->is_recorded = level >= LEVEL_GRAPH && calls_take();
    if (!run->is_recorded) return;
    const uint64_t start = parts_begin();
    const char * title = title_of(backend);
    run->backend = registry_name(title);
    run->operators_before = operators_seen();
    run->graph = graphs_get(cgraph, run->backend, splits != NO_SCHEDULER);
    run->has_operators = run->graph && level >= LEVEL_OPERATOR;
    run->has_workers = run->has_operators && reach_find();
    parts_end(start, GGTRACE_RECORDER);
    clock_correct();
    run->split = splits == NO_SCHEDULER ? GGTRACE_NO_SPLIT : (uint32_t) splits++;
    run->is_announced = nvtx_emits(EMIT_GRAPHS);
    if (run->is_announced) {
        nvtx_emit_push(EMIT_GRAPHS, title, run->split == GGTRACE_NO_SPLIT ? EMIT_NO_INDEX : run->split);
    }
    run->start = clock_now();
    if (run->graph) atomic_store_explicit(&run->graph->call, calls_current(), memory_order_relaxed);
    if (run->has_workers) operators_graph_begin(run->graph, run->start);
}

bool runs_synchronise(void) {
    return current.is_recorded && recording.synchronises && operators_seen() == current.operators_before;
}

static void write_node(uint32_t tensor, uint64_t start, uint64_t end) {
    struct ggtrace_writer * writer = tensor ? recording_writer(0) : NULL;
    if (!writer) return;
    ggtrace_call(writer, start, calls_current());
    ggtrace_operator(writer, tensor, start, end, end, 0);
}

void runs_synchronised(void * cgraph) {
    const uint64_t end = clock_now();
    write_node(graphs_only_node(cgraph), current.start, end);
}

void runs_end(const struct run * outer, uintptr_t here, int status) {
    if (!frames_end(here)) return;
    const struct run ended = current, * run = &ended;
    if (outer->is_begun) current = *outer;
    else current.is_begun = false;
    ends_register(ENDS_FROM_GRAPH);
    if (!run->is_recorded) {
        if (run->graph) graphs_leave(run->graph);
        return;
    }
    const uint64_t end = clock_now();
    losses_report(false);
    if (splits == NO_SCHEDULER) numa_look();
    const uint32_t id = run->graph ? run->graph->id : 0;
    if (run->has_workers) operators_graph_end(run->graph, end);
    if (run->graph) graphs_leave(run->graph);
    if (run->is_announced) nvtx_emit_pop();
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    ggtrace_graph(writer, run->start, end, id, calls_current(), status, run->backend, run->split);
}

/* The scheduler asks, computes the node, waits for its backend, and calls again: this gives the time of a node that passes no hook. */
bool runs_want_every_node(void * tensor, bool ask, void * user) {
    (void) user;
    const uint64_t now = clock_now();
    if (ask) {
        asked.at = now;
        asked.splits = splits;
        asked.operators = operators_seen();
    } else if (splits == asked.splits && operators_seen() == asked.operators && recording_level() >= LEVEL_GRAPH && calls_take()) {
        write_node(graphs_node(tensor), asked.at, now);
    }
    return true;
}
