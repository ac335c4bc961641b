/*
 * A host program for the recorder's tests that uses ggml alone, without llama.cpp: y = swiglu(W x), gelu(y), W of 256 × 256,
 * computed as often and in the way that its arguments say. Prints the sum of the results, and how many nodes were computed.
 *     alone LIB backend|plan|fresh|sched|named COUNT
 * plan: ggml_graph_compute_with_ctx, as programs without a backend do; fresh: with a context of its own each time. sched: by a scheduler; named: whose input is called as
 * llama.cpp calls its own (libraries that keep llama_decode to themselves).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { SIZE = 256, TOKENS = 3 };

/* Functions of ggml-cpu: backends are loaded at run time, out of the linker's sight. */
static int find_library(struct dl_phdr_info * info, size_t size, void * found) {
    (void) size;
    if (!strstr(info->dlpi_name, "libggml-cpu")) return 0;
    *(void **) found = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
    return 1;
}

static void * cpu_function(const char * name) {
    void * library = NULL;
    dl_iterate_phdr(find_library, &library);
    void * function = library ? dlsym(library, name) : NULL;
    if (!function) exit((fprintf(stderr, "alone: %s is missing\n", name), 1));
    return function;
}

static struct ggml_tensor * build(struct ggml_context * context, struct ggml_cgraph * graph, struct ggml_tensor ** weight,
                                  struct ggml_tensor ** input) {
    *weight = ggml_set_name(ggml_new_tensor_2d(context, GGML_TYPE_F32, SIZE, SIZE), "W");
    *input = ggml_new_tensor_1d(context, GGML_TYPE_I32, TOKENS);
    ggml_set_input(*input);
    struct ggml_tensor * y = ggml_mul_mat(context, *weight, ggml_get_rows(context, *weight, *input));
    y = ggml_set_name(ggml_gelu(context, ggml_swiglu(context, y)), "y");
    ggml_set_output(y);
    ggml_build_forward_expand(graph, y);
    return y;
}

int main(int argc, char ** argv) {
    if (argc != 4) return 2;
    const char * way = argv[2];
    const int count = atoi(argv[3]);
    ggml_backend_load_all_from_path(argv[1]);
    ggml_backend_t backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    const bool is_fresh = strcmp(way, "fresh") == 0, is_plan = is_fresh || strcmp(way, "plan") == 0;
    const struct ggml_init_params params = {.mem_size = 16 << 20, .no_alloc = !is_plan};
    struct ggml_context * context = ggml_init(params);
    struct ggml_cgraph * graph = ggml_new_graph(context);
    struct ggml_tensor * weight, * input, * y = build(context, graph, &weight, &input);
    if (strcmp(way, "named") == 0) ggml_set_name(input, "inp_tokens");

    ggml_backend_sched_t scheduler = NULL;
    if (strcmp(way, "sched") == 0 || strcmp(way, "named") == 0) {
        scheduler = ggml_backend_sched_new(&backend, NULL, 1, 64, false, true);
        if (!ggml_backend_sched_alloc_graph(scheduler, graph)) return 1;
    } else if (!is_plan) {
        ggml_backend_alloc_ctx_tensors(context, backend);
    }
    float weights[SIZE * SIZE];
    for (int i = 0; i < SIZE * SIZE; i++) weights[i] = (float) (i * 7919 % 101) / 101 - 0.5f;
    const int32_t rows[TOKENS] = {1, 5, 250};
    double sum = 0;
    for (int i = 0; i < count; i++) {
        if (is_fresh && i > 0) {
            ggml_free(context);
            graph = ggml_new_graph(context = ggml_init(params));
            y = build(context, graph, &weight, &input);
        }
        if (is_plan) memcpy(weight->data, weights, sizeof weights), memcpy(input->data, rows, sizeof rows);
        else ggml_backend_tensor_set(weight, weights, 0, sizeof weights), ggml_backend_tensor_set(input, rows, 0, sizeof rows);
        __typeof__(ggml_graph_compute_with_ctx) * compute = NULL;
        if (is_plan) *(void **) &compute = cpu_function("ggml_graph_compute_with_ctx");
        const enum ggml_status status = is_plan     ? compute(context, graph, 2)
                                        : scheduler ? ggml_backend_sched_graph_compute(scheduler, graph)
                                                    : ggml_backend_graph_compute(backend, graph);
        if (status != GGML_STATUS_SUCCESS) return 1;
        float result[SIZE / 2 * TOKENS];
        if (is_plan) memcpy(result, y->data, sizeof result);
        else ggml_backend_tensor_get(y, result, 0, sizeof result);
        for (int k = 0; k < SIZE / 2 * TOKENS; k++) sum += result[k];
    }
    printf("%.17g %d\n", sum, count * ggml_graph_n_nodes(graph));
    return 0;
}
