#include "recorder/cuda-events.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/environment.h"
#include "recorder/calls.h"
#include "recorder/cuda-spans.h"
#include "recorder/cuda-thread.h"
#include "recorder/cuda-times.h"
#include "recorder/cupti.h"
#include "recorder/recorder.h"

enum { OPEN_MAX = 8 }; /* streams on which a node, or a run, has launched something */
enum { END_NS = 800000000 };

static _Atomic bool is_on;
static bool has_nodes; /* spans are of nodes */

/* Of this thread: spans that have begun, of the node or the run that it is at. */
static __thread struct {
    struct open { struct cuda_span * span; void * stream; bool is_ended; } open[OPEN_MAX];
    uint32_t count;
    uint64_t run; /* start of the graph run that has a span */
    struct cuda_spans * captured; /* what it captured last */
    bool is_capturing;
    /* In a capture: the end of the latest span, and its stream, if nothing was put behind it. */
    void * latest, * latest_stream;
} here __attribute__((tls_model("initial-exec")));

bool cuda_events_are_on(void) {
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

bool cuda_events_have_nodes(void) {
    return cuda_events_are_on() && has_nodes;
}

/* ---- Spans ---- */

/* Of a launch that is recorded, or captured: then the replay says of which launch and call it is. */
static struct cuda_span * span_begin(const struct cuda_at * at, uint32_t id, enum ggtrace_gpu_work what) {
    struct cuda_span * span = here.is_capturing ? cuda_spans_add(here.captured) : cuda_span_take(at->device);
    if (!span) return NULL;
    span->what = what;
    span->launch = id;
    span->call = calls_current();
    span->queue = at->queue;
    span->operator.graph = at->graph;
    if (here.is_capturing && here.latest && here.latest_stream == at->stream) {
        span->begin = here.latest; /* nothing is between them: two events would have the same time */
        span->shares_begin = true;
    } else if (!cuda_event_record(span->begin = cuda_event_take(at->device), at->stream, here.is_capturing)) span->is_failed = true;
    return span;
}

static void span_end(struct open * open) {
    if (open->is_ended) return;
    open->is_ended = true;
    struct cuda_span * span = open->span;
    span->end = cuda_event_take(span->device);
    if (!cuda_event_record(span->end, open->stream, here.is_capturing)) span->is_failed = true;
    here.latest = span->is_failed ? NULL : span->end;
    here.latest_stream = open->stream;
}

static void end_all(void) {
    for (uint32_t i = 0; i < here.count; i++) {
        span_end(&here.open[i]);
        cuda_span_ready(here.open[i].span);
    }
    here.count = 0;
}

/* The span that is open on a stream; NULL: none. */
static struct open * open_on(const void * stream) {
    for (uint32_t i = 0; i < here.count; i++) if (here.open[i].stream == stream && !here.open[i].is_ended) return &here.open[i];
    return NULL;
}

static uint32_t open_span(struct cuda_span * span, void * stream) {
    if (!span) return 0;
    here.open[here.count++] = (struct open){.span = span, .stream = stream};
    return 1;
}

static uint32_t node_launch(const struct cuda_at * at, uint32_t id, struct cuda_operator ** operator) {
    if (open_on(at->stream)) return 0;
    if (here.count == OPEN_MAX || !at->is_at_node) {
        if (here.latest_stream == at->stream) here.latest = NULL;
        return 0;
    }
    struct cuda_span * span = span_begin(at, id, GGTRACE_GPU_OPERATOR);
    if (!span) return 0;
    span->operator.part = here.count;
    *operator = &span->operator;
    return open_span(span, at->stream);
}

uint32_t cuda_events_launch(const struct cuda_at * at, uint32_t id, struct cuda_operator ** operator) {
    if (!cuda_events_are_on() || (here.is_capturing ? !here.captured : !id)) return 0;
    if (has_nodes) return node_launch(at, id, operator);
    if (here.is_capturing || !at->run || at->run == here.run) return 0;
    here.run = at->run;
    return open_span(span_begin(at, id, GGTRACE_GPU_GRAPH), at->stream);
}

void cuda_events_divide(void * stream) {
    if (!cuda_events_have_nodes()) return;
    struct open * open = open_on(stream);
    if (open) span_end(open);
    if (here.latest_stream == stream) here.latest = NULL;
}

void cuda_events_node_ends(void) {
    if (has_nodes) end_all();
}

void cuda_events_run_ends(void) {
    end_all();
    here.run = 0;
}

/* ---- Graphs ---- */

void cuda_events_captures(bool begins, uint32_t device) {
    if (!cuda_events_are_on()) return;
    here.is_capturing = begins;
    here.latest = NULL;
    if (!begins || !has_nodes) return;
    cuda_spans_drop_unused(here.captured);
    here.captured = cuda_spans_new(device);
}

void cuda_events_instantiated(const void * exec) {
    if (cuda_events_have_nodes()) cuda_spans_adopt(here.captured, exec);
}

void cuda_events_destroyed(const void * exec) {
    if (cuda_events_have_nodes()) cuda_spans_adopt(NULL, exec);
}

uint32_t cuda_events_graph_begin(const struct cuda_at * at, const void * exec, uint32_t id) {
    if (!cuda_events_are_on()) return 0;
    const uint32_t count = has_nodes ? cuda_spans_begin(exec) : 0;
    if (count || !id || here.count) return count;
    here.run = at->run;
    return open_span(span_begin(at, id, GGTRACE_GPU_GRAPH), at->stream);
}

void cuda_events_graph_end(const void * exec, void * stream, uint32_t id) {
    if (!cuda_events_are_on()) return;
    if (here.count) end_all();
    else if (has_nodes && id) cuda_spans_end(exec, stream, id);
}

/* ---- Begin and end ---- */

/* Of the recorder's thread. */
static void ask(bool is_last) {
    const uint64_t until = clock_now() + END_NS;
    cuda_times_read_clocks();
    while (cuda_spans_read(false) && is_last && clock_now() < until) nanosleep(&(struct timespec){0, END_NS / 100}, NULL);
    if (is_last) cuda_spans_read(true);
}

void cuda_events_start(const void * address, const char * why) {
    char text[512];
    has_nodes = environment(ENV_GPU_EVENTS);
    const bool has_events = cuda_times_start(address) && cuda_thread_start(ask);
    const char * instead = !has_events ? "there are no events either" :
        has_nodes ? "nodes are timed by events instead: spans on their streams, not kernels" :
        "graph runs are timed by events instead (--gpu-events: their nodes)";
    snprintf(text, sizeof(text), "%s; %s", why, instead);
    cupti_missing(text);
    if (!has_events) return;
    struct ggtrace * log = recorder_log();
    if (log) ggtrace_fact(log, "gpu.times", has_nodes ? "events around nodes" : "events around graph runs");
    atomic_store(&is_on, true);
}

void cuda_events_forked(void) {
    atomic_store(&is_on, false);
}

void cuda_events_finish(void) {
    if (!atomic_exchange(&is_on, false)) return;
    if (!cuda_thread_finish()) cupti_missing("the last times of CUDA's devices: its events were not read within a second");
}
