/*
 * Messages of ggml and llama.cpp: they call the function that the program sets for them (llama_log_set, ggml_log_set), which is wrapped.
 * Without one they write to stderr, which is not seen.
 */

#include "common/hold.h"
#include "recorder/functions.h"
#include "recorder/hook.h"

typedef void (*log_function)(int level, const char * text, void * data);

/* What the program set, each once. A program sets one or two; what does not fit is not wrapped. */
enum { SET_MAX = 16 };
static struct set {
    log_function function;
    void * data;
} sets[SET_MAX];
static int set_count;
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_log(int level, const char * text, void * data) {
    const struct set * set = data;
    struct ggtrace_function function;
    functions_begin(&function, GGTRACE_WRITE_LOG);
    set->function(level, text, set->data);
    if (text) function.value = strlen(text);
    functions_end_long(&function, NULL);
}

/* llama_log_set calls ggml_log_set, and a program may set again what it got from llama_log_get. */
static void wrap(log_function * function, void ** data) {
    if (!*function || *function == write_log) return;
    int at = 0;
    HOLD(&set_lock);
    while (at < set_count && (sets[at].function != *function || sets[at].data != *data)) at++;
    if (at == set_count && at < SET_MAX) sets[set_count++] = (struct set){*function, *data};
    if (at < set_count) {
        *function = write_log;
        *data = &sets[at];
    }
}

#define LOG_SET(name)                                     \
    HOOK(void, name, log_function function, void * data) { \
        REAL(name);                                       \
        wrap(&function, &data);                           \
        real(function, data);                             \
    }
LOG_SET(llama_log_set)
LOG_SET(ggml_log_set)
