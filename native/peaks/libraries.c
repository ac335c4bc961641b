/* The libraries of a llama.cpp, loaded to measure what their functions take. */
#define _GNU_SOURCE
#include "peaks/libraries.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DEVICE_CPU = 0, LOG_ERROR = 4 };
/* struct ggml_threadpool_params is smaller. */
enum { POOL_PARAMS_BYTES = 4096 };
/* In each round of a measurement. */
enum { REPEATS_MIN = 3, REPEATS_MAX = 200 };
#define REPEATS_NS 50000000u

struct ggml_functions ggml;
void * cpu_device;
void ** (*extra_buffer_types)(void * device);

/* Of the CPU backend, by name; NULL where this version has none. */
static void (*set_threads)(void * backend, int threads);
static void * (*new_pool)(void * params);
static void (*free_pool)(void * pool);
static void (*set_pool)(void * backend, void * pool);

static void *base, *library, *backend;

void fail(const char * what, const char * detail) {
    fprintf(stderr, "peaks: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

void * allocate(size_t count, size_t size) {
    void * memory = calloc(count ? count : 1, size);
    if (!memory) fail("out of memory", NULL);
    return memory;
}

/* A library of the folder, whose name may end with a version. */
static void * open_library(const char * folder, const char * name) {
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/%s.so*", folder, name);
    glob_t found;
    void * opened = NULL;
    if (glob(pattern, 0, NULL, &found) == 0) opened = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
    globfree(&found);
    return opened;
}

static void log_errors(int level, const char * text, void * data) {
    (void) data;
    if (level == LOG_ERROR) fputs(text, stderr);
}

void * library_function(const char * name) {
    void * found = dlsym(base, name);
    return found || !library ? found : dlsym(library, name);
}

#define LOAD(result, name, parameters, exported)         \
    *(void **) &ggml.name = library_function(exported);  \
    if (!ggml.name) fail("this version of ggml has no function", exported);

void load_libraries(const char * folder) {
    base = open_library(folder, "libggml-base");
    if (!base) fail("cannot load libggml-base.so", dlerror());
    library = open_library(folder, "libggml");
    FUNCTIONS(LOAD)
    ggml.log_set(log_errors, NULL);
    ggml.load_from(folder);
    if (!ggml.device_by_type(DEVICE_CPU)) ggml.load_all();
    cpu_device = ggml.device_by_type(DEVICE_CPU);
    backend = cpu_device ? ggml.device_init(cpu_device, NULL) : NULL;
    if (!backend) fail("ggml has no CPU backend in", folder);
    void * registry = ggml.device_registry(cpu_device);
    *(void **) &set_threads = ggml.proc_address(registry, "ggml_backend_set_n_threads");
    *(void **) &extra_buffer_types = ggml.proc_address(registry, "ggml_backend_dev_get_extra_bufts");
    *(void **) &new_pool = ggml.proc_address(registry, "ggml_threadpool_new");
    *(void **) &free_pool = ggml.proc_address(registry, "ggml_threadpool_free");
    *(void **) &set_pool = ggml.proc_address(registry, "ggml_backend_cpu_set_threadpool");
    if (!set_threads) fail("ggml's CPU backend has no function", "ggml_backend_set_n_threads");
}

void * new_context(size_t tensors) {
    const size_t size = ggml.tensor_overhead() * (tensors + 8) + ggml.graph_overhead(tensors + 8, false);
    void * context = ggml.init((struct ggml_memory){size, NULL, true});
    if (!context) fail("out of memory", NULL);
    return context;
}

void * place_tensors(void * context, void * buffer_type, const char * what) {
    void * buffer = ggml.alloc(context, buffer_type);
    if (!buffer) fail("out of memory for", what);
    return buffer;
}

enum { ALIGNMENT = 64, READ_BYTES = 1 << 20, RESULT_PLACES = 2 };

size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/*
 * In what pages memory is makes a factor of its bandwidth: pages of a file that was read are large, others are not. The file has no blocks, so that nothing is written. It is read
 * from its beginning, as a model's is that was copied or downloaded: pages that come into memory by being mapped are small. The file is kept for the next ones.
 */
char * mapped_file(size_t bytes) {
    static const char * const folders[] = {"/var/tmp", "/tmp"};
    static char * mapped = NULL;
    static size_t size = 0;
    if (bytes <= size) return mapped;
    if (mapped) munmap(mapped, size);
    mapped = NULL;
    size = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !mapped; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/ggml2perfetto-peaks-XXXXXX", folders[i]);
        const int file = mkostemp(path, O_CLOEXEC);
        if (file < 0) continue;
        unlink(path);
        char * piece = allocate(1, READ_BYTES);
        bool is_read = ftruncate(file, (off_t) bytes) == 0;
        for (size_t at = 0; at < bytes && is_read; at += READ_BYTES) is_read = pread(file, piece, READ_BYTES, (off_t) at) > 0;
        free(piece);
        void * memory = is_read ? mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0) : MAP_FAILED;
        close(file);
        if (memory == MAP_FAILED) continue;
        mapped = memory;
        size = bytes;
    }
    return mapped;
}

void * place_at(char * memory, void ** tensors, int count) {
    const size_t step = aligned(ggml.nbytes(tensors[0]));
    void * buffer = ggml.buffer_at(memory, step * (size_t) count);
    if (!buffer) fail("out of memory", NULL);
    for (int i = 0; i < count; i++) ggml.alloc_at(buffer, tensors[i], memory + step * (size_t) i);
    return buffer;
}

struct results place_results(void ** tensors, int count) {
    const size_t step = aligned(ggml.nbytes(tensors[0])), size = step * RESULT_PLACES;
    char * memory = aligned_alloc(ALIGNMENT, size);
    void * buffer = memory ? ggml.buffer_at(memory, size) : NULL;
    if (!buffer) fail("out of memory for", "results");
    for (int i = 0; i < count; i++) ggml.alloc_at(buffer, tensors[i], memory + step * (size_t) (i % RESULT_PLACES));
    return (struct results){memory, buffer};
}

void free_results(struct results results) {
    ggml.free_buffer(results.buffer);
    free(results.memory);
}

void fill_tensor(void * tensor) {
    const size_t count = ggml.nbytes(tensor) / sizeof(float);
    float * values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++) values[i] = (float) (i * 7919 % 1009) / 1009 - 0.5f;
    ggml.set(tensor, values, 0, count * sizeof *values);
    free(values);
}

static int by_value(const void * a, const void * b) {
    const double left = *(const double *) a, right = *(const double *) b;
    return (left > right) - (left < right);
}

double time_of(void * graph) {
    const uint64_t began = now();
    if (ggml.compute(backend, graph) != 0) fail("ggml cannot compute the graph", NULL);
    return (double) (now() - began);
}

struct times times_of(void * graph, int nodes) {
    double ns[REPEATS_MAX];
    int repeats = 0;
    const uint64_t began = now();
    while (repeats < REPEATS_MAX && (repeats < REPEATS_MIN || now() - began < REPEATS_NS)) ns[repeats++] = time_of(graph) / nodes;
    qsort(ns, (size_t) repeats, sizeof *ns, by_value);
    return (struct times){ns[repeats / 2], ns[0], repeats};
}

void * start_threads(int threads) {
    if (threads < 1) fail("wrong number of threads", NULL);
    _Alignas(16) char params[POOL_PARAMS_BYTES];
    set_threads(backend, threads);
    if (!new_pool || !free_pool || !set_pool) return NULL;
    ggml.pool_params(params, threads);
    void * pool = new_pool(params);
    if (!pool) fail("no threads for ggml", NULL);
    set_pool(backend, pool);
    return pool;
}

void end_threads(void * pool) {
    if (!pool) return;
    set_pool(backend, NULL);
    free_pool(pool);
}
