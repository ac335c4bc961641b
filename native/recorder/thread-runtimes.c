#include "common/system.h"
#include "recorder/thread-runtimes.h"

#include <link.h>

#include "common/process.h"
#include "recorder/cpu-list.h"
#include "recorder/imports.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"

enum { RUNTIMES_MAX = 8, POOLS_MAX = 16, POOL_CPUS = 512 };

/* ---- OpenMP ---- */

struct runtimes {
    int count;
    char paths[RUNTIMES_MAX][PATH_BYTES / 8];
};

static bool is_runtime(const char * path) {
    static const char * const names[] = {"libgomp", "libomp", "libiomp5", "libkomp"};
    const char * slash = strrchr(path, '/'), * name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const size_t length = strlen(names[i]);
        /* Wheels of Python have libgomp-a34b3233.so.1. */
        if (strncmp(name, names[i], length) == 0 && (name[length] == '.' || name[length] == '-') && strstr(name, ".so")) return true;
    }
    return false;
}

static int note_runtime(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    struct runtimes * found = data;
    if (found->count == RUNTIMES_MAX) return 1;
    const char * path = object->dlpi_name;
    if (!path || !is_runtime(path) || strlen(path) >= sizeof(found->paths[0])) return 0;
    strcpy(found->paths[found->count++], path);
    return 0;
}

/* Each runtime that is loaded; a fact of it that was written already is not repeated by readers. */
static void write_loaded(fact_function fact) {
    struct runtimes found = {.count = 0};
    dl_iterate_phdr(note_runtime, &found);
    for (int i = 0; i < found.count; i++) fact("threads.openmp_loaded", found.paths[i]);
}

static _Atomic bool is_found;

/* The library whose function the loader binds this name to. */
static const char * library_with(const void * address, const char * function) {
    const char * path = NULL;
    Dl_info info;
    void * found = dlsym(RTLD_DEFAULT, function), * library = found ? NULL : library_of(address, &path);
    if (library) found = dlsym(library, function);
    return found && dladdr(found, &info) ? info.dli_fname : NULL;
}

void thread_runtimes_find(const void * address, fact_function fact) {
    static const char * const functions[] = {"GOMP_parallel", "__kmpc_fork_call"};
    if (!address || atomic_exchange(&is_found, true)) return;
    const char * path = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && !path; i++)
        if (imports_function(address, functions[i])) path = library_with(address, functions[i]);
    fact("threads.runtime", path ? "openmp" : "pool");
    if (path) fact("threads.openmp", path);
    write_loaded(fact);
}

void thread_runtimes_prepare(fact_function fact) {
    if (!atomic_load(&is_found)) thread_runtimes_find(library_resolve("ggml_graph_compute_with_ctx", NULL), fact);
}

void thread_runtimes_finish(fact_function fact) {
    if (atomic_load(&is_found)) write_loaded(fact);
}

/* ---- ggml's pools ---- */

/* struct ggml_threadpool_params, since 2024. */
struct pool {
    uint8_t cpus[POOL_CPUS]; /* bools */
    int32_t threads, priority;
    uint32_t poll;
    bool is_strict, is_paused;
};

static void add_number(struct text * text, const char * name, int64_t number) {
    char digits[NUMBER_BYTES];
    number_text(digits, (uint64_t) (number < 0 ? -number : number));
    text_add(text, text->used ? ", " : "");
    text_add(text, name);
    text_add(text, number < 0 ? " -" : " ");
    text_add(text, digits);
}

/* `threads 4, priority 0, poll 50, strict 0, cpus 0-3`; all CPUs are not listed. */
void thread_runtimes_note_pool(const void * params) {
    static _Atomic int count;
    const struct pool * pool = params;
    if (!pool || pool->threads < 1 || pool->threads > POOL_CPUS || pool->poll > 100 || pool->priority < -1 || pool->priority > 3) return;
    const int number = atomic_fetch_add(&count, 1) + 1;
    if (number > POOLS_MAX) return;
    struct text text = {0};
    struct cpu_list cpus = {0};
    for (int cpu = 0; cpu < POOL_CPUS; cpu++) cpus.bits[cpu / 64] |= (uint64_t) (pool->cpus[cpu] != 0) << cpu % 64;
    add_number(&text, "threads", pool->threads);
    add_number(&text, "priority", pool->priority);
    add_number(&text, "poll", pool->poll);
    add_number(&text, "strict", pool->is_strict);
    if (cpu_list_next(&cpus, 0) >= 0) text_add(&text, ", cpus "), cpu_list_text(&text, &cpus);
    char key[32 + NUMBER_BYTES] = "threads.pool.", digits[NUMBER_BYTES];
    number_text(digits, (uint64_t) number);
    ggtrace_fact(recording.log, strcat(key, digits), text.bytes);
}
