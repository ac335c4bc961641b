/*
 * Measures ggml's own matrix products and attention with the libraries of a llama.cpp: `peaks --ggml FOLDER`. Jobs come on stdin, a line each, and their
 * results leave on stdout as a line of JSON each:
 *
 *     weights TYPE NAME COLUMNS ROWS COPIES   makes so many matrices of this type, by ggml's number and name
 *     weights TYPE NAME COLUMNS ROWS COPIES EXPERTS USED   makes so many sets of matrices, of which each token uses some; 0 0: matrices
 *     weights TYPE NAME COLUMNS ROWS COPIES EXPERTS USED MEMORY   the same in memory by number (enum memory)
 *     products TOKENS THREADS                 times the products of each of them with so many tokens: a graph of one node for each
 *     nodes THREADS                           times nodes that compute nearly nothing: what starting one and its barrier take
 *     attention …, attend …                   times flash attention (attention.c)
 *
 * As in llama.cpp, weights are in the first buffer type of the CPU that supports their product, such as CPU_REPACK, and threads in a pool. A product
 * reads a matrix that was read COPIES products ago, so that it is in a cache only where it would be in the model.
 */
#include "peaks/libraries.h"
#include "peaks/peaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The matrices of the latest job. */
static struct {
    char type[32];
    int64_t columns, rows;
    int copies;
    int experts, used; /* 0: each is one matrix */
    void *context, *buffer, **tensors;
    const char * memory;
} weights;

/* As llama.cpp has weights that it reads; as in the file, in memory or mapped; or as llama.cpp has those of a file that it maps. */
enum memory { READ, AS_IN_FILE, MAPPED, AS_MAPPED, MEMORIES };
#define MAPPED_FILE "mapped file"

enum { ROWS_MADE = 32, NODES_MAX = 65536, EMPTY_NODES = 512, EXPERTS_MAX = 4096 };
#define GRAPH_NS 80000000u

/* ---- Weights ---- */

static void * new_matrix(void * context, int type) {
    return weights.experts ? ggml.tensor_3d(context, type, weights.columns, weights.rows, weights.experts)
                           : ggml.tensor_2d(context, type, weights.columns, weights.rows);
}

/* As llama.cpp asks devices, with so many tokens. */
static void * asked_product(void * context, void * matrix) {
    enum { TOKENS = 512 };
    if (!weights.experts) return ggml.mul_mat(context, matrix, ggml.tensor_2d(context, F32, weights.columns, TOKENS));
    void * input = ggml.tensor_3d(context, F32, weights.columns, weights.used, TOKENS);
    return ggml.mul_mat_id(context, matrix, input, ggml.tensor_2d(context, I32, weights.used, TOKENS));
}

/* Where llama.cpp would put them: in the first buffer type that supports their product. */
static void * buffer_type_for(int type) {
    void ** extra = extra_buffer_types ? extra_buffer_types(cpu_device) : NULL;
    for (; extra && *extra; extra++) {
        void * context = new_context(4);
        void * matrix = new_matrix(context, type);
        void * buffer = ggml.alloc(context, *extra);
        void * op = buffer ? asked_product(context, matrix) : NULL;
        const bool is_supported = op && ggml.supports_op(cpu_device, op);
        if (buffer) ggml.free_buffer(buffer);
        ggml.free(context);
        if (is_supported) return *extra;
    }
    return ggml.device_buffer_type(cpu_device);
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

/* Zeros are ordinary values, too. False: no file can be mapped here. */
static bool map_weights(void) {
    char * memory = mapped_file(aligned(ggml.nbytes(weights.tensors[0])) * (size_t) weights.copies);
    if (!memory) return false;
    weights.buffer = place_at(memory, weights.tensors, weights.copies);
    weights.memory = MAPPED_FILE;
    return true;
}

static void make_weights(int type, const char * name, int64_t columns, int64_t rows, int copies, int experts, int used, int memory) {
    drop_weights();
    if (columns < 1 || rows < 1 || copies < 1 || copies > NODES_MAX || type < 0 || type >= TYPES_MAX) fail("wrong weights", name);
    if (memory < 0 || memory >= MEMORIES) fail("wrong memory", name);
    if (experts < 0 || experts > EXPERTS_MAX || used < 0 || used > experts || (experts > 0) != (used > 0)) fail("wrong experts", name);
    if (strcmp(ggml.type_name(type), name) != 0) fail("this version of ggml has another type of that number, no", name);
    if (ggml.requires_imatrix(type)) fail("this type cannot be made without an importance matrix", name);
    snprintf(weights.type, sizeof weights.type, "%s", name);
    weights.columns = columns;
    weights.rows = rows;
    weights.copies = copies;
    weights.experts = experts;
    weights.used = used;
    void * const plain = ggml.device_buffer_type(cpu_device);
    void * const chosen = memory == READ || memory == AS_MAPPED ? buffer_type_for(type) : plain;
    weights.context = new_context((size_t) copies);
    weights.tensors = allocate((size_t) copies, sizeof *weights.tensors);
    for (int i = 0; i < copies; i++) weights.tensors[i] = new_matrix(weights.context, type);
    if ((memory == MAPPED || memory == AS_MAPPED) && chosen == plain && map_weights()) return;
    weights.buffer = place_tensors(weights.context, chosen, "weights");
    weights.memory = ggml.buffer_type_name(chosen);
    const size_t size = ggml.nbytes(weights.tensors[0]);
    char * matrix = made_matrix(type, size);
    for (int i = 0; i < copies; i++) ggml.set(weights.tensors[i], matrix, 0, size);
    free(matrix);
}

/* ---- Times ---- */

/* Each token uses other experts, and each product, too: random ones, each once. */
static void choose_experts(void * ids, int tokens, uint32_t * random) {
    const size_t count = (size_t) weights.used * (size_t) tokens;
    int32_t * chosen = allocate(count, sizeof *chosen);
    int32_t * order = allocate((size_t) weights.experts, sizeof *order);
    for (int i = 0; i < weights.experts; i++) order[i] = i;
    for (int token = 0; token < tokens; token++) {
        for (int i = 0; i < weights.used; i++) {
            *random = *random * 1664525u + 1013904223u;
            const int other = i + (int) ((*random >> 8) % (uint32_t) (weights.experts - i));
            const int32_t expert = order[other];
            order[other] = order[i];
            order[i] = expert;
            chosen[token * weights.used + i] = expert;
        }
    }
    ggml.set(ids, chosen, 0, count * sizeof *chosen);
    free(order);
    free(chosen);
}

/* Products with the first `nodes` matrices. */
static struct times products_of(int tokens, int nodes, bool is_once) {
    void * context = new_context(2 * (size_t) nodes + 1);
    void * input = weights.experts ? ggml.tensor_3d(context, F32, weights.columns, 1, tokens)
                                   : ggml.tensor_2d(context, F32, weights.columns, tokens);
    /* Matrices and choices are leaves, which are limited as nodes are. */
    void * graph = ggml.graph(context, 2 * (size_t) nodes + 8, false);
    void ** ids = allocate((size_t) nodes, sizeof *ids);
    void ** products = allocate((size_t) nodes, sizeof *products);
    for (int i = 0; i < nodes; i++) {
        void * matrix = weights.tensors[i];
        if (weights.experts) ids[i] = ggml.tensor_2d(context, I32, weights.used, tokens);
        products[i] = ids[i] ? ggml.mul_mat_id(context, matrix, input, ids[i]) : ggml.mul_mat(context, matrix, input);
        ggml.expand(graph, products[i]);
    }
    const struct results results = place_results(products, nodes);
    void * buffer = place_tensors(context, ggml.device_buffer_type(cpu_device), "results");
    fill_tensor(input);
    uint32_t random = 1;
    for (int i = 0; i < nodes; i++)
        if (ids[i]) choose_experts(ids[i], tokens, &random);
    const double first = time_of(graph) / nodes;
    const struct times times = is_once ? (struct times){first, first, 1} : times_of(graph, nodes);
    ggml.free_buffer(buffer);
    free_results(results);
    ggml.free(context);
    free(ids);
    free(products);
    return times;
}

static void measure_products(int tokens, int threads) {
    if (!weights.context) fail("products without weights", NULL);
    if (tokens < 1) fail("wrong number of tokens", NULL);
    void * pool = start_threads(threads);
    const int copies = weights.copies;
    double once = products_of(tokens, 1, true).best;
    /* A new thread begins some ms late where CPUs are busy: a graph of few matrices would follow, which caches contain. */
    for (double spent = once; spent < GRAPH_NS && once * copies > GRAPH_NS;) {
        const double again = products_of(tokens, 1, true).best;
        spent += again;
        if (again < once) once = again;
    }
    int nodes = copies;
    /* Products that take long are bound by arithmetic: what caches contain does not matter. */
    if (once * nodes > GRAPH_NS) nodes = once < GRAPH_NS ? (int) (GRAPH_NS / once) : 1;
    const struct times times = products_of(tokens, nodes, false);
    end_threads(pool);
    printf("{\"type\": \"%s\", \"columns\": %lld, \"rows\": %lld, \"copies\": %d, \"experts\": %d, \"used\": %d, \"buffer\": \"%s\", "
           "\"tokens\": %d, \"threads\": %d, \"nodes\": %d, \"repeats\": %d, \"ns\": %.0f, \"best_ns\": %.0f}\n",
           weights.type, (long long) weights.columns, (long long) weights.rows, weights.copies, weights.experts, weights.used,
           weights.memory, tokens, threads, nodes, times.repeats, times.median, times.best);
}

static void measure_nodes(int threads) {
    void * pool = start_threads(threads);
    void * context = new_context(EMPTY_NODES + 1);
    void * input = ggml.tensor_2d(context, F32, 32, 1);
    void * graph = ggml.graph(context, EMPTY_NODES + 8, false);
    void * sum = input;
    for (int i = 0; i < EMPTY_NODES; i++) sum = ggml.add(context, sum, input);
    ggml.expand(graph, sum);
    void * buffer = place_tensors(context, ggml.device_buffer_type(cpu_device), "results");
    fill_tensor(input);
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
    int type, copies, experts, used, memory, tokens, threads;
    long long columns, rows;
    load_libraries(folder);
    while (fgets(line, sizeof line, stdin)) {
        experts = used = memory = 0;
        if (sscanf(line, "weights %d %31s %lld %lld %d %d %d %d", &type, name, &columns, &rows, &copies, &experts, &used, &memory) >= 5) {
            make_weights(type, name, columns, rows, copies, experts, used, memory);
        } else if (sscanf(line, "products %d %d", &tokens, &threads) == 2) {
            measure_products(tokens, threads);
        } else if (sscanf(line, "nodes %d", &threads) == 1) {
            measure_nodes(threads);
        } else if (!choose_attention(line) && !measure_attention(line)) {
            fail("no job", line);
        }
        fflush(stdout);
    }
    drop_weights();
    return 0;
}
