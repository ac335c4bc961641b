#include "recorder/server.h"

#include <stdio.h>

#include "common/clock.h"
#include "log/ggtrace-requests.h"
#include "recorder/functions.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"

/* ---- What can be recorded ---- */

enum part { POSTS, DEFERRALS, CANCELLATIONS, RESULTS, SLOTS, LINES, PARTS };

/* One function of each part; the compiler exports all of a part or none. */
static const struct {
    const char * name, * function;
} parts[PARTS] = {
    [POSTS] = {"posts", "_ZN15server_response20add_waiting_task_idsERKSt13unordered_setIiSt4hashIiESt8equal_toIiESaIiEE"},
    [DEFERRALS] = {"deferrals", "_ZN12server_queue5deferEO11server_task"},
    [CANCELLATIONS] = {"cancellations", "_ZN12server_queue20cleanup_pending_taskEi"},
    [RESULTS] = {"results", "_ZN15server_response4sendEOSt10unique_ptrI18server_task_resultSt14default_deleteIS1_EE"},
    [SLOTS] = {"slots", "_ZN19server_context_impl21launch_slot_with_taskER11server_slotO11server_task"},
    [LINES] = {"log", "_Z14common_log_addP10common_log14ggml_log_levelPKcz"},
};

/* Bits: parts that are missing; parts that were seen. */
static _Atomic uint32_t missing, seen;

static void see(enum part part) {
    if (!(atomic_load_explicit(&seen, memory_order_relaxed) >> part & 1)) atomic_fetch_or(&seen, 1u << part);
}

static void fact_of_parts(void (*fact)(const char *, const char *), const char * key, uint32_t which) {
    char text[128] = "";
    for (int part = 0; part < PARTS; part++) {
        if (!(which >> part & 1)) continue;
        if (*text) strcat(text, ", ");
        strcat(text, parts[part].name);
    }
    if (*text) fact(key, text);
}

void server_find(const void * caller, void (*fact)(const char * key, const char * value)) {
    const bool has_queue = library_resolve(parts[DEFERRALS].function, caller);
    if (!has_queue && strncmp(program_invocation_short_name, "llama-server", 12) != 0) return;
    uint32_t found = 0;
    for (int part = 0; part < PARTS; part++) {
        if (library_resolve(parts[part].function, caller)) found |= 1u << part;
    }
    atomic_store(&missing, ~found);
    fact_of_parts(fact, "server.missing", ~found);
}

/* A compiler may bind calls inside a library. Deferrals and cancellations may really not have happened. */
void server_finish(void (*fact)(const char * key, const char * value)) {
    const uint32_t was = atomic_load(&seen), expected = 1u << POSTS | 1u << RESULTS | 1u << SLOTS;
    if (was) fact_of_parts(fact, "server.not_seen", expected & ~was & ~atomic_load(&missing));
}

/* ---- Tasks ---- */

/* Does not open a log: a router of llama-server, which computes nothing, has none. */
static struct ggtrace_writer * writer_of_thread(void) {
    return functions_are_recorded() ? recording_writer(GGTRACE_NO_WORKER) : NULL;
}

static void write_step(uint64_t time, uint32_t step, int32_t task, int32_t slot) {
    struct ggtrace_writer * writer = writer_of_thread();
    if (writer) ggtrace_task(writer, &(struct ggtrace_task){.time = time, .what = step, .task = task, .slot = slot});
}

/* Deferred tasks that have not been resumed, at most: cancelled ones stay in it. A slot's release resumes one, if there is one. */
static _Atomic int32_t deferred;

void server_step(uint32_t step, int32_t task, int32_t slot) {
    switch (step) {
        case GGTRACE_DEFER:
            see(DEFERRALS);
            atomic_fetch_add(&deferred, 1);
            break;
        case GGTRACE_RESUME:
            if (atomic_load(&deferred) == 0) return;
            atomic_fetch_sub(&deferred, 1);
            break;
        case GGTRACE_CANCEL: see(CANCELLATIONS); break;
        default: see(SLOTS);
    }
    write_step(clock_now(), step, task, slot);
}

/* std::unordered_set<int> of libstdc++: its elements are a list; integers are not stored with their hash. */
struct set_node {
    const struct set_node * next;
    int32_t value;
};
struct set {
    const void * buckets;
    size_t bucket_count;
    const struct set_node * first;
    size_t count;
};
enum { POSTED_MAX = 1 << 20 };

void server_posted(const void * ids) {
    see(POSTS);
    const struct set * set = ids;
    const uint64_t now = clock_now();
    if (set->count > POSTED_MAX) return;
    size_t left = set->count;
    for (const struct set_node * node = set->first; node && left; node = node->next, left--) {
        write_step(now, GGTRACE_POST, node->value, -1);
    }
}

/* server_task_result: its table of functions, then its task and its slot. Ahead of the table is its type, with its name. */
struct result {
    const void * const * functions;
    int32_t task, slot;
};
struct type {
    const void * functions;
    const char * name;
};
enum { SLOTS_MAX = 1 << 16 };

/* The step of a task that sends a result of that type; GGTRACE_POST: none, it is no answer (metrics, slots, adapters). */
static uint32_t step_of_result(const char * type) {
    const char * kind = type ? strstr(type, "server_task_result_") : NULL;
    if (!kind) return GGTRACE_POST;
    kind += strlen("server_task_result_");
    if (strcmp(kind, "error") == 0) return GGTRACE_ERROR;
    static const char * const answers[] = {"cmpl_", "embd", "rerank", "decision"};
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        if (strncmp(kind, answers[i], strlen(answers[i])) == 0) return GGTRACE_SEND;
    }
    return GGTRACE_POST;
}

void server_sent(const void * result) {
    see(RESULTS);
    const struct result * sent = result;
    const struct type * type = sent && sent->functions ? sent->functions[-1] : NULL;
    const uint32_t step = step_of_result(type ? type->name : NULL);
    if (step != GGTRACE_POST) write_step(clock_now(), step, sent->task, sent->slot >= 0 && sent->slot < SLOTS_MAX ? sent->slot : -1);
}

/* ---- The log ---- */

/*
 * A line is `slot <function>: id <slot> | task <task> | …` or `srv  <function>: …`. It is written if its format continues with one of
 * these, and prints no text there. Left out: `next token`, `prompt token`, `slot decode token`, the parameters of samplers, requests,
 * and whatever newer versions may print.
 */
static const char * const forms[] = {
    "processing task", "new prompt", "cached n_tokens", "prompt processing", "prompt eval time", "       eval time",
    "      total time", "   graphs reused", "n_gen = %6d, tg", "stop processing", "selected slot by", "init sampler, took",
    "accepted %2zu/%2zu draft tokens", "draft acceptance", "created context checkpoint", "restored context checkpoint",
    "erased invalidated context checkpoint", "erasing ", "superseding context checkpoint", "created speculative checkpoint",
    "restoring speculative checkpoint", "clearing prompt with", "clearing cache for lora", "reusing chunk with size",
    "after context reuse", "need to evaluate at least", "n_past was set to", "cache reuse is not supported", "slot context shift",
    "stopped by ", "stopped due to ", "encoding mtmd batch", "failed to decode mtmd", "failed to encode mtmd", "failed to process mtmd",
    "cancel task", "no slot is available", "requested slot is unavailable", "not enough free slots", "launching slots for parent",
    "failed to launch slot", "purging slot", "failed to find free space", "prompt cache update took", " - saving prompt with length",
    " - found better prompt", " - cache size limit", " - cache token limit", " - making room for prompt cache",
    " - prompt state size", " - removing obsolete cached prompt", "failed to restore state with size",
};

/* Constant texts that are printed by `%s`, and formats that print constants: whether the context is unified, an address of a page. */
static const char * const constants[] = {
    "forcing full prompt re-processing", "initializing, n_slots", "all slots are idle", "empty prompt", "stopped by EOS",
    "saving idle slot", "updating prompt cache", " - prompt is already in the cache", "failed to load prompt from cache",
    "no tokens to decode", "failed to process speculative batch", "waiting for parent slot", "server is entering sleeping state",
    "server is exiting sleeping state",
};

static bool starts_with_one(const char * text, const char * const starts[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strncmp(text, starts[i], strlen(starts[i])) == 0) return true;
    }
    return false;
}
#define STARTS_WITH_ONE(text, starts) starts_with_one(text, starts, sizeof(starts) / sizeof(*(starts)))

static const char * after(const char * text, const char * mark) {
    const char * found = text ? strstr(text, mark) : NULL;
    return found ? found + strlen(mark) : NULL;
}

/*
 * The number of bytes of a line that are written; 0: none. An error may quote the request, behind a colon or in quotation marks: its
 * text is cut there.
 */
static size_t length_written(const char * format, const char * text) {
    const bool is_slot = strncmp(format, "slot %", 6) == 0;
    if (!is_slot && strncmp(format, "srv  %", 6) != 0) return 0;
    const char * rest = is_slot ? after(format, "| task %d | ") : after(format, "s: ");
    const char * body = is_slot ? after(after(text, " | task "), " | ") : after(text, ": ");
    if (!rest || !body) return 0;
    rest += strspn(rest, "\n"); /* older versions print all timings in one line of several */
    body += strspn(body, "\n");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n') length--;
    const char * error = strncmp(rest, "task id = %d, error: ", 21) == 0 ? after(body, "error: ") : NULL;
    if (error) return strcspn(error, ":'\"`\n{[") + (size_t) (error - text);
    const bool is_known = strstr(rest, "%s") ? STARTS_WITH_ONE(body, constants) : STARTS_WITH_ONE(rest, forms);
    return is_known ? length : 0;
}

void server_logged(uint32_t level, const char * format, const char * text) {
    struct ggtrace_writer * writer = writer_of_thread();
    const size_t length = writer ? length_written(format, text) : 0;
    if (!length) return;
    see(LINES);
    ggtrace_message(writer, clock_now(), level, text, length);
}
