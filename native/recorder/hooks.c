/*
 * The functions of llama.cpp and ggml that the recorder interposes by LD_PRELOAD: exported names that are called through the
 * dynamic linker. Each hook resolves the real function once, calls it with the same arguments, and returns its result. If
 * nothing is recorded, it does nothing else. Other files decide what is recorded.
 */

#include "common/clock.h"
#include "recorder/calls.h"
#include "recorder/contexts.h"
#include "recorder/copies.h"
#include "recorder/cuda-work.h"
#include "recorder/functions.h"
#include "recorder/graphs.h"
#include "recorder/hook.h"
#include "recorder/libraries.h"
#include "recorder/loading.h"
#include "recorder/numa.h"
#include "recorder/operators.h"
#include "recorder/parts.h"
#include "recorder/placement.h"
#include "recorder/program.h"
#include "recorder/recorder.h"
#include "recorder/registry.h"
#include "recorder/runs.h"
#include "recorder/thread-runtimes.h"

/* ---- Calls ---- */

/*
 * A call passes several of these hooks, nested: the outermost is the call. Programs that find llama_decode by dlsym (ctypes,
 * llama-cpp-python) pass only the C++ methods, which libllama itself calls through its PLT: there, `context` is `this`.
 */
#define CALL(name, read, kind, ...)                                                             \
    const bool is_inner = calls_inside_of(context, &name##_real);                               \
    if (is_inner) calls_pass(kind);                                                             \
    if (is_inner || recorder_ready(CALLER) < LEVEL_TOKEN) return real(__VA_ARGS__);            \
    functions_note_seen(SEEN_CALLS);                                                            \
    struct call call;                                                                           \
    call.part = NULL;                                                                           \
    call.since = 0;                                                                             \
    read;                                                                                       \
    calls_begin(&call, (struct call_hook){&name##_real, HERE, CALLER}, context, kind);          \
    const int result = real(__VA_ARGS__);                                                       \
    calls_end(&call, result);                                                                   \
    return result

/* These take the batch by value, until 0.7.0, which still exports them. */
#define CALL_BY_VALUE(name, kind)                                                               \
    HOOK(int, name, void * context, struct any_batch batch) {                                   \
        REAL(name);                                                                             \
        CALL(name, batch_read(&call.batch, &batch), kind, context, batch);                      \
    }
#define CALL_BY_REFERENCE(name, kind)                                                           \
    HOOK(int, name, void * context, const struct any_batch * batch) {                           \
        REAL(name);                                                                             \
        if (!calls_inside() && recorder_ready(CALLER) >= LEVEL_TOKEN) functions_note_bypassed(CALLER); \
        CALL(name, batch_read(&call.batch, batch), kind, context, batch);                       \
    }
#define CALL_OF_EXT(name, kind)                                                                 \
    HOOK(int, name, void * context, const void * batch) {                                       \
        REAL(name);                                                                             \
        if (!calls_inside() && recorder_ready(CALLER) >= LEVEL_TOKEN) functions_note_bypassed(CALLER); \
        CALL(name, batch_ext_read(&call.batch, batch), kind, context, batch);                   \
    }

CALL_BY_VALUE(llama_decode, GGTRACE_DECODE)
CALL_BY_VALUE(llama_encode, GGTRACE_ENCODE)
/* int llama_context::decode(llama_batch &), (const llama_batch &), (const llama_batch_ext &) */
CALL_BY_REFERENCE(_ZN13llama_context6decodeER11llama_batch, GGTRACE_DECODE)
CALL_BY_REFERENCE(_ZN13llama_context6decodeERK11llama_batch, GGTRACE_DECODE)
CALL_OF_EXT(_ZN13llama_context6decodeERK15llama_batch_ext, GGTRACE_DECODE)
CALL_BY_REFERENCE(_ZN13llama_context6encodeER11llama_batch, GGTRACE_ENCODE)
CALL_BY_REFERENCE(_ZN13llama_context6encodeERK11llama_batch, GGTRACE_ENCODE)
CALL_OF_EXT(_ZN13llama_context6encodeERK15llama_batch_ext, GGTRACE_ENCODE)

/* llama.h of 0.7.0: LLAMA_PROCESS_TYPE_ENCODE is 0, LLAMA_PROCESS_TYPE_DECODE 1. */
HOOK(int32_t, llama_process, void * context, int type, void * batch) {
    REAL(llama_process);
    CALL(llama_process, batch_ext_read(&call.batch, batch), type == 0 ? GGTRACE_ENCODE : GGTRACE_DECODE, context, type, batch);
}

/*
 * The functions that fill a llama_batch_ext. llama_batch_ext_add_token and similar functions call these methods through the PLT.
 * Inside a call, llama.cpp makes batches for its own use.
 */
HOOK_AFTER(int, _ZN15llama_batch_ext9add_tokenEi, if (!calls_inside()) batch_ext_added(batch, result, sequence),
    LIST(void * batch, int sequence), batch, sequence)

HOOK_AFTER(bool, _ZN15llama_batch_ext13set_token_posEiPKi, if (result && !calls_inside()) batch_ext_placed(batch, index, *position),
    LIST(void * batch, int index, const int * position), batch, index, position)

HOOK_AFTER_VOID(_ZN15llama_batch_ext5clearEv, if (!calls_inside()) batch_ext_cleared(batch), void * batch, batch)

/* A new batch may have the address of an older one. */
HOOK_AFTER_VOID(_ZN15llama_batch_extC1EP13llama_context, if (!calls_inside()) batch_ext_cleared(batch),
    LIST(void * batch, void * context), batch, context)

HOOK_AFTER_VOID(_ZN15llama_batch_ext10set_outputEib, if (output && !calls_inside()) batch_ext_output(batch, index),
    LIST(void * batch, int index, bool output), batch, index, output)

HOOK_BEFORE_VOID(llama_batch_ext_free, batch_ext_cleared(batch), void * batch, batch)

HOOK_BEFORE_VOID(llama_perf_context_reset, calls_reset(context), void * context, context)

HOOK_BEFORE_VOID(llama_set_warmup, calls_set_warm_up(warmup), LIST(void * context, bool warmup), context, warmup)

HOOK_BEFORE_VOID(llama_set_embeddings, contexts_set_embeddings(context, embeddings),
    LIST(void * context, bool embeddings), context, embeddings)

/* ---- Graphs ---- */

/* A scheduler that allocated a graph on this thread outside of a call, and when: the call of that graph begins with it. */
static __thread struct { const void * scheduler; uint64_t start; } allocated __attribute__((tls_model("initial-exec")));

static uint64_t allocated_at(const void * scheduler) {
    const uint64_t start = allocated.scheduler == scheduler ? allocated.start : 0;
    allocated.scheduler = NULL;
    return start;
}

static void leave_devices(uint32_t before) {
    (void) before;
    cuda_leave();
}

/* Outside of a call: whisper.cpp, programs that use ggml directly, libraries that bind llama_decode inside. */
static int schedule(int (*real)(void * scheduler, void * cgraph), struct call_hook hook, void * scheduler, void * cgraph) {
    struct call call;
    const bool is_call = !calls_inside_of(scheduler, hook.which) && recorder_ready(hook.caller) >= LEVEL_TOKEN;
    call.since = allocated_at(scheduler);
    if (is_call) calls_begin(&call, hook, scheduler, calls_read_graph(&call, cgraph));
    placement_report_devices();
    struct run outer;
    const bool is_run = runs_schedule(&outer, hook.at, cgraph, recording_level());
    if (is_run) frames_begin(hook.at, leave_devices, 0);
    const int status = real(scheduler, cgraph);
    if (is_run && frames_end(hook.at)) cuda_settle();
    runs_scheduled(&outer, is_run, hook.at, cgraph, recording_level(), status);
    if (is_call) calls_end(&call, status);
    return status;
}

static __thread bool is_scheduling __attribute__((tls_model("initial-exec")));

static void leave_scheduling(uint32_t before) {
    is_scheduling = before;
}

HOOK(int, ggml_backend_sched_graph_compute_async, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_graph_compute_async);
    const struct call_hook hook = {&ggml_backend_sched_graph_compute_async_real, HERE, CALLER};
    return is_scheduling ? real(scheduler, cgraph) : schedule(real, hook, scheduler, cgraph);
}

/* It calls the function above. In a program that contains ggml, that may have become a part of it. */
HOOK(int, ggml_backend_sched_graph_compute, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_graph_compute);
    if (!program_has_ggml() || is_scheduling) return real(scheduler, cgraph);
    is_scheduling = true;
    frames_begin(HERE, leave_scheduling, false);
    const int status = schedule(real, (struct call_hook){&ggml_backend_sched_graph_compute_real, HERE, CALLER}, scheduler, cgraph);
    frames_end(HERE);
    is_scheduling = false;
    return status;
}

HOOK(bool, ggml_backend_sched_alloc_graph, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_alloc_graph);
    graphs_may_change();
    const bool is_outside = !calls_inside() && recorder_ready(CALLER) >= LEVEL_TOKEN;
    if (is_outside) allocated.start = clock_now();
    const uint64_t start = parts_begin();
    const bool has_room = real(scheduler, cgraph);
    parts_end(start, GGTRACE_ALLOCATE);
    allocated.scheduler = is_outside ? scheduler : NULL;
    return has_room;
}

HOOK(bool, ggml_backend_sched_reserve, void * scheduler, void * cgraph) {
    REAL(ggml_backend_sched_reserve);
    graphs_may_change();
    const uint64_t start = parts_begin();
    struct stage stage; /* outside of a call */
    loading_begin(&stage, HERE, GGTRACE_RESERVE_GRAPHS, NULL);
    if (calls_inside()) stage.function.start = 0;
    else if (recording_level() >= LEVEL_GRAPH) graphs_expect(cgraph);
    const bool has_room = real(scheduler, cgraph);
    loading_end(&stage);
    parts_end(start, GGTRACE_RESERVE);
    return has_room;
}

HOOK_BEFORE_VOID(ggml_backend_sched_reset, graphs_may_change(), void * scheduler, scheduler)

typedef bool (*eval_callback)(void * tensor, bool ask, void * user);

HOOK(void, ggml_backend_sched_set_eval_callback, void * scheduler, eval_callback callback, void * user) {
    REAL(ggml_backend_sched_set_eval_callback);
    const bool is_free = !callback && recorder_ready(CALLER) >= LEVEL_GRAPH && recording.synchronises;
    real(scheduler, is_free ? runs_want_every_node : callback, user);
}

void ggml_backend_synchronize(void * backend);

/* Not by its hook: it is the recorder that waits. */
static void synchronize(void * backend) {
    FOUND(ggml_backend_synchronize);
    if (real) real(backend);
}

/* A graph run of `backend`, which NULL is if there is none. `real` computes it from its two arguments. */
static int compute(int (*real)(void *, void *), uintptr_t here, const void * caller, void * first, void * second, void * backend, void * cgraph) {
    struct run outer;
    runs_begin(&outer, here, backend, cgraph, recorder_ready(caller));
    frames_begin(here, leave_devices, 0);
    const int status = real(first, second);
    const bool is_here = frames_end(here);
    if (runs_synchronise()) {
        if (backend) synchronize(backend);
        runs_synchronised(cgraph);
    }
    if (is_here) cuda_settle();
    runs_end(&outer, here, status);
    return status;
}

HOOK(int, ggml_backend_graph_compute_async, void * backend, void * cgraph) {
    REAL(ggml_backend_graph_compute_async);
    return compute(real, HERE, CALLER, backend, cgraph, backend, cgraph);
}

/*
 * ggml_status ggml_backend_cpu_graph_compute(ggml_backend_t, ggml_cgraph *), static: what a scheduler calls where a compiler has made the
 * function above a part of the scheduler's own.
 */
HOOK(int, _ZL30ggml_backend_cpu_graph_computeP12ggml_backendP11ggml_cgraph, void * backend, void * cgraph) {
    REAL(_ZL30ggml_backend_cpu_graph_computeP12ggml_backendP11ggml_cgraph);
    return runs_current() ? real(backend, cgraph) : compute(real, HERE, CALLER, backend, cgraph, backend, cgraph);
}

/* ggml without a backend. If the CPU backend calls this, the graph run has begun already. */
HOOK(int, ggml_graph_compute, void * cgraph, void * plan) {
    REAL(ggml_graph_compute);
    return runs_current() ? real(cgraph, plan) : compute(real, HERE, CALLER, cgraph, plan, NULL, cgraph);
}

/* ---- Operators ---- */

/* ggml-cpu calls this on every worker at the start of every node that is not fused, to ask whether special hardware computes it. */
HOOK(bool, ggml_cpu_extra_compute_forward, void * params, void * tensor) {
    FOUND(ggml_cpu_extra_compute_forward);
    if (!operators_start_plain(tensor) && recording_level() >= LEVEL_OPERATOR) operators_start(params, tensor);
    return real(params, tensor);
}

HOOK(void, ggml_barrier, void * threadpool) {
    if (operators_barrier_plain(threadpool)) return;
    FOUND(ggml_barrier);
    if (recording_level() >= LEVEL_OPERATOR) operators_barrier(real, threadpool);
    else real(threadpool);
}

/* ---- Threads ---- */

HOOK_BEFORE(void *, ggml_threadpool_new, if (recorder_ready(CALLER) >= LEVEL_TOKEN) thread_runtimes_note_pool(params),
    void * params, params)

/* llama.cpp's `--numa`: its function finds ggml's by name in a library that was loaded later. */
HOOK(void, ggml_numa_init, int mode) {
    REAL(ggml_numa_init);
    if (recorder_ready(CALLER) >= LEVEL_TOKEN) numa_note_mode(mode);
    if (real) real(mode);
}

/* ---- Buffers ---- */

HOOK_AFTER(void *, ggml_backend_buft_alloc_buffer, if (result && recording_level() != LEVEL_OFF) registry_note_allocation(result, ggtrace_now()),
    LIST(void * buffer_type, size_t size), buffer_type, size)

HOOK_AFTER_VOID(ggml_backend_buffer_set_usage, if (usage == GGTRACE_USAGE_WEIGHTS && recording_level() >= LEVEL_GRAPH) registry_expect_buffer(buffer),
    LIST(void * buffer, int usage), buffer, usage)

static void record_free(void * buffer) {
    const uint32_t id = registry_buffer_forget(buffer);
    if (id) numa_end_buffer(id);
    struct ggtrace_writer * writer = id ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_free(writer, clock_now(), id);
}

HOOK_BEFORE_VOID(ggml_backend_buffer_free, if (recording_level() >= LEVEL_GRAPH) record_free(buffer), void * buffer, buffer)

/* ---- Copies ---- */

HOOK_AROUND(ggml_backend_tensor_get, const uint64_t start = copies_begin(HERE), copies_end(HERE, start, tensor, size, GGTRACE_GET),
    LIST(const void * tensor, void * data, size_t offset, size_t size), tensor, data, offset, size)

HOOK_AROUND(ggml_backend_tensor_set, LIST(copies_note_origin(tensor, data, offset, size); const uint64_t start = copies_begin(HERE), load_start = loading_copy_begin()),
    copies_end(HERE, start, tensor, size, GGTRACE_SET); loading_copy_end(load_start, size),
    LIST(void * tensor, const void * data, size_t offset, size_t size), tensor, data, offset, size)

HOOK_AROUND(ggml_backend_tensor_get_async, const uint64_t start = copies_begin(HERE), copies_end(HERE, start, tensor, size, GGTRACE_GET),
    LIST(void * backend, const void * tensor, void * data, size_t offset, size_t size), backend, tensor, data, offset, size)

HOOK_AROUND(ggml_backend_tensor_set_async, LIST(const uint64_t start = copies_begin(HERE), load_start = loading_copy_begin()),
    copies_end(HERE, start, tensor, size, GGTRACE_SET); loading_copy_end(load_start, size),
    LIST(void * backend, void * tensor, const void * data, size_t offset, size_t size), backend, tensor, data, offset, size)

HOOK_AROUND(ggml_backend_tensor_copy, const uint64_t start = copies_begin(HERE), copies_end_between(HERE, start, from, to),
    LIST(void * from, void * to), from, to)

HOOK_AROUND(ggml_backend_tensor_copy_async, const uint64_t start = copies_begin(HERE), copies_end_between(HERE, start, from, to),
    LIST(void * backend_from, void * backend_to, void * from, void * to), backend_from, backend_to, from, to)
