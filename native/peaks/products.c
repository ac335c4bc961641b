/*
 * Measures ggml's own matrix products with the libraries of a llama.cpp: `peaks --ggml FOLDER`. Jobs come on stdin, a line each, and their
 * results leave on stdout as a line of JSON each:
 *
 *     weights TYPE NAME COLUMNS ROWS COPIES   makes so many matrices of this type, by ggml's number and name
 *     products TOKENS THREADS                 times the products of each of them with so many tokens: a graph of one node for each
 *     nodes THREADS                           times nodes that compute nearly nothing: what starting one and its barrier take
 *
 * As in llama.cpp, weights are in the first buffer type of the CPU that supports their product, such as CPU_REPACK, and threads in a pool. A product
 * reads a matrix that was read COPIES products ago, so that it is in a cache only where it would be in the model.
 */
#define _GNU_SOURCE
#include "peaks/peaks.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of ggml.h and ggml-backend.h; the same in all versions. */
enum { F32 = 0, DEVICE_CPU = 0, LOG_ERROR = 4, TYPES_MAX = 64 };
/* struct ggml_threadpool_params is smaller. */
enum { POOL_PARAMS_BYTES = 4096 };

struct ggml_memory { /* ggml_init_params */
    size_t size;
    void * buffer;
    bool no_alloc;
};

#define FUNCTIONS(F)                                                                                                         \
    F(void *, init, (struct ggml_memory), "ggml_init")                                                                       \
    F(void, free, (void * context), "ggml_free")                                                                             \
    F(size_t, tensor_overhead, (void), "ggml_tensor_overhead")                                                               \
    F(size_t, graph_overhead, (size_t nodes, bool grads), "ggml_graph_overhead_custom")                                      \
    F(const char *, type_name, (int type), "ggml_type_name")                                                                 \
    F(size_t, row_size, (int type, int64_t columns), "ggml_row_size")                                                        \
    F(size_t, nbytes, (const void * tensor), "ggml_nbytes")                                                                  \
    F(bool, requires_imatrix, (int type), "ggml_quantize_requires_imatrix")                                                  \
    F(size_t, quantize, (int type, const float * from, void * to, int64_t start, int64_t rows, int64_t columns, const float * imatrix), \
      "ggml_quantize_chunk")                                                                                                 \
    F(void *, tensor_2d, (void * context, int type, int64_t columns, int64_t rows), "ggml_new_tensor_2d")                    \
    F(void *, mul_mat, (void * context, void * a, void * b), "ggml_mul_mat")                                                 \
    F(void *, add, (void * context, void * a, void * b), "ggml_add")                                                         \
    F(void *, graph, (void * context, size_t nodes, bool grads), "ggml_new_graph_custom")                                    \
    F(void, expand, (void * graph, void * tensor), "ggml_build_forward_expand")                                              \
    F(void, pool_params, (void * params, int threads), "ggml_threadpool_params_init")                                        \
    F(void *, alloc, (void * context, void * buffer_type), "ggml_backend_alloc_ctx_tensors_from_buft")                       \
    F(void, free_buffer, (void * buffer), "ggml_backend_buffer_free")                                                        \
    F(void, set, (void * tensor, const void * data, size_t offset, size_t size), "ggml_backend_tensor_set")                  \
    F(const char *, buffer_type_name, (void * buffer_type), "ggml_backend_buft_name")                                        \
    F(int, compute, (void * backend, void * graph), "ggml_backend_graph_compute")                                            \
    F(void *, device_by_type, (int type), "ggml_backend_dev_by_type")                                                        \
    F(void *, device_init, (void * device, const char * params), "ggml_backend_dev_init")                                    \
    F(void *, device_registry, (void * device), "ggml_backend_dev_backend_reg")                                              \
    F(void *, device_buffer_type, (void * device), "ggml_backend_dev_buffer_type")                                           \
    F(bool, supports_op, (void * device, const void * op), "ggml_backend_dev_supports_op")                                   \
    F(void *, proc_address, (void * registry, const char * name), "ggml_backend_reg_get_proc_address")                       \
    F(void, log_set, (void (*log)(int level, const char * text, void * data), void * data), "ggml_log_set")                  \
    F(void, load_from, (const char * folder), "ggml_backend_load_all_from_path")                                             \
    F(void, load_all, (void), "ggml_backend_load_all")
#define POINTER(result, name, parameters, exported) result (*name) parameters;
static struct {
    FUNCTIONS(POINTER)
} ggml;

/* Of the CPU backend, by name; NULL where this version has none. */
static void (*set_threads)(void * backend, int threads);
static void ** (*extra_buffer_types)(void * device);
static void * (*new_pool)(void * params);
static void (*free_pool)(void * pool);
static void (*set_pool)(void * backend, void * pool);

static void *device, *backend;

/* The matrices of the latest job. */
static struct {
    char type[32];
    int64_t columns, rows;
    int copies;
    void *context, *buffer, *buffer_type, **tensors;
} weights;

enum { ROWS_MADE = 32, REPEATS_MIN = 5, REPEATS_MAX = 200, NODES_MAX = 65536, EMPTY_NODES = 512 };
#define REPEATS_NS 150000000u
#define GRAPH_NS 150000000u
#define OUTPUTS_MAX ((size_t) 256 << 20)

static void fail(const char * what, const char * detail) {
    fprintf(stderr, "peaks: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

static void * allocate(size_t count, size_t size) {
    void * memory = calloc(count ? count : 1, size);
    if (!memory) fail("out of memory", NULL);
    return memory;
}

/* ---- The libraries ---- */

/* A library of the folder, whose name may end with a version. */
static void * open_library(const char * folder, const char * name) {
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/%s.so*", folder, name);
    glob_t found;
    void * library = NULL;
    if (glob(pattern, 0, NULL, &found) == 0) library = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
    globfree(&found);
    return library;
}

static void log_errors(int level, const char * text, void * data) {
    (void) data;
    if (level == LOG_ERROR) fputs(text, stderr);
}

#define LOAD(result, name, parameters, exported)                                  \
    *(void **) &ggml.name = dlsym(base, exported);                                \
    if (!ggml.name && library) *(void **) &ggml.name = dlsym(library, exported);  \
    if (!ggml.name) fail("this version of ggml has no function", exported);

static void load(const char * folder) {
    void * base = open_library(folder, "libggml-base");
    if (!base) fail("cannot load libggml-base.so", dlerror());
    void * library = open_library(folder, "libggml");
    FUNCTIONS(LOAD)
    ggml.log_set(log_errors, NULL);
    ggml.load_from(folder);
    if (!ggml.device_by_type(DEVICE_CPU)) ggml.load_all();
    device = ggml.device_by_type(DEVICE_CPU);
    backend = device ? ggml.device_init(device, NULL) : NULL;
    if (!backend) fail("ggml has no CPU backend in", folder);
    void * registry = ggml.device_registry(device);
    *(void **) &set_threads = ggml.proc_address(registry, "ggml_backend_set_n_threads");
    *(void **) &extra_buffer_types = ggml.proc_address(registry, "ggml_backend_dev_get_extra_bufts");
    *(void **) &new_pool = ggml.proc_address(registry, "ggml_threadpool_new");
    *(void **) &free_pool = ggml.proc_address(registry, "ggml_threadpool_free");
    *(void **) &set_pool = ggml.proc_address(registry, "ggml_backend_cpu_set_threadpool");
    if (!set_threads) fail("ggml's CPU backend has no function", "ggml_backend_set_n_threads");
}

/* A context for so many tensors and a graph of them. */
static void * new_context(size_t tensors) {
    const size_t size = ggml.tensor_overhead() * (tensors + 8) + ggml.graph_overhead(tensors + 8, false);
    void * context = ggml.init((struct ggml_memory){size, NULL, true});
    if (!context) fail("out of memory", NULL);
    return context;
}

/* ---- Weights ---- */

/* Where llama.cpp would put them: in the first buffer type that supports their product. */
static void * buffer_type_for(int type) {
    void ** extra = extra_buffer_types ? extra_buffer_types(device) : NULL;
    for (; extra && *extra; extra++) {
        void * context = new_context(3);
        void * matrix = ggml.tensor_2d(context, type, weights.columns, weights.rows);
        void * buffer = ggml.alloc(context, *extra);
        void * op = buffer ? ggml.mul_mat(context, matrix, ggml.tensor_2d(context, F32, weights.columns, 512)) : NULL;
        const bool is_supported = op && ggml.supports_op(device, op);
        if (buffer) ggml.free_buffer(buffer);
        ggml.free(context);
        if (is_supported) return *extra;
    }
    return ggml.device_buffer_type(device);
}

/* Random rows, over and over: what a product takes does not depend on values, as long as they are ordinary ones. */
static char * made_matrix(int type, size_t size) {
    const size_t row = ggml.row_size(type, weights.columns);
    float * values = allocate((size_t) weights.columns * ROWS_MADE, sizeof *values);
    char * rows = allocate(ROWS_MADE, row);
    char * matrix = allocate(1, size);
    uint32_t random = 1;
    for (size_t i = 0; i < (size_t) weights.columns * ROWS_MADE; i++) {
        random = random * 1664525u + 1013904223u;
        values[i] = (float) (random >> 8) / (1 << 23) - 1;
    }
    ggml.quantize(type, values, rows, 0, ROWS_MADE, weights.columns, NULL);
    for (size_t at = 0; at < size; at += row * ROWS_MADE) {
        const size_t left = size - at;
        memcpy(matrix + at, rows, left < row * ROWS_MADE ? left : row * ROWS_MADE);
    }
    free(values);
    free(rows);
    return matrix;
}

static void drop_weights(void) {
    if (!weights.context) return;
    ggml.free_buffer(weights.buffer);
    ggml.free(weights.context);
    free(weights.tensors);
    weights.context = NULL;
}

static void make_weights(int type, const char * name, int64_t columns, int64_t rows, int copies) {
    drop_weights();
    if (columns < 1 || rows < 1 || copies < 1 || copies > NODES_MAX || type < 0 || type >= TYPES_MAX) fail("wrong weights", name);
    if (strcmp(ggml.type_name(type), name) != 0) fail("this version of ggml has another type of that number, no", name);
    if (ggml.requires_imatrix(type)) fail("this type cannot be made without an importance matrix", name);
    snprintf(weights.type, sizeof weights.type, "%s", name);
    weights.columns = columns;
    weights.rows = rows;
    weights.copies = copies;
    weights.buffer_type = buffer_type_for(type);
    weights.context = new_context((size_t) copies);
    weights.tensors = allocate((size_t) copies, sizeof *weights.tensors);
    for (int i = 0; i < copies; i++) weights.tensors[i] = ggml.tensor_2d(weights.context, type, columns, rows);
    weights.buffer = ggml.alloc(weights.context, weights.buffer_type);
    if (!weights.buffer) fail("out of memory for weights", name);
    const size_t size = ggml.nbytes(weights.tensors[0]);
    char * matrix = made_matrix(type, size);
    for (int i = 0; i < copies; i++) ggml.set(weights.tensors[i], matrix, 0, size);
    free(matrix);
}

/* ---- Times ---- */

struct times {
    double median, best; /* ns of a node */
    int repeats;
};

static int by_value(const void * a, const void * b) {
    const double left = *(const double *) a, right = *(const double *) b;
    return (left > right) - (left < right);
}

static double time_of(void * graph) {
    const uint64_t began = now();
    if (ggml.compute(backend, graph) != 0) fail("ggml cannot compute the graph", NULL);
    return (double) (now() - began);
}

static struct times times_of(void * graph, int nodes) {
    double ns[REPEATS_MAX];
    int repeats = 0;
    const uint64_t began = now();
    while (repeats < REPEATS_MAX && (repeats < REPEATS_MIN || now() - began < REPEATS_NS)) ns[repeats++] = time_of(graph) / nodes;
    qsort(ns, (size_t) repeats, sizeof *ns, by_value);
    return (struct times){ns[repeats / 2], ns[0], repeats};
}

/* So many threads compute; returns their pool. */
static void * start_threads(int threads) {
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

static void end_threads(void * pool) {
    if (!pool) return;
    set_pool(backend, NULL);
    free_pool(pool);
}

/* Values as they are between operators of a model. */
static void fill(void * tensor) {
    const size_t count = ggml.nbytes(tensor) / sizeof(float);
    float * values = allocate(count, sizeof *values);
    for (size_t i = 0; i < count; i++) values[i] = (float) (i * 7919 % 1009) / 1009 - 0.5f;
    ggml.set(tensor, values, 0, count * sizeof *values);
    free(values);
}

/* Products with the first `nodes` matrices. */
static struct times products_of(int tokens, int nodes, bool is_once) {
    void * context = new_context((size_t) nodes + 1);
    void * input = ggml.tensor_2d(context, F32, weights.columns, tokens);
    void * graph = ggml.graph(context, (size_t) nodes + 8, false);
    for (int i = 0; i < nodes; i++) ggml.expand(graph, ggml.mul_mat(context, weights.tensors[i], input));
    void * buffer = ggml.alloc(context, ggml.device_buffer_type(device));
    if (!buffer) fail("out of memory for results", NULL);
    fill(input);
    const double first = time_of(graph) / nodes;
    const struct times times = is_once ? (struct times){first, first, 1} : times_of(graph, nodes);
    ggml.free_buffer(buffer);
    ggml.free(context);
    return times;
}

static void measure_products(int tokens, int threads) {
    if (!weights.context) fail("products without weights", NULL);
    if (tokens < 1) fail("wrong number of tokens", NULL);
    void * pool = start_threads(threads);
    const double once = products_of(tokens, 1, true).best;
    int nodes = weights.copies;
    /* Products that take long are bound by arithmetic: what caches contain does not matter. */
    if (once * nodes > GRAPH_NS) nodes = once < GRAPH_NS ? (int) (GRAPH_NS / once) : 1;
    const size_t result = (size_t) weights.rows * (size_t) tokens * sizeof(float);
    if ((size_t) nodes * result > OUTPUTS_MAX) nodes = OUTPUTS_MAX / result ? (int) (OUTPUTS_MAX / result) : 1;
    const struct times times = products_of(tokens, nodes, false);
    end_threads(pool);
    printf("{\"type\": \"%s\", \"columns\": %lld, \"rows\": %lld, \"copies\": %d, \"buffer\": \"%s\", \"tokens\": %d, \"threads\": %d, "
           "\"nodes\": %d, \"repeats\": %d, \"ns\": %.0f, \"best_ns\": %.0f}\n",
           weights.type, (long long) weights.columns, (long long) weights.rows, weights.copies,
           ggml.buffer_type_name(weights.buffer_type), tokens, threads, nodes, times.repeats, times.median, times.best);
}

static void measure_nodes(int threads) {
    void * pool = start_threads(threads);
    void * context = new_context(EMPTY_NODES + 1);
    void * input = ggml.tensor_2d(context, F32, 32, 1);
    void * graph = ggml.graph(context, EMPTY_NODES + 8, false);
    void * sum = input;
    for (int i = 0; i < EMPTY_NODES; i++) sum = ggml.add(context, sum, input);
    ggml.expand(graph, sum);
    void * buffer = ggml.alloc(context, ggml.device_buffer_type(device));
    if (!buffer) fail("out of memory for results", NULL);
    fill(input);
    time_of(graph);
    const struct times times = times_of(graph, EMPTY_NODES);
    ggml.free_buffer(buffer);
    ggml.free(context);
    end_threads(pool);
    printf("{\"nodes\": true, \"threads\": %d, \"repeats\": %d, \"ns\": %.1f, \"best_ns\": %.1f}\n", threads, times.repeats,
           times.median, times.best);
}

int measure_ggml(const char * folder) {
    char line[256], name[32];
    int type, copies, tokens, threads;
    long long columns, rows;
    load(folder);
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "weights %d %31s %lld %lld %d", &type, name, &columns, &rows, &copies) == 5) {
            make_weights(type, name, columns, rows, copies);
        } else if (sscanf(line, "products %d %d", &tokens, &threads) == 2) {
            measure_products(tokens, threads);
        } else if (sscanf(line, "nodes %d", &threads) == 1) {
            measure_nodes(threads);
        } else {
            fail("no job", line);
        }
        fflush(stdout);
    }
    drop_weights();
    return 0;
}
