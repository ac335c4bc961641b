#include "recorder/recorder.h"

#include "common/clock.h"
#include "common/environment.h"
#include "common/program-clock.h"
#include "recorder/control.h"
#include "recorder/counters.h"
#include "recorder/functions.h"
#include "recorder/graphs.h"
#include "recorder/layout.h"
#include "recorder/libraries.h"
#include "recorder/missed.h"
#include "recorder/openmp.h"
#include "common/process.h"
#include "common/report.h"
#include "recorder/program.h"
#include "recorder/registry.h"
#include "recorder/server.h"
#include "recorder/states.h"
#include "recorder/surroundings.h"

static pthread_mutex_t begin_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_over; /* no log is opened after this */

static int wanted_level(void) {
    const char * text = environment(ENV_LEVEL);
    if (!text) return LEVEL_OPERATOR;
    if (strcmp(text, "token") == 0) return LEVEL_TOKEN;
    if (strcmp(text, "graph") == 0) return LEVEL_GRAPH;
    return LEVEL_OPERATOR;
}

static void fact(const char * key, const char * value) {
    if (value && *value) ggtrace_fact(recording.log, key, value);
}

static void fact_number(const char * key, uint64_t number) {
    char text[NUMBER_BYTES];
    number_text(text, number);
    fact(key, text);
}

/* Facts that are available only when ggml is loaded; the others were written when the log was opened. */
static void record_ggml(int level, const char * library) {
    static const char * const level_names[] = {"off", "token", "graph", "op"};
    fact("level", level_names[level]);
    if (recording.synchronises) fact("note", "nodes of backends without an operator hook were computed and timed one by one (--sync)");
    fact("library.ggml", library);
    if (recording.api.version) fact("ggml.version", recording.api.version());
    const char * (*llama_version)(void);
    *(void **) &llama_version = library_resolve("llama_version", NULL);
    if (llama_version) fact("llama.version", llama_version());
}

/* Finds the layout of ggml's tensors. If this fails, less is recorded: returns the level. */
static int find_layout(int level, const void * caller, const char ** library) {
    void * handle = library_of(caller, library);
    Dl_info ggml;
    ggml_api_load(&recording.api, handle);
    if (recording.api.op_name && dladdr(*(void **) &recording.api.op_name, &ggml)) *library = ggml.dli_fname;
    if (level < LEVEL_GRAPH) return level;
    const char * problem = tensor_layout_find(&recording.layout, &recording.api, handle);
    registry_init(&recording.api, &recording.layout);
    graphs_init();
    if (!problem) return level;
    registry_give_up();
    fact("note", "only tokens and graphs are recorded: this ggml's tensors could not be understood");
    fact("note", problem);
    return LEVEL_GRAPH;
}

/* Is this a child of the recorded process, by fork or by fork and exec? */
static bool is_child(void) {
    char own[NUMBER_BYTES];
    number_text(own, (uint64_t) getpid());
    const char * traced = environment(ENV_PID);
    return traced && strcmp(traced, own) != 0 && !environment(ENV_CHILDREN);
}

static void start_states(void) {
    const char * problem = states_start(recording.log);
    fact("states", problem ? problem : "by perf_event_open, without root: it does not show who took a CPU");
}

/* Records whether the log keeps its last part. If that was requested and is not possible, the log ends at its size limit. */
static void record_ring(void) {
    if (!control_keeps_last()) return;
    const uint64_t slow = control_slow_ns();
    if (ggtrace_is_ring(recording.log)) {
        if (!slow) fact_number("recorded.last_bytes", control_bytes_max()); /* of slow calls, the first block has the limit */
    } else if (slow) fact("note", "all calls were kept, not only slow ones: space cannot be given back to this file system (FALLOC_FL_PUNCH_HOLE)");
    else fact("note", "not the last part but the first was kept: space cannot be given back to this file system (FALLOC_FL_PUNCH_HOLE)");
}

/* Under the lock: opens the log, unless it is open already or must not be opened. */
static void open_recording(void) {
    static bool is_tried;
    const char * path = environment(ENV_OUT);
    if (is_tried || !path || is_child()) return; /* checked here too, because a fork runs no constructor */
    is_tried = true;
    recording.log = process_open_log(path, &(struct ggtrace_options){.bytes_max = control_bytes_max(), .ring = control_keeps_last(), .slow_ns = control_slow_ns()});
    if (!recording.log) {
        report_problem(REPORT_CANNOT_OPEN, errno);
        return;
    }
    fact("recorder", "libggml2perfetto.so 0.1.0 (LD_PRELOAD)");
    process_facts(fact);
    program_clock_open(fact);
    surroundings_open(fact);
    program_facts(fact);
    record_ring();
    clock_start();
    registry_open(recording.log);
}

enum { WAIT_S = 3 };
static atomic_bool has_waited_in_vain, has_news; /* of the program: not written yet */

/*
 * Who begins asks the loader, and may wait for its lock. A thread whose library is being constructed has that lock, and must not wait for ever for
 * who begins: its calls are not recorded then.
 */
static bool take_begin_lock(void) {
    struct timespec until;
    if (pthread_mutex_trylock(&begin_lock) == 0) return true;
    if (atomic_load(&has_waited_in_vain) || clock_gettime(CLOCK_REALTIME, &until) != 0) return false;
    until.tv_sec += WAIT_S;
    if (pthread_mutex_timedlock(&begin_lock, &until) == 0) return true;
    atomic_store(&has_waited_in_vain, true);
    return false;
}

static void release_begin_lock(void) {
    do {
        const bool is_open = recording.log && !is_over;
        if (atomic_exchange(&has_waited_in_vain, false) && is_open) fact("calls.left_out", "calls by a thread that loaded a library when the recording began were not recorded");
        if (atomic_exchange(&has_news, false) && is_open) program_facts(fact);
        pthread_mutex_unlock(&begin_lock);
    } while (atomic_load(&has_news) && pthread_mutex_trylock(&begin_lock) == 0);
}

struct ggtrace * recorder_log(void) {
    if (!take_begin_lock()) return NULL;
    if (!is_over) open_recording();
    struct ggtrace * log = recording.log;
    release_begin_lock();
    return log;
}

void recorder_note_program(void) {
    atomic_store(&has_news, true);
    if (pthread_mutex_trylock(&begin_lock) == 0) release_begin_lock(); /* else who has it writes them */
}

int recorder_begin(const void * caller) {
    if (!take_begin_lock()) return LEVEL_OFF;
    int level = atomic_load(&recording.level);
    if (level == LEVEL_AHEAD) {
        level = LEVEL_OFF;
        open_recording();
        if (recording.log) {
            const char * library = NULL;
            level = find_layout(wanted_level(), caller, &library);
            recording.synchronises = level >= LEVEL_GRAPH && environment(ENV_SYNC);
            record_ggml(level, library);
            server_find(caller, fact);
            control_read(fact);
            functions_open(fact);
            if (level >= LEVEL_OPERATOR) counters_start(recording.log, fact);
            else if (environment(ENV_COUNTERS)) fact("counters.missing", "all: operators are not recorded");
            if (level >= LEVEL_GRAPH) start_states();
        }
        atomic_store(&recording.level, level);
    }
    release_begin_lock();
    return level;
}

/* Does the program contain ggml, or is it linked with it? If not, it may load it later, or only start another program that uses it (timeout, sh). */
static bool has_ggml(void) {
    return program_has_ggml() || dlsym(RTLD_NEXT, "ggml_backend_graph_compute_async") || dlsym(RTLD_NEXT, "ggml_graph_compute") || dlsym(RTLD_NEXT, "llama_decode");
}

/* Reports to `record` that this program has the recorder, and prepares to report those that it starts and that will not have it. */
static void report_own(void) {
    char path[PATH_BYTES];
    report_prepare();
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length < 0 ? 0 : length] = 0;
    report_program(REPORT_LOADED, length < 0 ? program_invocation_name : path, "", "");
    if (environment(ENV_REPORT)) missed_prepare();
}

/*
 * Without ENV_CHILDREN, only the started process is recorded, also after exec (a script's `exec llama-cli`): in its children the
 * recorder does nothing, and restores the environment that they pass on.
 */
__attribute__((constructor)) static void keep_to_one_process(void) {
    char own[NUMBER_BYTES];
    program_clock_prepare();
    clock_prepare();
    number_text(own, (uint64_t) getpid());
    if (!environment(ENV_CHILDREN)) setenv(ENV_PID, own, 0);
    if (!is_child()) {
        const char * states = environment(ENV_STATES);
        if (environment(ENV_OUT)) ggtrace_prepare(), report_own();
        if (environment(ENV_OUT) && program_redirect(library_search)) openmp_redirect(program_function("ggml_init"));
        if (environment(ENV_OUT) && !(states && strcmp(states, "0") == 0)) states_prepare(environment(ENV_CHILDREN) && !has_ggml());
        return;
    }
    atomic_store(&recording.level, LEVEL_OFF);
    const char * before = environment(ENV_PRELOAD_BEFORE);
    if (before) setenv("LD_PRELOAD", before, 1);
    else unsetenv("LD_PRELOAD");
    if (environment(ENV_NVTX)) unsetenv("NVTX_INJECTION64_PATH");
}

bool recorder_end(void) {
    const int level = atomic_exchange(&recording.level, LEVEL_OFF);
    if (!take_begin_lock()) return false;
    is_over = true;
    const bool has_log = level != LEVEL_OFF && recording.log;
    release_begin_lock();
    return has_log;
}
