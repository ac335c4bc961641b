/*
 * Times a run of llama.cpp without the recorder, for the ground truth of the benchmark: calls, the graphs in them, barriers, samplers, waits
 * for a CPU and page faults. Shares no code with the recorder. Preloaded; writes JSON to the file that WITNESS_OUT names when the program ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "ggml-backend.h"
#include "llama.h"

/* Times in ns. `resumed`: when the witness had written the call down, and the program continued. */
struct call {
    int64_t start, end, resumed, graphs, barriers, samplers, waits;
    long faults;
};

enum { CALLS_MAX = 1 << 16 };
static struct call calls[CALLS_MAX];
static int count;
static int64_t graphs_ns, samplers_ns;
static _Atomic int64_t barriers_ns;
static __thread int depth, sampling;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

#define NEXT(name)                     \
    static __typeof__(name) * next;    \
    if (!next) *(void **) &next = dlsym(RTLD_NEXT, #name)

/* The kernel's sum over this process's threads of the time in which they were runnable and had no CPU. */
static int64_t waits_of_threads(void) {
    DIR * threads = opendir("/proc/self/task");
    if (!threads) return 0;
    int64_t sum = 0;
    for (struct dirent * entry; (entry = readdir(threads));) {
        if (entry->d_name[0] == '.') continue;
        char path[300];
        snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
        FILE * file = fopen(path, "r");
        long long computed, waited;
        if (file && fscanf(file, "%lld %lld", &computed, &waited) == 2) sum += waited;
        if (file) fclose(file);
    }
    closedir(threads);
    return sum;
}

static long major_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_majflt;
}

static int64_t waits_before, samplers_before;
static long faults_before;

static void begin(struct call * call) {
    if (count == 0) waits_before = waits_of_threads(), faults_before = major_faults();
    *call = (struct call){.graphs = graphs_ns, .barriers = barriers_ns, .start = now()};
}

static void end(struct call * call) {
    call->end = now();
    call->graphs = graphs_ns - call->graphs;
    call->barriers = barriers_ns - call->barriers;
    call->samplers = samplers_ns - samplers_before;
    samplers_before = samplers_ns;
    const int64_t waits = waits_of_threads();
    const long faults = major_faults();
    call->waits = waits - waits_before;
    call->faults = faults - faults_before;
    waits_before = waits;
    faults_before = faults;
    call->resumed = now();
    if (count < CALLS_MAX) calls[count++] = *call;
}

#define CALL(...)                          \
    if (depth) return next(__VA_ARGS__);   \
    struct call call;                      \
    depth++;                               \
    begin(&call);                          \
    const int result = next(__VA_ARGS__);  \
    end(&call);                            \
    depth--;                               \
    return result

int32_t llama_decode(struct llama_context * context, struct llama_batch batch) {
    NEXT(llama_decode);
    CALL(context, batch);
}

/* Declared by headers of llama.cpp 0.7.0, which are not at hand. */
int32_t llama_process(struct llama_context * context, int type, void * batch);

int32_t llama_process(struct llama_context * context, int type, void * batch) {
    NEXT(llama_process);
    CALL(context, type, batch);
}

enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t scheduler, struct ggml_cgraph * graph) {
    NEXT(ggml_backend_sched_graph_compute_async);
    const int64_t start = now();
    const enum ggml_status status = next(scheduler, graph);
    graphs_ns += now() - start;
    return status;
}

/* Declared by no header of llama.cpp's that is installed. */
void ggml_barrier(struct ggml_threadpool * pool);

/* Backends are loaded by dlopen, which RTLD_NEXT does not search: the function of the library that calls. */
void ggml_barrier(struct ggml_threadpool * pool) {
    static __typeof__(ggml_barrier) * _Atomic next;
    __typeof__(ggml_barrier) * found = atomic_load(&next);
    if (!found) {
        Dl_info info;
        void * library = dladdr(__builtin_return_address(0), &info) ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : NULL;
        *(void **) &found = library ? dlsym(library, "ggml_barrier") : NULL;
        if (!found) abort();
        atomic_store(&next, found);
    }
    const int64_t start = now();
    found(pool);
    atomic_fetch_add_explicit(&barriers_ns, now() - start, memory_order_relaxed);
}

void llama_sampler_apply(struct llama_sampler * sampler, llama_token_data_array * candidates) {
    NEXT(llama_sampler_apply);
    const int64_t start = sampling++ ? 0 : now();
    next(sampler, candidates);
    if (--sampling == 0) samplers_ns += now() - start;
}

__attribute__((destructor)) static void write_calls(void) {
    const char * path = getenv("WITNESS_OUT");
    FILE * file = path && count ? fopen(path, "w") : NULL;
    if (!file) return;
    fputc('[', file);
    for (int i = 0; i < count; i++) {
        const struct call * of = &calls[i];
        fprintf(file, "%s{\"start\":%ld,\"end\":%ld,\"resumed\":%ld,\"graphs\":%ld,\"barriers\":%ld,\"samplers\":%ld,\"waits\":%ld,\"faults\":%ld}",
                i ? ",\n" : "", of->start, of->end, of->resumed, of->graphs, of->barriers, of->samplers, of->waits, of->faults);
    }
    fputs("]\n", file);
    fclose(file);
}
