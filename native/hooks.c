#define _GNU_SOURCE
/*
 * The functions of llama.cpp and ggml that the recorder stands in front of, by LD_PRELOAD: exported names that are
 * called through the dynamic linker. Each hook resolves the real function once, calls it with the arguments as they
 * are, and returns its result; with nothing to record it does nothing else.
 */
#include <stddef.h>

#include "batch.h"
#include "clock.h"
#include "control.h"
#include "guard.h"
#include "nvtx-emit.h"
#include "operators.h"
#include "recorder.h"
#include "registry.h"

#define HOOK(result, name, ...) \
    result name(__VA_ARGS__);   \
    __attribute__((visibility("default"))) result name(__VA_ARGS__)
#define CALLER __builtin_return_address(0)

/* The real function of a hook, looked up at its first call; threads that race find the same. */
#define REAL(type, name)                                                                        \
    static _Atomic(void *) name##_real;                                                         \
    void * name##_found = atomic_load_explicit(&name##_real, memory_order_relaxed);             \
    if (__builtin_expect(!name##_found, 0)) {                                                   \
        name##_found = recorder_resolve(#name, CALLER);                                         \
        atomic_store_explicit(&name##_real, name##_found, memory_order_relaxed);                \
    }                                                                                           \
    type real;                                                                                  \
    *(void **) &real = name##_found

static _Atomic uint32_t call_count;
static __thread uint32_t current_call __attribute__((tls_model("initial-exec"))) = GGTRACE_NO_CALL;
/* Inside llama_decode or llama_encode; a warm-up has no call number. */
static __thread bool in_call __attribute__((tls_model("initial-exec")));
/* Of the call: what happens in it is not recorded, only that it was made. */
static __thread bool is_left_out __attribute__((tls_model("initial-exec")));
/* Between llama_set_warmup(true) and (false). */
static _Atomic bool is_warming_up;

static void record_token(const struct any_batch * batch, uint64_t start, uint64_t end, int result, void * context,
                         uint32_t kind) {
    struct ggtrace_writer * writer = recorder_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    struct ggtrace_span spans[GGTRACE_SPANS_MAX];
    const uint32_t count = batch_spans(batch, spans);
    ggtrace_token(writer, &(struct ggtrace_token){
        .start = start,
        .end = end,
        .call = current_call,
        .tokens = (uint32_t) batch->tokens,
        .kind = kind,
        .result = result,
        .context = (uint64_t) (uintptr_t) context,
    }, spans, count);
}

/* Announces a call; true where its range has to be ended. */
static bool announce(const struct any_batch * batch, uint32_t kind, bool warm_up) {
    if (!nvtx_emits(EMIT_PHASES | EMIT_TOKENS)) return false;
    const char * phase = warm_up ? "warm-up" : kind == GGTRACE_DECODE && batch_decodes(batch) ? "decode" : "prefill";
    if (nvtx_emits(EMIT_PHASES)) nvtx_emit_phase(phase);
    if (!nvtx_emits(EMIT_TOKENS)) return false;
    nvtx_emit_push(EMIT_TOKENS, phase, current_call == GGTRACE_NO_CALL ? EMIT_NO_INDEX : current_call);
    return true;
}

typedef int (*token_function)(void * context, struct any_batch batch);

static int record_call(token_function real, void * context, const struct any_batch * batch, uint32_t kind) {
    const bool warm_up = atomic_load_explicit(&is_warming_up, memory_order_relaxed);
    in_call = true;
    current_call = warm_up ? GGTRACE_NO_CALL : atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
    is_left_out = !control_takes(current_call) || guard_begin((uint32_t) batch->tokens);
    clock_correct();
    const bool is_announced = announce(batch, kind, warm_up);
    const uint64_t start = clock_now();
    const int result = real(context, *batch);
    const uint64_t end = clock_now();
    if (is_announced) nvtx_emit_pop();
    const uint32_t flags = is_left_out ? GGTRACE_LEFT_OUT : 0;
    record_token(batch, start, end, result, context, (warm_up ? GGTRACE_WARM_UP : kind) | flags);
    guard_end(start, end);
    current_call = GGTRACE_NO_CALL;
    in_call = false;
    return result;
}

HOOK(int, llama_decode, void * context, struct any_batch batch) {
    REAL(token_function, llama_decode);
    if (recorder_ready(CALLER) < LEVEL_TOKEN) return real(context, batch);
    return record_call(real, context, &batch, GGTRACE_DECODE);
}

HOOK(int, llama_encode, void * context, struct any_batch batch) {
    REAL(token_function, llama_encode);
    if (recorder_ready(CALLER) < LEVEL_TOKEN) return real(context, batch);
    return record_call(real, context, &batch, GGTRACE_ENCODE);
}

typedef void (*warmup_function)(void * context, bool warmup);

HOOK(void, llama_set_warmup, void * context, bool warmup) {
    REAL(warmup_function, llama_set_warmup);
    atomic_store_explicit(&is_warming_up, warmup, memory_order_relaxed);
    real(context, warmup);
}

/*
 * A graph may only change between two computations when it is built anew, and then its scheduler has to reset, reserve or
 * allocate again: the registry need not look at its nodes as long as no scheduler did.
 */
enum { NO_SCHEDULER = -1 };
/* Graphs computed since the scheduler began. */
static __thread int splits __attribute__((tls_model("initial-exec"))) = NO_SCHEDULER;

typedef int (*schedule_function)(void * scheduler, void * cgraph);
typedef bool (*allocate_function)(void * scheduler, void * cgraph);
typedef void (*reset_function)(void * scheduler);

HOOK(int, ggml_backend_sched_graph_compute_async, void * scheduler, void * cgraph) {
    REAL(schedule_function, ggml_backend_sched_graph_compute_async);
    splits = 0;
    const int status = real(scheduler, cgraph);
    splits = NO_SCHEDULER;
    return status;
}

HOOK(bool, ggml_backend_sched_alloc_graph, void * scheduler, void * cgraph) {
    REAL(allocate_function, ggml_backend_sched_alloc_graph);
    registry_graphs_may_change();
    return real(scheduler, cgraph);
}

HOOK(bool, ggml_backend_sched_reserve, void * scheduler, void * cgraph) {
    REAL(allocate_function, ggml_backend_sched_reserve);
    registry_graphs_may_change();
    return real(scheduler, cgraph);
}

HOOK(void, ggml_backend_sched_reset, void * scheduler) {
    REAL(reset_function, ggml_backend_sched_reset);
    registry_graphs_may_change();
    real(scheduler);
}

typedef int (*graph_function)(void * backend, void * cgraph);
typedef void (*synchronize_function)(void * backend);

/*
 * Where a backend has no operator hook, and only if asked for: the scheduler is made to compute node by node, and each node
 * is timed until its backend is done. Such a run is slower than one without us; the log says so.
 */
static void record_synchronised(void * backend, void * cgraph, uint64_t start) {
    REAL(synchronize_function, ggml_backend_synchronize);
    if (real) real(backend);
    const uint64_t end = clock_now();
    const uint32_t tensor = registry_only_node(cgraph);
    struct ggtrace_writer * writer = tensor ? recorder_writer(0) : NULL;
    if (!writer) return;
    ggtrace_call(writer, start, current_call);
    ggtrace_operator(writer, tensor, start, end, end, 0);
}

static bool wants_every_node(void * tensor, bool ask, void * user) {
    (void) tensor, (void) ask, (void) user;
    return true;
}

typedef bool (*eval_callback)(void * tensor, bool ask, void * user);
typedef void (*callback_function)(void * scheduler, eval_callback callback, void * user);

HOOK(void, ggml_backend_sched_set_eval_callback, void * scheduler, eval_callback callback, void * user) {
    REAL(callback_function, ggml_backend_sched_set_eval_callback);
    const bool is_free = !callback && recorder_ready(CALLER) >= LEVEL_GRAPH && recorder_synchronises();
    real(scheduler, is_free ? wants_every_node : callback, user);
}

HOOK(int, ggml_backend_graph_compute_async, void * backend, void * cgraph) {
    REAL(graph_function, ggml_backend_graph_compute_async);
    const int level = recorder_ready(CALLER);
    if (level < LEVEL_GRAPH || (in_call ? is_left_out : !control_takes(GGTRACE_NO_CALL))) return real(backend, cgraph);
    const uint32_t name = registry_backend_name(backend);
    const uint32_t hooked_before = operators_seen();
    struct graph * graph = registry_graph(cgraph, name, splits != NO_SCHEDULER);
    clock_correct();
    const uint32_t split = splits == NO_SCHEDULER ? GGTRACE_NO_SPLIT : (uint32_t) splits++;
    const bool is_announced = nvtx_emits(EMIT_GRAPHS);
    if (is_announced) nvtx_emit_push(EMIT_GRAPHS, registry_backend_title(backend), split == GGTRACE_NO_SPLIT ? EMIT_NO_INDEX : split);
    const uint64_t start = clock_now();
    if (graph) atomic_store_explicit(&graph->call, current_call, memory_order_relaxed);
    if (graph && level >= LEVEL_OPERATOR) operators_graph_begin(graph, start);
    const int status = real(backend, cgraph);
    if (recorder_synchronises() && operators_seen() == hooked_before) record_synchronised(backend, cgraph, start);
    const uint64_t end = clock_now();
    if (graph && level >= LEVEL_OPERATOR) operators_graph_end(graph, end);
    if (is_announced) nvtx_emit_pop();
    struct ggtrace_writer * writer = recorder_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_graph(writer, start, end, graph ? graph->id : 0, current_call, status, name, split);
    return status;
}

typedef bool (*forward_function)(void * params, void * tensor);

/* ggml-cpu asks at the start of every node that is not fused, on every worker, whether special hardware takes it. */
HOOK(bool, ggml_cpu_extra_compute_forward, void * params, void * tensor) {
    REAL(forward_function, ggml_cpu_extra_compute_forward);
    if (atomic_load_explicit(&recorder_level, memory_order_relaxed) >= LEVEL_OPERATOR) operators_start(params, tensor);
    return real(params, tensor);
}

typedef void (*barrier_function)(void * threadpool);

HOOK(void, ggml_barrier, void * threadpool) {
    REAL(barrier_function, ggml_barrier);
    const bool records = atomic_load_explicit(&recorder_level, memory_order_relaxed) >= LEVEL_OPERATOR;
    const uint64_t enter = records ? operators_before_barrier() : 0;
    real(threadpool);
    if (records) operators_barrier(enter, operators_alone() ? enter : clock_now());
}

typedef void * (*allocation_function)(void * buffer_type, size_t size);

HOOK(void *, ggml_backend_buft_alloc_buffer, void * buffer_type, size_t size) {
    REAL(allocation_function, ggml_backend_buft_alloc_buffer);
    void * buffer = real(buffer_type, size);
    if (buffer && recorder_may_record()) registry_note_allocation(buffer, ggtrace_now());
    return buffer;
}

typedef void (*buffer_function)(void * buffer);

HOOK(void, ggml_backend_buffer_free, void * buffer) {
    REAL(buffer_function, ggml_backend_buffer_free);
    if (atomic_load_explicit(&recorder_level, memory_order_relaxed) >= LEVEL_GRAPH) {
        const uint32_t id = registry_buffer_forget(buffer);
        struct ggtrace_writer * writer = id ? recorder_writer(GGTRACE_NO_WORKER) : NULL;
        if (writer) ggtrace_free(writer, clock_now(), id);
    }
    real(buffer);
}

/* Inside one of the copies below: they call one another, and the outermost is the copy. */
static __thread bool in_copy __attribute__((tls_model("initial-exec")));

/* Copies between host and backend. */
static void record_copy(const void * tensor, uint64_t start, size_t size, uint32_t kind) {
    in_copy = false;
    struct ggtrace_writer * writer = recorder_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    const uint32_t buffer = registry_tensor_buffer(tensor);
    ggtrace_copy(writer, &(struct ggtrace_copy){
        .start = start,
        .end = clock_now(),
        .bytes = size,
        .source = kind == GGTRACE_GET ? buffer : 0,
        .target = kind == GGTRACE_SET ? buffer : 0,
        .tensor = registry_tensor(tensor),
        .kind = kind,
    });
}

/* Copies between two backends, such as a split's inputs. Asynchronous ones are timed as the caller sees them. */
static void record_transfer(const void * from, const void * to, uint64_t start) {
    in_copy = false;
    struct ggtrace_writer * writer = recorder_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    ggtrace_copy(writer, &(struct ggtrace_copy){
        .start = start,
        .end = clock_now(),
        .bytes = registry_tensor_bytes(from),
        .source = registry_tensor_buffer(from),
        .target = registry_tensor_buffer(to),
        .tensor = registry_tensor(to),
        .kind = GGTRACE_BETWEEN,
    });
}

typedef void (*get_function)(const void * tensor, void * data, size_t offset, size_t size);
typedef void (*set_function)(void * tensor, const void * data, size_t offset, size_t size);
typedef void (*get_async_function)(void * backend, const void * tensor, void * data, size_t offset, size_t size);
typedef void (*set_async_function)(void * backend, void * tensor, const void * data, size_t offset, size_t size);

/* Only inside a call: loading a model sets thousands of tensors, and is no part of the run. */
static bool records_copies(void) {
    if (!in_call || in_copy || is_left_out) return false;
    in_copy = atomic_load_explicit(&recorder_level, memory_order_relaxed) >= LEVEL_GRAPH;
    return in_copy;
}

HOOK(void, ggml_backend_tensor_get, const void * tensor, void * data, size_t offset, size_t size) {
    REAL(get_function, ggml_backend_tensor_get);
    const bool records = records_copies();
    const uint64_t start = records ? clock_now() : 0;
    real(tensor, data, offset, size);
    if (records) record_copy(tensor, start, size, GGTRACE_GET);
}

HOOK(void, ggml_backend_tensor_set, void * tensor, const void * data, size_t offset, size_t size) {
    REAL(set_function, ggml_backend_tensor_set);
    const bool records = records_copies();
    if (offset == 0 && !in_call && recorder_may_record()) registry_note_origin(tensor, data, size);
    const uint64_t start = records ? clock_now() : 0;
    real(tensor, data, offset, size);
    if (records) record_copy(tensor, start, size, GGTRACE_SET);
}

HOOK(void, ggml_backend_tensor_get_async, void * backend, const void * tensor, void * data, size_t offset, size_t size) {
    REAL(get_async_function, ggml_backend_tensor_get_async);
    const bool records = records_copies();
    const uint64_t start = records ? clock_now() : 0;
    real(backend, tensor, data, offset, size);
    if (records) record_copy(tensor, start, size, GGTRACE_GET);
}

HOOK(void, ggml_backend_tensor_set_async, void * backend, void * tensor, const void * data, size_t offset, size_t size) {
    REAL(set_async_function, ggml_backend_tensor_set_async);
    const bool records = records_copies();
    const uint64_t start = records ? clock_now() : 0;
    real(backend, tensor, data, offset, size);
    if (records) record_copy(tensor, start, size, GGTRACE_SET);
}

typedef void (*copy_function)(void * from, void * to);
typedef void (*copy_async_function)(void * backend_from, void * backend_to, void * from, void * to);

HOOK(void, ggml_backend_tensor_copy, void * from, void * to) {
    REAL(copy_function, ggml_backend_tensor_copy);
    const bool records = records_copies();
    const uint64_t start = records ? clock_now() : 0;
    real(from, to);
    if (records) record_transfer(from, to, start);
}

HOOK(void, ggml_backend_tensor_copy_async, void * backend_from, void * backend_to, void * from, void * to) {
    REAL(copy_async_function, ggml_backend_tensor_copy_async);
    const bool records = records_copies();
    const uint64_t start = records ? clock_now() : 0;
    real(backend_from, backend_to, from, to);
    if (records) record_transfer(from, to, start);
}
