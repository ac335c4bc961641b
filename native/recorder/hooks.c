#define _GNU_SOURCE
/*
 * The functions of llama.cpp and ggml that the recorder stands in front of, by LD_PRELOAD: exported names that are
 * called through the dynamic linker. Each hook resolves the real function once, calls it with the arguments as they
 * are, and returns its result; with nothing to record it does nothing else. What is recorded is decided elsewhere.
 */
#include <stddef.h>

#include "common/clock.h"
#include "recorder/calls.h"
#include "recorder/copies.h"
#include "recorder/graphs.h"
#include "recorder/libraries.h"
#include "recorder/operators.h"
#include "recorder/recorder.h"
#include "recorder/registry.h"
#include "recorder/runs.h"

#define HOOK(result, name, ...) \
    result name(__VA_ARGS__);   \
    __attribute__((visibility("default"))) result name(__VA_ARGS__)
#define CALLER __builtin_return_address(0)

/* `real`, of this type: the real function of a hook, looked up at its first call; threads that race find the same. */
#define REAL(name, result, ...)                                                                 \
    static _Atomic(void *) name##_real;                                                         \
    void * name##_found = atomic_load_explicit(&name##_real, memory_order_relaxed);             \
    if (__builtin_expect(!name##_found, 0)) {                                                   \
        name##_found = library_resolve(#name, CALLER);                                          \
        atomic_store_explicit(&name##_real, name##_found, memory_order_relaxed);                \
    }                                                                                           \
    result (*real)(__VA_ARGS__);                                                                \
    *(void **) &real = name##_found

/* ---- Calls ---- */

HOOK(int, llama_decode, void * context, struct any_batch batch) {
    REAL(llama_decode, int, void *, struct any_batch);
    if (recorder_ready(CALLER) < LEVEL_TOKEN) return real(context, batch);
    struct call call;
    calls_begin(&call, context, &batch, GGTRACE_DECODE);
    const int result = real(context, batch);
    calls_end(&call, result);
    return result;
}

HOOK(int, llama_encode, void * context, struct any_batch batch) {
    REAL(llama_encode, int, void *, struct any_batch);
    if (recorder_ready(CALLER) < LEVEL_TOKEN) return real(context, batch);
    struct call call;
    calls_begin(&call, context, &batch, GGTRACE_ENCODE);
    const int result = real(context, batch);
    calls_end(&call, result);
    return result;
}

HOOK(void, llama_set_warmup, void * context, bool warmup) {
    REAL(llama_set_warmup, void, void *, bool);
    calls_set_warm_up(warmup);
    real(context, warmup);
}

/* ---- Graphs ---- */

HOOK(int, ggml_backend_sched_graph_compute_async, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_graph_compute_async, int, void *, void *);
    runs_schedule();
    const int status = real(scheduler, cgraph);
    runs_scheduled();
    return status;
}

HOOK(bool, ggml_backend_sched_alloc_graph, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_alloc_graph, bool, void *, void *);
    graphs_may_change();
    return real(scheduler, cgraph);
}

HOOK(bool, ggml_backend_sched_reserve, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_reserve, bool, void *, void *);
    graphs_may_change();
    return real(scheduler, cgraph);
}

HOOK(void, ggml_backend_sched_reset, void * scheduler) {
    REAL(ggml_backend_sched_reset, void, void *);
    graphs_may_change();
    real(scheduler);
}

typedef bool (*eval_callback)(void * tensor, bool ask, void * user);

HOOK(void, ggml_backend_sched_set_eval_callback, void * scheduler, eval_callback callback, void * user) {
    REAL(ggml_backend_sched_set_eval_callback, void, void *, eval_callback, void *);
    const bool is_free = !callback && recorder_ready(CALLER) >= LEVEL_GRAPH && recording.synchronises;
    real(scheduler, is_free ? runs_want_every_node : callback, user);
}

static void synchronize(void * backend) {
    REAL(ggml_backend_synchronize, void, void *);
    if (real) real(backend);
}

HOOK(int, ggml_backend_graph_compute_async, void * backend, void * cgraph) {
    REAL(ggml_backend_graph_compute_async, int, void *, void *);
    struct run run;
    runs_begin(&run, backend, cgraph, recorder_ready(CALLER));
    const int status = real(backend, cgraph);
    if (runs_synchronise(&run)) {
        synchronize(backend);
        runs_synchronised(&run, cgraph);
    }
    runs_end(&run, status);
    return status;
}

/* ---- Operators ---- */

/* ggml-cpu asks at the start of every node that is not fused, on every worker, whether special hardware takes it. */
HOOK(bool, ggml_cpu_extra_compute_forward, void * params, void * tensor) {
    REAL(ggml_cpu_extra_compute_forward, bool, void *, void *);
    if (recording_level() >= LEVEL_OPERATOR) operators_start(params, tensor);
    return real(params, tensor);
}

HOOK(void, ggml_barrier, void * threadpool) {
    REAL(ggml_barrier, void, void *);
    const bool records = recording_level() >= LEVEL_OPERATOR;
    const uint64_t enter = records ? operators_before_barrier() : 0;
    real(threadpool);
    if (records) operators_barrier(enter, operators_alone() ? enter : clock_now());
}

/* ---- Buffers ---- */

HOOK(void *, ggml_backend_buft_alloc_buffer, void * buffer_type, size_t size) {
    REAL(ggml_backend_buft_alloc_buffer, void *, void *, size_t);
    void * buffer = real(buffer_type, size);
    if (buffer && recording_level() != LEVEL_OFF) registry_note_allocation(buffer, ggtrace_now());
    return buffer;
}

static void record_free(void * buffer) {
    const uint32_t id = registry_buffer_forget(buffer);
    struct ggtrace_writer * writer = id ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_free(writer, clock_now(), id);
}

HOOK(void, ggml_backend_buffer_free, void * buffer) {
    REAL(ggml_backend_buffer_free, void, void *);
    if (recording_level() >= LEVEL_GRAPH) record_free(buffer);
    real(buffer);
}

/* ---- Copies ---- */

HOOK(void, ggml_backend_tensor_get, const void * tensor, void * data, size_t offset, size_t size) {
    REAL(ggml_backend_tensor_get, void, const void *, void *, size_t, size_t);
    const uint64_t start = copies_begin();
    real(tensor, data, offset, size);
    copies_end(start, tensor, size, GGTRACE_GET);
}

HOOK(void, ggml_backend_tensor_set, void * tensor, const void * data, size_t offset, size_t size) {
    REAL(ggml_backend_tensor_set, void, void *, const void *, size_t, size_t);
    copies_note_origin(tensor, data, offset, size);
    const uint64_t start = copies_begin();
    real(tensor, data, offset, size);
    copies_end(start, tensor, size, GGTRACE_SET);
}

HOOK(void, ggml_backend_tensor_get_async, void * backend, const void * tensor, void * data, size_t offset, size_t size) {
    REAL(ggml_backend_tensor_get_async, void, void *, const void *, void *, size_t, size_t);
    const uint64_t start = copies_begin();
    real(backend, tensor, data, offset, size);
    copies_end(start, tensor, size, GGTRACE_GET);
}

HOOK(void, ggml_backend_tensor_set_async, void * backend, void * tensor, const void * data, size_t offset, size_t size) {
    REAL(ggml_backend_tensor_set_async, void, void *, void *, const void *, size_t, size_t);
    const uint64_t start = copies_begin();
    real(backend, tensor, data, offset, size);
    copies_end(start, tensor, size, GGTRACE_SET);
}

HOOK(void, ggml_backend_tensor_copy, void * from, void * to) {
    REAL(ggml_backend_tensor_copy, void, void *, void *);
    const uint64_t start = copies_begin();
    real(from, to);
    copies_end_between(start, from, to);
}

HOOK(void, ggml_backend_tensor_copy_async, void * backend_from, void * backend_to, void * from, void * to) {
    REAL(ggml_backend_tensor_copy_async, void, void *, void *, void *, void *);
    const uint64_t start = copies_begin();
    real(backend_from, backend_to, from, to);
    copies_end_between(start, from, to);
}
