#include "recorder/calls.h"

#include "common/clock.h"
#include "common/hold.h"
#include "common/table.h"
#include "log/ggtrace-kept.h"
#include "nvtx/emit.h"
#include "recorder/contexts.h"
#include "recorder/control.h"
#include "recorder/frames.h"
#include "recorder/guard.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"
#include "recorder/registry.h"
#include "recorder/resources.h"

static _Atomic uint32_t call_count;
static _Atomic bool is_warming_up;
static __thread uint32_t current __attribute__((tls_model("initial-exec"))) = GGTRACE_NO_CALL;
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
/* A call of llama_decode became one of llama_context::encode, because the context has no memory. */
static __thread bool has_encoded __attribute__((tls_model("initial-exec")));
/* Of this thread's call: its events are not recorded, only the call itself. */
static __thread bool is_left_out __attribute__((tls_model("initial-exec")));
/* What is recorded of this thread's call if nothing returns from it: the frame that has the rest is gone then. */
static __thread struct {
    struct call_hook hook;
    void * context;
    const char * part;
    uint64_t start;
    uint32_t kind, tokens, outputs;
    enum holding holding;
    bool is_announced, follows_unread;
} begun __attribute__((tls_model("initial-exec")));

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

bool calls_inside_of(const void * context, const void * which) {
    if (!is_inside) return false;
    if (begun.hook.which == which && begun.context == context) frames_leave(begun.hook.at);
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
    const bool is_warm_up = call->kind == GGTRACE_WARM_UP || call->holding == HELD_WITHOUT_NUMBER;
    const char * phase = is_warm_up ? "warm-up" : phase_of(call);
    if (nvtx_emits(EMIT_PHASES)) nvtx_emit_phase(phase);
    if (!nvtx_emits(EMIT_TOKENS)) return false;
    nvtx_emit_push(EMIT_TOKENS, phase, current == GGTRACE_NO_CALL ? EMIT_NO_INDEX : current);
    return true;
}

/* ---- Warm-up calls without llama_set_warmup ---- */

enum {
    WARM_UP_TOKENS_MAX = 2, /* of llama.cpp's common_init_from_params: BOS and EOS */
    HELD_MAX = 32,
};

/* The first calls of a context, until it is known whether they are a warm-up. Other calls release them. */
static struct {
    _Atomic int count; /* changed under the lock */
    const void * context;
    bool has_change;
    struct ggtrace_sequence change; /* of the context's memory, after the first call */
    struct held {
        struct call call;
        uint64_t end;
        int result;
        uint32_t number; /* GGTRACE_NO_CALL: it gets one, and a record, when its kind is known; else it has a record */
        uint32_t flags;
    } calls[HELD_MAX];
} held;
static struct table contexts;
/*
 * Of a context: it has had calls that were no warm-ups; it has had no call, but its memory was cleared; its next calls are no warm-up: it had
 * one, or its memory was cleared twice, as llama-bench does where it has none: when it made the context, and before each run.
 */
enum { HAS_CALLS = 1, IS_CLEARED = 2, IS_READY = 3 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void write_call(const struct call * call, uint64_t end, int result, uint32_t number, uint32_t kind) {
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    if (call->batch.tokens > 1 && call->batch.outputs >= call->batch.tokens) kind |= GGTRACE_ALL_OUTPUT;
    if (result != GGTRACE_LEFT) ggtrace_resources(writer, &call->resources);
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

static struct entry * entry_of(const void * context) {
    return table_at(&contexts, mix(11, (uint64_t) (uintptr_t) context));
}

static void set_state(const void * context, uint32_t state) {
    struct entry * entry = entry_of(context);
    if (entry) entry->id = state;
}

/* Under the lock. */
static void release(bool are_warm_ups) {
    const int count = held.count;
    if (!count) return;
    held.count = 0;
    if (!are_warm_ups) set_state(held.context, HAS_CALLS);
    for (int i = 0; i < count; i++) {
        const struct held * of = &held.calls[i];
        const uint32_t kind = are_warm_ups ? GGTRACE_WARM_UP | GGTRACE_INFERRED_KIND : of->call.kind;
        const bool is_unwritten = of->number == GGTRACE_NO_CALL;
        const uint32_t number = is_unwritten && !are_warm_ups ? next_number() : of->number;
        if (is_unwritten || are_warm_ups) write_call(&of->call, of->end, of->result, number, kind | of->flags);
        struct ggtrace_writer * writer = i == 0 && held.has_change && !are_warm_ups ? recording_writer(GGTRACE_NO_WORKER) : NULL;
        if (writer) ggtrace_sequence(writer, &held.change);
    }
}

/* Releases what is held of this context; NULL: of any. */
static void release_of(const void * context, bool are_warm_ups) {
    if (!atomic_load_explicit(&held.count, memory_order_relaxed)) return;
    HOLD(&lock);
    if (!context || held.context == context) release(are_warm_ups);
}

enum calls_of calls_of_context(const void * context) {
    HOLD(&lock);
    const struct entry * entry = entry_of(context);
    const bool is_held = held.count && held.context == context;
    return entry && entry->id == HAS_CALLS ? CALLS_SOME : is_held ? CALLS_HELD : CALLS_NONE;
}

void calls_hold_change(const struct ggtrace_sequence * change) {
    HOLD(&lock);
    if (held.count == 1 && !held.has_change) {
        held.change = *change;
        held.has_change = true;
    }
}

const void * calls_held(void) {
    if (!atomic_load_explicit(&held.count, memory_order_relaxed)) return NULL;
    HOLD(&lock);
    return held.count ? held.context : NULL;
}

void calls_cleared(const void * context, bool are_tests_known) {
    HOLD(&lock);
    struct entry * entry = entry_of(context);
    const bool has_held = held.count && held.context == context;
    const bool is_test = held.has_change || !are_tests_known;
    if (has_held) release(!entry || entry->id != IS_READY || is_test);
    if (entry && entry->id != HAS_CALLS) entry->id = entry->id || has_held ? IS_READY : IS_CLEARED;
}

/* Its memory may be in use: only the calls of common_init_from_params are known to be warm-ups. */
void calls_reset(const void * context) {
    if (!atomic_load_explicit(&held.count, memory_order_relaxed)) return;
    HOLD(&lock);
    bool are_small = held.context == context;
    for (int i = 0; i < held.count; i++) are_small = are_small && held.calls[i].call.batch.tokens <= WARM_UP_TOKENS_MAX;
    if (are_small) release(true);
}

void calls_used(const void * context) {
    release_of(context, false);
}

void calls_read(const void * context) {
    contexts_note_read(context);
    calls_used(context);
}

void calls_note_restored(const void * context) {
    HOLD(&lock);
    set_state(context, HAS_CALLS);
}

void calls_forget(const void * context) {
    HOLD(&lock);
    if (held.context == context) release(false);
    set_state(context, 0);
}

void calls_finish(void) {
    release_of(NULL, false);
}

/*
 * The events inside a call have its number, or none in a warm-up, and which of them it is follows from what the program does after it.
 * Tools of llama.cpp are expected to warm up, other programs to begin with a prompt. A warm-up of theirs has a number, and so has a
 * further one of a tool, as a benchmark's run may begin with one token.
 */
static bool is_tool(const void * caller) {
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname) return false;
    const char * slash = strrchr(info.dli_fname, '/'), * name = slash ? slash + 1 : info.dli_fname;
    return strncmp(name, "libllama-", 9) == 0 || strncmp(name, "llama-", 6) == 0;
}

/* Is the call one of those that are held? Of a context that is ready, only one that may be the test of its memory. */
static enum holding hold(const struct call * call, const void * caller) {
    HOLD(&lock);
    if (held.context != call->context || held.count == HELD_MAX) release(false);
    const struct entry * entry = entry_of(call->context);
    const bool is_small = call->batch.tokens <= WARM_UP_TOKENS_MAX;
    const bool is_first = entry && entry->id != HAS_CALLS && (entry->id != IS_READY || (is_small && !held.count));
    const bool may_lack_number = is_small && (!held.count || held.calls[0].number == GGTRACE_NO_CALL);
    enum holding holding = HELD;
    if (!is_first) holding = NOT_HELD;
    else if (may_lack_number && entry->id != IS_READY && is_tool(caller)) holding = HELD_WITHOUT_NUMBER;
    if (!is_first) {
        release(false);
        set_state(call->context, HAS_CALLS);
    }
    return holding;
}

static void keep(const struct call * call, uint64_t end, int result, uint32_t number, uint32_t flags) {
    HOLD(&lock);
    if (held.count && (held.context != call->context || held.count == HELD_MAX)) release(false); /* of another thread */
    if (!held.count) held.has_change = false;
    held.context = call->context;
    held.calls[held.count] = (struct held){.call = *call, .end = end, .result = result, .number = number, .flags = flags};
    held.count++;
    if (number != GGTRACE_NO_CALL) write_call(call, end, result, number, call->kind | flags | GGTRACE_MAY_WARM_UP);
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

static void leave(uint32_t before);

void calls_begin(struct call * call, struct call_hook hook, void * context, uint32_t kind) {
    const bool is_warm_up = atomic_load_explicit(&is_warming_up, memory_order_relaxed);
    const bool has_context = kind == GGTRACE_DECODE || kind == GGTRACE_ENCODE;
    call->context = context;
    call->kind = is_warm_up ? GGTRACE_WARM_UP : kind;
    if (call->kind == GGTRACE_DECODE && pools(context, hook.caller) && !contexts_is_without_embeddings(context)) call->kind |= GGTRACE_EMBEDS;
    call->holding = has_context && !is_warm_up ? hold(call, hook.caller) : NOT_HELD;
    call->follows_unread = has_context && contexts_is_unread(context);
    if (has_context) contexts_set_last_output(context, call->batch.last_output);
    is_inside = true;
    call->at = hook.at;
    frames_begin(hook.at, leave, 0);
    has_encoded = false;
    current = is_warm_up || call->holding == HELD_WITHOUT_NUMBER ? GGTRACE_NO_CALL : next_number();
    is_left_out = !control_takes(current) || guard_begin(call->batch.tokens);
    clock_correct();
    call->is_announced = announce(call);
    resources_begin(&call->resources);
    const uint64_t now = clock_now();
    call->start = call->since ? call->since : now;
    struct ggtrace_writer * writer = call->part ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_range_begin(writer, now, registry_name(call->part));
    begun.hook = hook;
    begun.context = context;
    begun.part = call->part;
    begun.start = call->start;
    begun.kind = call->kind;
    begun.tokens = call->batch.tokens;
    begun.outputs = call->batch.outputs;
    begun.holding = call->holding;
    begun.is_announced = call->is_announced;
    begun.follows_unread = call->follows_unread;
}

/* `end` is the call's start if it is unknown: the call was left. */
static void finish(const struct call * call, uint64_t end, int result) {
    if (call->is_announced) nvtx_emit_pop();
    struct ggtrace_writer * writer = call->part ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (writer) ggtrace_range_end(writer, result == GGTRACE_LEFT ? clock_now() : end);
    uint32_t flags = is_left_out ? GGTRACE_LEFT_OUT : 0;
    if (has_encoded && call->kind == GGTRACE_DECODE) flags |= GGTRACE_EMBEDS;
    if (call->follows_unread) flags |= GGTRACE_FOLLOWS_UNREAD;
    if (call->holding) keep(call, end, result, current, flags);
    else write_call(call, end, result, current, call->kind | flags);
    ggtrace_note_call(recording.log, call->start, end);
    current = GGTRACE_NO_CALL;
    is_inside = false;
}

void calls_end(struct call * call, int result) {
    if (!frames_end(call->at)) return;
    const uint64_t end = clock_now();
    resources_end(&call->resources);
    call->resources.time = call->start;
    finish(call, end, result);
    guard_end(call->start, end);
}

static void leave(uint32_t before) {
    (void) before;
    guard_leave();
    finish(&(struct call){
        .batch = {.tokens = begun.tokens, .outputs = begun.outputs},
        .context = begun.context,
        .kind = begun.kind,
        .part = begun.part,
        .holding = begun.holding,
        .is_announced = begun.is_announced,
        .follows_unread = begun.follows_unread,
        .start = begun.start,
    }, begun.start, GGTRACE_LEFT);
}
