#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "counters.h"
#include "layout.h"
#include "nvtx-emit.h"
#include "nvtx-listen.h"
#include "operators.h"
#include "process.h"
#include "registry.h"
#include "states.h"

_Atomic int recorder_level = LEVEL_AHEAD;

static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ggtrace * recording;
static bool is_over; /* no log is opened any more */
static struct ggml_api api;
static struct tensor_layout layout;

const struct tensor_layout * recorder_layout(void) {
    return &layout;
}

static const char * option(const char * name, const char * otherwise) {
    const char * value = getenv(name);
    return value && *value ? value : otherwise;
}

static int wanted_level(void) {
    const char * text = option("GGML2PERFETTO_LEVEL", "op");
    if (strcmp(text, "token") == 0) return LEVEL_TOKEN;
    if (strcmp(text, "graph") == 0) return LEVEL_GRAPH;
    return LEVEL_OPERATOR;
}

static bool synchronises;

bool recorder_synchronises(void) {
    return synchronises;
}

static void fact(const char * key, const char * value) {
    if (value && *value) ggtrace_fact(recording, key, value);
}

static void fact_number(const char * key, uint64_t number) {
    char text[NUMBER_BYTES];
    number_text(text, number);
    fact(key, text);
}

/* What is known only once ggml is: the rest was told when the log was opened. */
static void record_ggml(int level, const char * library) {
    static const char * const level_names[] = {"off", "token", "graph", "op"};
    fact("level", level_names[level]);
    if (synchronises) fact("note", "nodes of backends without an operator hook were computed and timed one by one (--sync)");
    fact("library.ggml", library);
    if (api.version) fact("ggml.version", api.version());
}

/* The handle of the library that an address lies in; searching it searches what it was linked to, too. */
static void * library_of(const void * address, const char ** path) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return NULL;
    *path = info.dli_fname;
    void * library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? library : dlopen(NULL, RTLD_LAZY);
}

void * recorder_resolve(const char * name, const void * caller) {
    static _Atomic(void *) latest;
    void * real = dlsym(RTLD_NEXT, name);
    if (!real) {
        Dl_info own, calling;
        const char * path;
        /* A real function that a hook of ours calls may jump (a tail call) to another hook, which then has us as its caller. */
        const bool is_own = dladdr(&begin_lock, &own) && dladdr(caller, &calling) && own.dli_fbase == calling.dli_fbase;
        void * library = library_of(is_own ? atomic_load(&latest) : caller, &path);
        real = library ? dlsym(library, name) : NULL;
    }
    if (real) atomic_store(&latest, real);
    return real;
}

static void in_child(void) {
    atomic_store(&recorder_level, LEVEL_OFF);
    operators_forked();
    states_forked();
    nvtx_emit_forked();
    nvtx_listen_forked();
    if (recording) ggtrace_abandon(recording);
}

/* Learns how the running ggml lays out its tensors; less is recorded where that cannot be told. */
static int learn(int level, const void * caller, const char ** library) {
    void * handle = library_of(caller, library);
    Dl_info ggml;
    ggml_api_load(&api, handle);
    if (api.op_name && dladdr(*(void **) &api.op_name, &ggml)) *library = ggml.dli_fname;
    if (level < LEVEL_GRAPH) return level;
    const char * problem = tensor_layout_find(&layout, &api, handle);
    registry_init(&api, &layout);
    if (!problem) return level;
    registry_give_up();
    fact("note", "only tokens and graphs are recorded: this ggml's tensors could not be understood");
    fact("note", problem);
    return LEVEL_GRAPH;
}

/* Another process than the one that is traced: its child, by fork or by fork and exec. */
static bool is_child(void) {
    char own[NUMBER_BYTES];
    number_text(own, (uint64_t) getpid());
    const char * traced = getenv("GGML2PERFETTO_PID");
    return traced && strcmp(traced, own) != 0 && !getenv("GGML2PERFETTO_CHILDREN");
}

static void start_states(void) {
    const char * problem = states_start(recording);
    fact("states", problem ? problem : "by perf_event_open, without root: who took a CPU is not told");
}

/* Is the log one of the last part only? Where that was wanted and cannot be had, it ends at its size. */
static void record_ring(void) {
    if (!control_keeps_last()) return;
    if (ggtrace_is_ring(recording)) fact_number("recorded.last_bytes", control_bytes_max());
    else fact("note", "not the last part but the first was kept: space cannot be given back to this file system (FALLOC_FL_PUNCH_HOLE)");
}

/* Opens the log, under the lock, unless that was done, or is not to be done. */
static void open_recording(void) {
    static bool is_tried;
    const char * path = option("GGML2PERFETTO_OUT", NULL);
    if (is_tried || !path || is_child()) return; /* a fork runs no constructor */
    is_tried = true;
    recording = process_open_log(path, &(struct ggtrace_options){.bytes_max = control_bytes_max(), .ring = control_keeps_last()});
    if (!recording) return;
    fact("recorder", "libggml2perfetto.so 0.1.0 (LD_PRELOAD)");
    process_facts(fact);
    record_ring();
    clock_start();
    registry_open(recording);
    pthread_atfork(NULL, NULL, in_child);
}

struct ggtrace * recorder_log(void) {
    pthread_mutex_lock(&begin_lock);
    if (!is_over) open_recording();
    struct ggtrace * log = recording;
    pthread_mutex_unlock(&begin_lock);
    return log;
}

int recorder_begin(const void * caller) {
    pthread_mutex_lock(&begin_lock);
    int level = atomic_load(&recorder_level);
    if (level == LEVEL_AHEAD) {
        level = LEVEL_OFF;
        open_recording();
        if (recording) {
            const char * library = NULL;
            level = learn(wanted_level(), caller, &library);
            synchronises = level >= LEVEL_GRAPH && getenv("GGML2PERFETTO_SYNC");
            record_ggml(level, library);
            control_read(fact);
            if (level >= LEVEL_OPERATOR) counters_start(recording, fact);
            else if (option("GGML2PERFETTO_COUNTERS", NULL)) fact("counters.missing", "all: operators are not recorded");
            if (level >= LEVEL_GRAPH) start_states();
        }
        atomic_store(&recorder_level, level);
    }
    pthread_mutex_unlock(&begin_lock);
    return level;
}

struct ggtrace_writer * recorder_writer(uint32_t worker) {
    return recording ? ggtrace_writer_of_thread(recording, worker) : NULL;
}

/*
 * Only the process that was started is traced, and what it becomes by exec (a script's `exec llama-cli`); its children are
 * not, unless asked for: in them we do nothing, and the environment they pass on is as it was before us.
 */
__attribute__((constructor)) static void keep_to_one_process(void) {
    char own[NUMBER_BYTES];
    clock_prepare();
    number_text(own, (uint64_t) getpid());
    if (!getenv("GGML2PERFETTO_CHILDREN")) setenv("GGML2PERFETTO_PID", own, 0);
    if (!is_child()) {
        const bool is_wanted = option("GGML2PERFETTO_OUT", NULL) && strcmp(option("GGML2PERFETTO_STATES", "1"), "0") != 0;
        if (is_wanted) states_prepare();
        return;
    }
    atomic_store(&recorder_level, LEVEL_OFF);
    const char * before = getenv("GGML2PERFETTO_PRELOAD_BEFORE");
    if (before && *before) setenv("LD_PRELOAD", before, 1);
    else unsetenv("LD_PRELOAD");
    if (getenv("GGML2PERFETTO_NVTX")) unsetenv("NVTX_INJECTION64_PATH");
}

__attribute__((destructor)) static void finish(void) {
    const int level = atomic_exchange(&recorder_level, LEVEL_OFF);
    pthread_mutex_lock(&begin_lock);
    is_over = true;
    pthread_mutex_unlock(&begin_lock);
    if (level == LEVEL_OFF || !recording) return;
    operators_finish();
    nvtx_emit_finish();
    states_stop();
    const uint64_t error = clock_largest_error();
    if (error != UINT64_MAX) fact_number("clock.error_ns", error);
    ggtrace_clocks(recording);
    ggtrace_close(recording);
}
