#include "recorder/functions.h"

#include "common/environment.h"
#include "common/process.h"
#include "recorder/bypass.h"
#include "recorder/calls.h"
#include "recorder/control.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

enum { LONG_NS_MIN = 1000 };

static atomic_bool is_wanted = true;

/* One function of each kind, by which the kind is found in the program's libraries. */
static const struct { const char * kind, * function; } kinds[] = {
    {"sampling", "llama_sampler_apply"},
    {"sequences", "llama_memory_seq_rm"},
    {"text", "llama_tokenize"},
    {"states", "llama_state_seq_get_data_ext"},
    {"waiting", "llama_synchronize"},
    {"loading", "llama_model_load_from_file"},
    {"speculation", "_Z24common_speculative_draftP18common_speculative"},
    {"images and sound", "mtmd_tokenize"},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds), MISSING_BYTES = 256 };

static void note_missing(void (*fact)(const char * key, const char * value)) {
    char text[MISSING_BYTES];
    size_t length = 0, missing = 0;
    for (size_t i = 0; i < KINDS; i++) {
        if (library_resolve(kinds[i].function, NULL)) continue;
        if (missing++) memcpy(text + length, ", ", 2), length += 2;
        memcpy(text + length, kinds[i].kind, strlen(kinds[i].kind));
        length += strlen(kinds[i].kind);
    }
    static const char reason[] = ": no library of the program exports them";
    memcpy(text + length, reason, sizeof(reason));
    if (missing && missing < KINDS) fact("functions.missing", text);
}

void functions_open(void (*fact)(const char * key, const char * value)) {
    const char * wanted = environment(ENV_FUNCTIONS);
    const bool is_off = wanted && strcmp(wanted, "0") == 0;
    atomic_store_explicit(&is_wanted, !is_off, memory_order_relaxed);
    if (is_off) fact("functions.missing", "all: not requested");
    else note_missing(fact);
}

void functions_note_bypassed(const void * caller) {
    static atomic_bool was_noted;
    if (atomic_load_explicit(&was_noted, memory_order_relaxed) || atomic_exchange(&was_noted, true)) return;
    if (!functions_are_recorded()) return;
    static const char * const texts[] = {
        [BYPASS_UNKNOWN] = "all C functions of llama.cpp: their calls pass no hook",
        [BYPASS_BY_ADDRESS] = "all C functions of llama.cpp: the program calls them by addresses of its own (dlsym)",
        [BYPASS_INSIDE] = "all C functions of llama.cpp: they are called inside the library that contains them, and bound there",
        [BYPASS_BOUND] = ("all C functions of llama.cpp: the library that calls them is bound to them without the recorder (RTLD_DEEPBIND, "
                          "another preloaded library)"),
    };
    ggtrace_fact(recording.log, "functions.missing", texts[bypass_of(caller)]);
}

void functions_note_seen(enum functions_seen what) {
    static _Atomic int most = SEEN_NOTHING;
    int before = atomic_load_explicit(&most, memory_order_relaxed);
    if (before >= (int) what || !recording.log) return;
    while (before < (int) what && !atomic_compare_exchange_weak(&most, &before, what)) {}
    if (before < (int) what) ggtrace_fact(recording.log, what == SEEN_CALLS ? "llama.calls" : "llama.functions", "begun");
}

bool functions_are_recorded(void) {
    return recording_level() >= LEVEL_TOKEN && atomic_load_explicit(&is_wanted, memory_order_relaxed);
}

bool functions_take(void) {
    if (!functions_are_recorded()) return false;
    return calls_inside() ? calls_take() : control_takes_after(calls_latest());
}

void functions_end(struct ggtrace_function * function) {
    if (!function->start) return;
    function->end = clock_now();
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_function(writer, function);
}

void functions_end_long(struct ggtrace_function * function, void * backend) {
    if (!function->start) return;
    function->end = clock_now();
    if (function->end - function->start < LONG_NS_MIN) return;
    const struct ggml_api * api = &recording.api;
    if (backend && api->backend_name) function->name = functions_name(api->backend_name(backend));
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_function(writer, function);
}

/* ---- Conversions of a token ---- */

enum { PIECES_MAX = 1024 };
static _Atomic uint32_t pieces, pieces_since;
static _Atomic uint64_t pieces_left_out;

bool functions_take_piece(void) {
    const uint32_t latest = calls_latest();
    if (latest == GGTRACE_NO_CALL) return false;
    if (atomic_exchange_explicit(&pieces_since, latest, memory_order_relaxed) != latest) atomic_store_explicit(&pieces, 0, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&pieces, 1, memory_order_relaxed) < PIECES_MAX) return true;
    atomic_fetch_add_explicit(&pieces_left_out, 1, memory_order_relaxed);
    return false;
}

void functions_finish(void) {
    static const char rest[] = " conversions of a token to text: more than 1024 between two calls";
    char text[NUMBER_BYTES + sizeof(rest)];
    const uint64_t count = atomic_load(&pieces_left_out);
    if (!count) return;
    number_text(text, count);
    strcat(text, rest);
    ggtrace_fact(recording.log, "functions.left_out", text);
}

/* ---- Names ---- */

enum { KEPT = 16, KEPT_BYTES = 28 };

/* Texts by their address. A text of the same address may be another one, so they are compared. */
static __thread struct {
    const char * at;
    uint32_t id;
    char text[KEPT_BYTES];
} kept[KEPT] __attribute__((tls_model("initial-exec")));

uint32_t functions_name(const char * text) {
    if (!text) return 0;
    const uintptr_t address = (uintptr_t) text;
    const size_t place = (address >> 2 ^ address >> 6 ^ address >> 10) % KEPT;
    if (kept[place].at == text && strncmp(kept[place].text, text, KEPT_BYTES) == 0) return kept[place].id;
    const uint32_t id = registry_name(text);
    const size_t length = strnlen(text, KEPT_BYTES);
    if (length == KEPT_BYTES) return id;
    kept[place].at = text;
    kept[place].id = id;
    memcpy(kept[place].text, text, length + 1);
    return id;
}

uint32_t functions_file_name(const char * path) {
    const char * slash = path ? strrchr(path, '/') : NULL;
    return registry_name(slash ? slash + 1 : path);
}
