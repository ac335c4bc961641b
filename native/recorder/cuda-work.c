#include "recorder/cuda-work.h"

#include "common/clock.h"
#include "common/hold.h"
#include "common/table.h"
#include "recorder/calls.h"
#include "recorder/cuda-devices.h"
#include "recorder/cuda-events.h"
#include "recorder/cupti.h"
#include "recorder/full.h"
#include "recorder/graph.h"
#include "recorder/graphs.h"
#include "recorder/ops.h"
#include "recorder/recording.h"
#include "recorder/registry.h"
#include "recorder/runs.h"

enum { LAUNCHES = 1 << 16, NODES = 1 << 18, NODE_TRIES = 16, OPEN_MAX = 64, AHEAD_MAX = 64, EXECS_MAX = 4096, NO_NODE = -1 };

/* A launch, until others have taken its place: more are made in the time in which CUPTI reports it only if it is stuck. */
struct launch {
    _Atomic uint32_t id;
    _Atomic bool is_open; /* the last of its operators is not known yet */
    struct cuda_launched launched;
};

/* A node of a CUDA graph; `named`: without CUPTI, which reports it. */
struct node {
    uint64_t id;
    struct cuda_operator operator;
    struct cuda_named named;
    uint32_t used; /* larger: later */
};

static struct launch * launches;
static struct node * nodes;
static _Atomic uint32_t launch_count = 1u << 31; /* ids of Vulkan's submissions begin at 1 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Of this thread: where the loop over its graph is, and what was launched or captured there. */
static __thread struct {
    const struct graph * graph;
    void * cgraph; /* that graph, as ggml has it; NULL: it may be gone */
    uint64_t run; /* start of the graph run */
    int index, first; /* in the order of `cgraph`; NO_NODE: before the first */
    uint32_t tensor; /* id of the node at `index` */
    uint32_t parts; /* launched for this node */
    uint32_t open_count;
    struct cuda_operator * open[OPEN_MAX];
    _Atomic bool * flags[OPEN_MAX]; /* of launches */
} loop __attribute__((tls_model("initial-exec")));
static __thread bool is_capturing __attribute__((tls_model("initial-exec")));

/* What this thread captured or instantiated last: the number of the graph, CUPTI's or else our own, and of how many nodes. */
static __thread struct exec { uint32_t graph, count; } captured, instantiated;

void cuda_captures(bool begins) {
    if (!begins) cuda_settle();
    else runs_know_graph();
    is_capturing = begins;
    cuda_events_captures(begins, cuda_device());
    if (begins) captured.graph = captured.count = 0;
}

/* ---- The loop over a graph's nodes ---- */

/* With GGML_CUDA_GRAPH_OPT, ggml-cuda changes the order of nodes when it computes them: what it fuses follows each other in the new one. */
static const void * node_at(int index) {
    return loop.cgraph ? recording.api.graph_node(loop.cgraph, index) : loop.graph->nodes[index].tensor;
}

/* The place of a tensor near `index`, where `at` has the nodes; NO_NODE: it is not there. */
static int find_near(const void * tensor, int index, int from, const void * (*at)(int index)) {
    const int count = loop.graph->node_count;
    const int first = index - AHEAD_MAX > from ? index - AHEAD_MAX : from, end = index + AHEAD_MAX < count ? index + AHEAD_MAX : count;
    for (int i = first; i < end; i++) if (at(i) == tensor) return i;
    return NO_NODE;
}

static const void * recorded_at(int index) {
    return loop.graph->nodes[index].tensor;
}

/* The id of the node at a place. */
static uint32_t id_at(int index) {
    const void * tensor = node_at(index);
    const int recorded = recorded_at(index) == tensor ? index : find_near(tensor, index, 0, recorded_at);
    return recorded == NO_NODE ? 0 : loop.graph->ids[recorded];
}

/* Ends at the last node before `next` that is computed: those behind it are views, which the loop skips. */
static uint32_t last_before(int next) {
    for (int i = next - 1; i > loop.index; i--) if (op_is_computed(node_at(i))) return id_at(i);
    return 0;
}

static void settle(int next) {
    if (loop.open_count == 0) return;
    const uint32_t last = last_before(next);
    for (uint32_t i = 0; i < loop.open_count; i++) {
        if (loop.open[i]->tensor == loop.tensor) loop.open[i]->last = last; /* else the place is another node's by now */
        if (loop.flags[i]) atomic_store_explicit(loop.flags[i], false, memory_order_release);
    }
    loop.open_count = 0;
    cuda_launched_flush();
    cuda_events_node_ends();
}

void cuda_settle(void) {
    if (loop.graph && loop.index != NO_NODE) settle(loop.graph->node_count);
    loop.graph = NULL;
    loop.index = NO_NODE;
    cuda_events_run_ends();
}

void cuda_leave(void) {
    if (loop.graph && loop.index != NO_NODE) settle(loop.index + 1); /* how far the operator of the last launches goes is not known */
    cuda_captures(false);
}

/* The index of a node behind the current one; NO_NODE: the tensor is none, such as a source that the backend looks at. */
static int index_of(const void * tensor) {
    const int next = find_near(tensor, loop.index + 1, loop.index + 1, node_at);
    int recorded;
    if (next != NO_NODE || graphs_find_node(tensor, &recorded) != loop.graph) return next;
    return find_near(tensor, recorded, loop.index + 1, node_at);
}

void cuda_node(const void * tensor) {
    const struct run * run = runs_current();
    if (!run || !run->graph) return;
    if (run->graph != loop.graph || run->start != loop.run) {
        loop.cgraph = NULL;
        cuda_settle();
        loop.graph = run->graph;
        loop.cgraph = run->cgraph;
        loop.run = run->start;
    }
    /* A first loop only looks at the nodes. */
    const bool begins = loop.index != NO_NODE && tensor == node_at(loop.first);
    const int index = begins ? loop.first : index_of(tensor);
    if (index == NO_NODE) return;
    if (loop.index == NO_NODE) loop.first = index;
    settle(begins ? loop.graph->node_count : index);
    loop.index = index;
    loop.tensor = id_at(index);
    loop.parts = 0;
}

static bool is_at_node(void) {
    const struct run * run = runs_current();
    return run && run->graph && loop.graph == run->graph && loop.run == run->start && loop.index != NO_NODE;
}

/* The operator of this thread's loop. Its last node is set, and the flag cleared, when the next one begins. False: it is not known. */
static bool follow_operator(struct cuda_operator * operator, _Atomic bool * flag) {
    const struct run * run = runs_current();
    *operator = (struct cuda_operator){.graph = run && run->graph ? run->graph->id : 0};
    if (!is_at_node()) return false;
    operator->tensor = loop.tensor;
    if (loop.open_count == OPEN_MAX) return false;
    loop.flags[loop.open_count] = flag;
    loop.open[loop.open_count++] = operator;
    return true;
}

/* That of what is launched now. */
static bool open_operator(struct cuda_operator * operator, _Atomic bool * flag) {
    const bool is_open = follow_operator(operator, flag);
    if (operator->tensor) operator->part = loop.parts++;
    return is_open;
}

/* ---- Launches ---- */

static struct cuda_at at(void * stream) {
    const struct run * run = runs_current();
    const bool is_known = run && run->graph;
    return (struct cuda_at){.device = cuda_device(), .queue = cuda_stream_queue(cuda_device(), stream), .stream = stream,
        .graph = is_known ? run->graph->id : 0, .run = is_known ? run->start : 0, .is_at_node = is_at_node()};
}

/* Without CUPTI: the number of spans between events that begin with a launch. */
static uint32_t begin_spans(void * stream, uint32_t id) {
    if (!cuda_events_are_on()) return 0;
    struct cuda_operator * operator = NULL;
    const struct cuda_at here = at(stream);
    const uint32_t count = cuda_events_launch(&here, id, &operator);
    if (!operator) return count;
    const uint32_t part = operator->part;
    follow_operator(operator, NULL);
    operator->part = part;
    return count;
}

void cuda_graph_launch_begin(struct cuda_launch * launch) {
    if (!cuda_events_are_on()) return;
    const struct cuda_at here = at(launch->stream);
    launch->spans = cuda_events_graph_begin(&here, launch->exec, launch->id);
}

void cuda_graph_launch_end(const struct cuda_launch * launch) {
    cuda_events_graph_end(launch->exec, launch->stream, launch->id);
}

void cuda_launch_begin(struct cuda_launch * launch, enum cuda_function function, void * stream, bool is_foreign) {
    launch->id = launch->spans = 0;
    launch->function = function;
    launch->stream = stream;
    if (is_capturing) {
        begin_spans(stream, 0);
        return;
    }
    const bool is_taken = !is_foreign && recording_level() >= LEVEL_GRAPH && calls_take();
    if (is_taken && !launches) {
        HOLD(&lock);
        if (!launches) launches = reserve(LAUNCHES * sizeof(*launches));
    }
    if (!is_taken || !launches) {
        cupti_launch_begins(0);
        return;
    }
    launch->id = atomic_fetch_add_explicit(&launch_count, 1, memory_order_relaxed) + 1;
    struct launch * kept = &launches[launch->id % LAUNCHES];
    atomic_store_explicit(&kept->id, 0, memory_order_relaxed);
    const struct run * run = runs_current();
    kept->launched = (struct cuda_launched){.call = calls_current(), .graph = run && run->is_recorded && run->graph ? run->graph->id : 0};
    atomic_store_explicit(&kept->is_open, true, memory_order_relaxed);
    const bool is_open = function != CUDA_GRAPH_LAUNCH && open_operator(&kept->launched.operator, &kept->is_open);
    if (!is_open) atomic_store_explicit(&kept->is_open, false, memory_order_relaxed);
    atomic_store_explicit(&kept->id, launch->id, memory_order_release);
    cupti_launch_begins(launch->id);
    if (function != CUDA_GRAPH_LAUNCH) launch->spans = begin_spans(stream, launch->id);
    launch->start = clock_now();
}

static void capture(const struct cuda_launch * launch);
static void write_graph(const struct ggtrace_gpu_submission * submission, const void * handle);
static uint32_t works_of(const void * handle);

void cuda_launch_end(const struct cuda_launch * launch, bool is_done) {
    if (is_capturing) {
        if (is_done && !cupti_is_on()) capture(launch);
        return;
    }
    const uint64_t end = clock_now();
    cupti_launch_ends();
    struct ggtrace_writer * writer = launch->id && is_done ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (!writer) return;
    const struct cuda_launched * launched = &launches[launch->id % LAUNCHES].launched;
    const struct ggtrace_gpu_submission submission = {
        .start = launch->start,
        .end = end,
        .id = launch->id,
        .queue = cuda_stream_queue(cuda_device(), launch->stream),
        .buffers = launch->function,
        .works = cuda_events_are_on() ? launch->spans : launch->function == CUDA_GRAPH_LAUNCH ? works_of(launch->exec) : 1,
        .call = launched->call,
        .graph = launched->graph,
    };
    const bool is_timed = cupti_is_on(), is_graph = launch->function == CUDA_GRAPH_LAUNCH;
    if (!is_timed && !is_graph && launched->operator.tensor) {
        const struct cuda_named named = cuda_named(launch->function, &launch->what);
        cuda_launched_hold(&submission, &launched->operator, &named);
        return;
    }
    if (!is_timed && is_graph && !cuda_events_have_nodes()) write_graph(&submission, launch->exec);
    ggtrace_gpu_submission(writer, &submission);
}

bool cuda_launched(uint32_t id, struct cuda_launched * launched, bool * is_open) {
    struct launch * kept = launches ? &launches[id % LAUNCHES] : NULL;
    *is_open = false;
    if (!kept || atomic_load_explicit(&kept->id, memory_order_acquire) != id) return false;
    *is_open = atomic_load_explicit(&kept->is_open, memory_order_acquire);
    *launched = kept->launched;
    return !*is_open && atomic_load_explicit(&kept->id, memory_order_acquire) == id;
}

/* ---- Nodes of CUDA's graphs ---- */

static uint32_t graph_count; /* without CUPTI */

/* CUPTI's, too. */
static uint64_t node_id(uint32_t graph, uint32_t index) {
    return (uint64_t) graph << 32 | index;
}

/* Under the lock. The place of a node, or the one that a new node takes: a free one, else that of the node which was asked for longest ago. */
static struct node * place_of(uint64_t id) {
    static uint32_t uses;
    if (!nodes && !(nodes = reserve(NODES * sizeof(*nodes)))) return NULL;
    const uint64_t first = mix(14, id);
    struct node * found = NULL;
    for (uint32_t i = 0; i < NODE_TRIES && !(found && found->id == id); i++) {
        struct node * node = &nodes[(first + i) % NODES];
        if (!found || node->id == id || (found->id && (!node->id || node->used < found->used))) found = node;
    }
    if (found->id && found->id != id) full_count(FULL_COMMANDS);
    found->used = ++uses;
    return found;
}

void cuda_node_created(uint64_t id) {
    HOLD(&lock);
    struct node * node = place_of(id);
    if (!node) return;
    node->id = id;
    captured.graph = (uint32_t) (id >> 32);
    captured.count++;
    open_operator(&node->operator, NULL);
}

/* Without CUPTI: what is launched in a capture is its next node. */
static void capture(const struct cuda_launch * launch) {
    const struct cuda_named named = cuda_named(launch->function, &launch->what);
    HOLD(&lock);
    if (!captured.graph) captured.graph = ++graph_count;
    const uint64_t id = node_id(captured.graph, captured.count);
    struct node * node = place_of(id);
    if (!node) return;
    node->id = id;
    node->named = named;
    captured.count++;
    open_operator(&node->operator, NULL);
}

static void copy_node(uint64_t from, uint64_t to) {
    const struct node * original = place_of(from);
    if (!original || original->id != from) return;
    struct node copied = *original;
    copied.id = to;
    *place_of(to) = copied;
}

static void copy_nodes(uint32_t from, uint32_t to, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) copy_node(node_id(from, i), node_id(to, i));
}

void cuda_node_cloned(uint64_t original, uint64_t id) {
    HOLD(&lock);
    copy_node(original, id);
    if (instantiated.graph != (uint32_t) (id >> 32)) instantiated.count = 0;
    instantiated.graph = (uint32_t) (id >> 32);
    instantiated.count++;
}

/* What a handle of a graph that can be launched is. */
static struct exec * exec_of(const void * handle) {
    static struct table table;
    static struct exec execs[EXECS_MAX];
    static uint32_t count;
    struct entry * entry = table_at(&table, mix(18, (uint64_t) (uintptr_t) handle));
    if (entry && !entry->id && count + 1 < EXECS_MAX) entry->id = ++count;
    return entry && entry->id ? &execs[entry->id] : NULL;
}

void cuda_graph_instantiated(const void * handle) {
    cuda_events_instantiated(handle);
    HOLD(&lock);
    struct exec * exec = exec_of(handle);
    if (!cupti_is_on() && captured.graph) {
        instantiated = (struct exec){++graph_count, captured.count};
        copy_nodes(captured.graph, instantiated.graph, captured.count);
    }
    if (exec) *exec = instantiated;
    instantiated = (struct exec){0};
}

void cuda_graph_updated(const void * handle) {
    cuda_events_instantiated(handle);
    HOLD(&lock);
    const struct exec * exec = exec_of(handle);
    if (exec && exec->graph) copy_nodes(captured.graph, exec->graph, captured.count);
}

/* How many nodes a graph has that can be launched; 1: unknown. */
static uint32_t works_of(const void * handle) {
    HOLD(&lock);
    const struct exec * exec = exec_of(handle);
    return exec && exec->count ? exec->count : 1;
}

/* Without CUPTI: the nodes of a graph, of its launch. */
static void write_graph(const struct ggtrace_gpu_submission * submission, const void * handle) {
    HOLD(&lock);
    const struct exec * exec = exec_of(handle);
    for (uint32_t i = 0; exec && i < exec->count; i++) {
        const struct node * node = place_of(node_id(exec->graph, i));
        if (node && node->id == node_id(exec->graph, i)) cuda_launched_work(submission, &node->operator, &node->named);
    }
}

bool cuda_node_operator(uint64_t id, struct cuda_operator * operator) {
    HOLD(&lock);
    const struct node * node = place_of(id);
    if (!node || node->id != id) return false;
    *operator = node->operator;
    return true;
}
