#define _GNU_SOURCE
#include "recorder/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "common/clock.h"
#include "common/table.h"
#include "nvtx/emit.h"
#include "recorder/contexts.h"
#include "recorder/control.h"
#include "recorder/guard.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

static _Atomic uint32_t call_count;
static _Atomic bool is_warming_up;
static __thread uint32_t current __attribute__((tls_model("initial-exec"))) = GGTRACE_NO_CALL;
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
/* A call of llama_decode became one of llama_context::encode, because the context has no memory. */
static __thread bool has_encoded __attribute__((tls_model("initial-exec")));
/* Of this thread's call: its events are not recorded, only the call itself. */
static __thread bool is_left_out __attribute__((tls_model("initial-exec")));

void calls_set_warm_up(bool warm_up) {
    atomic_store_explicit(&is_warming_up, warm_up, memory_order_relaxed);
}

bool calls_are_warm_ups(void) {
    return atomic_load_explicit(&is_warming_up, memory_order_relaxed);
}

uint32_t calls_latest(void) {
    return atomic_load_explicit(&call_count, memory_order_relaxed) - 1;
}

uint32_t calls_current(void) {
    return current;
}

bool calls_inside(void) {
    return is_inside;
}

bool calls_take(void) {
    return is_inside ? !is_left_out : control_takes(GGTRACE_NO_CALL);
}

static const char * phase_of(const struct call * call) {
    switch (call->kind & GGTRACE_KIND) {
        case GGTRACE_ENCODE: return "encode";
        case GGTRACE_COMPUTE: return "compute";
        default: return call->kind & GGTRACE_EMBEDS ? "encode" : batch_decodes(&call->batch) ? "decode" : "prefill";
    }
}

/* Announces a call; true: the caller must end its range. */
static bool announce(const struct call * call) {
    if (!nvtx_emits(EMIT_PHASES | EMIT_TOKENS)) return false;
    const bool is_warm_up = call->kind == GGTRACE_WARM_UP || call->may_warm_up;
    const char * phase = is_warm_up ? "warm-up" : phase_of(call);
    if (nvtx_emits(EMIT_PHASES)) nvtx_emit_phase(phase);
    if (!nvtx_emits(EMIT_TOKENS)) return false;
    nvtx_emit_push(EMIT_TOKENS, phase, current == GGTRACE_NO_CALL ? EMIT_NO_INDEX : current);
    return true;
}

/* ---- Warm-up calls without llama_set_warmup ---- */

enum { WARM_UP_TOKENS_MAX = 2 };

/* The latest call. It is a warm-up if its context is reset before the next call. */
static struct {
    bool is_held;
    struct call call;
    uint64_t end;
    int result;
    uint32_t flags;
    bool has_change;
    struct ggtrace_sequence change; /* of the context's memory, after the call */
} held;
static struct table contexts;
enum { HAS_CALLS = 1 }; /* of a context: it has had calls that were not warm-ups */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void write_call(const struct call * call, uint64_t end, int result, uint32_t number, uint32_t kind) {
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    if (call->batch.tokens > 1 && call->batch.outputs >= call->batch.tokens) kind |= GGTRACE_ALL_OUTPUT;
    ggtrace_token(writer, &(struct ggtrace_token){
        .start = call->start,
        .end = end,
        .call = number,
        .tokens = call->batch.tokens,
        .kind = kind,
        .result = result,
        .context = (uint64_t) (uintptr_t) call->context,
    }, call->batch.spans, call->batch.span_count);
}

static uint32_t next_number(void) {
    return atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
}

static uint64_t context_key(const void * context) {
    return mix(11, (uint64_t) (uintptr_t) context);
}

/* Under the lock. */
static void write_held(bool is_warm_up) {
    if (!held.is_held) return;
    held.is_held = false;
    struct entry * entry = is_warm_up ? NULL : table_at(&contexts, context_key(held.call.context));
    if (entry) entry->id = HAS_CALLS;
    const uint32_t number = is_warm_up ? GGTRACE_NO_CALL : next_number();
    write_call(&held.call, held.end, held.result, number, (is_warm_up ? GGTRACE_WARM_UP : held.call.kind) | held.flags);
    struct ggtrace_writer * writer = held.has_change && !is_warm_up ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_sequence(writer, &held.change);
}

enum calls_of calls_of_context(const void * context) {
    pthread_mutex_lock(&lock);
    const struct entry * entry = table_at(&contexts, context_key(context));
    const bool is_held = held.is_held && held.call.context == context;
    const enum calls_of calls = entry && entry->id == HAS_CALLS ? CALLS_SOME : is_held ? CALLS_HELD : CALLS_NONE;
    pthread_mutex_unlock(&lock);
    return calls;
}

void calls_hold_change(const struct ggtrace_sequence * change) {
    pthread_mutex_lock(&lock);
    if (held.is_held && !held.has_change) {
        held.change = *change;
        held.has_change = true;
    }
    pthread_mutex_unlock(&lock);
}

const void * calls_held(void) {
    pthread_mutex_lock(&lock);
    const void * context = held.is_held ? held.call.context : NULL;
    pthread_mutex_unlock(&lock);
    return context;
}

void calls_reset(const void * context) {
    pthread_mutex_lock(&lock);
    if (held.call.context == context) write_held(true);
    pthread_mutex_unlock(&lock);
}

void calls_note_restored(const void * context) {
    pthread_mutex_lock(&lock);
    struct entry * entry = table_at(&contexts, context_key(context));
    if (entry) entry->id = HAS_CALLS;
    pthread_mutex_unlock(&lock);
}

void calls_forget(const void * context) {
    pthread_mutex_lock(&lock);
    struct entry * entry = table_at(&contexts, context_key(context));
    if (entry) entry->id = 0;
    pthread_mutex_unlock(&lock);
}

void calls_finish(void) {
    pthread_mutex_lock(&lock);
    write_held(false);
    pthread_mutex_unlock(&lock);
}

/* Only llama.cpp's own tools make such warm-ups; the first call of another program may well have one token. */
static bool is_tool(const void * caller) {
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname) return false;
    const char * slash = strrchr(info.dli_fname, '/'), * name = slash ? slash + 1 : info.dli_fname;
    return strncmp(name, "libllama-", 9) == 0 || strncmp(name, "llama-", 6) == 0;
}

/* When another call begins, the held call is an ordinary call. */
static bool may_warm_up(const struct call * call, const void * caller) {
    pthread_mutex_lock(&lock);
    write_held(false);
    struct entry * entry = table_at(&contexts, context_key(call->context));
    const bool may = entry && entry->id != HAS_CALLS && call->batch.tokens <= WARM_UP_TOKENS_MAX && is_tool(caller);
    if (entry && !may) entry->id = HAS_CALLS;
    pthread_mutex_unlock(&lock);
    return may;
}

/* ---- Calls ---- */

/* Does the context pool its results (mean, last, rank …)? Then they are embeddings or scores. */
static bool pools(const void * context, const void * caller) {
    static _Atomic(void *) function;
    static _Atomic bool was_sought;
    if (!atomic_load_explicit(&was_sought, memory_order_acquire)) {
        atomic_store_explicit(&function, library_resolve("llama_pooling_type", caller), memory_order_relaxed);
        atomic_store_explicit(&was_sought, true, memory_order_release);
    }
    int (*pooling_type)(const void *);
    *(void **) &pooling_type = atomic_load_explicit(&function, memory_order_relaxed);
    return pooling_type && pooling_type(context) > 0;
}

/* whisper.cpp's encoder computes three graphs in sequence. The inputs of the last one have no names of their own. */
static __thread bool has_encoded_audio __attribute__((tls_model("initial-exec")));

uint32_t calls_read_graph(struct call * call, void * cgraph) {
    const struct ggml_api * api = &recording.api;
    const bool is_behind = has_encoded_audio;
    has_encoded_audio = false;
    call->part = NULL;
    call->batch.tokens = call->batch.outputs = call->batch.span_count = 0;
    if (!api->graph_get_tensor || recording_level() < LEVEL_GRAPH) return GGTRACE_COMPUTE;
    const void * tokens = api->graph_get_tensor(cgraph, "inp_tokens"); /* llama.cpp */
    if (!tokens && api->graph_get_tensor(cgraph, "position")) {
        tokens = api->graph_get_tensor(cgraph, "embd");
        /* Other ggml programs use the same two names, but have no mask. */
        if (tokens && api->graph_get_tensor(cgraph, "KQ_mask")) call->part = "whisper: decoder";
    }
    if (tokens) {
        call->batch.tokens = (uint32_t) layout_i64(tokens, recording.layout.ne);
        return GGTRACE_DECODE | GGTRACE_BY_GRAPH;
    }
    if (api->graph_get_tensor(cgraph, "mel")) call->part = "whisper: convolution";
    else if (api->graph_get_tensor(cgraph, "embd_conv (view)")) call->part = "whisper: encoder";
    else if (is_behind) call->part = "whisper: cross-attention";
    has_encoded_audio = call->part && strcmp(call->part, "whisper: encoder") == 0;
    return call->part ? GGTRACE_ENCODE | GGTRACE_BY_GRAPH : GGTRACE_COMPUTE;
}

void calls_pass(uint32_t kind) {
    if (kind == GGTRACE_ENCODE) has_encoded = true;
}

void calls_begin(struct call * call, void * context, uint32_t kind, const void * caller) {
    const bool is_warm_up = atomic_load_explicit(&is_warming_up, memory_order_relaxed);
    const bool has_context = kind == GGTRACE_DECODE || kind == GGTRACE_ENCODE;
    call->context = context;
    call->kind = is_warm_up ? GGTRACE_WARM_UP : kind;
    if (call->kind == GGTRACE_DECODE && pools(context, caller) && !contexts_is_without_embeddings(context)) call->kind |= GGTRACE_EMBEDS;
    call->may_warm_up = has_context && may_warm_up(call, caller) && !is_warm_up;
    if (has_context) contexts_set_last_output(context, call->batch.last_output);
    is_inside = true;
    has_encoded = false;
    current = is_warm_up || call->may_warm_up ? GGTRACE_NO_CALL : next_number();
    is_left_out = !control_takes(current) || guard_begin(call->batch.tokens);
    clock_correct();
    call->is_announced = announce(call);
    call->start = clock_now();
    struct ggtrace_writer * writer = call->part ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_range_begin(writer, call->start, registry_name(call->part));
}

void calls_end(const struct call * call, int result) {
    const uint64_t end = clock_now();
    if (call->is_announced) nvtx_emit_pop();
    struct ggtrace_writer * writer = call->part ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_range_end(writer, end);
    uint32_t flags = is_left_out ? GGTRACE_LEFT_OUT : 0;
    if (has_encoded && call->kind == GGTRACE_DECODE) flags |= GGTRACE_EMBEDS;
    if (call->may_warm_up) {
        pthread_mutex_lock(&lock);
        held.call = *call;
        held.end = end;
        held.result = result;
        held.flags = flags;
        held.has_change = false;
        held.is_held = true;
        pthread_mutex_unlock(&lock);
    } else {
        write_call(call, end, result, current, call->kind | flags);
    }
    guard_end(call->start, end);
    current = GGTRACE_NO_CALL;
    is_inside = false;
}
