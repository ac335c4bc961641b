/*
 * A host program of the recorder's tests: computes a graph of its own with ggml's scheduler, on a device and the CPU. A layer of it is a product
 * with a weight, an operator that the device may refuse, and a product that depends on that operator. The names are those of llama.cpp: the
 * recorder makes a call of each graph with such an input, and finds layers. Prints the sum of the results.
 *     planted LIB PLANT COUNT
 * PLANT: `layout` ARGSORT of the first part of each row, `argsort` of whole rows; `solve` SOLVE_TRI with rows of 2048, `narrow` of 1024; `sinks`
 * attention with sinks, without a mask, and with heads of 20, `sinks-24` of 24.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "ggml.h"

enum { LAYERS = 2, TOKENS = 16, ROW = 64, HEADS = 2, WIDTH_MAX = 2048 };

static float values[WIDTH_MAX * ROW];

static ggml_backend_t backend_of(enum ggml_backend_dev_type type) {
    ggml_backend_dev_t device = ggml_backend_dev_by_type(type);
    return device ? ggml_backend_dev_init(device, NULL) : NULL;
}

static struct ggml_tensor * weight(struct ggml_context * context, const char * format, int layer, int width, int rows) {
    struct ggml_tensor * tensor = ggml_new_tensor_2d(context, GGML_TYPE_F32, width, rows);
    return ggml_format_name(tensor, format, layer);
}

/* Attention to itself: its fourth source, the mask, is NULL, and the sinks are the fifth. */
static struct ggml_tensor * attention(struct ggml_context * context, struct ggml_tensor * x, struct ggml_tensor * sinks) {
    struct ggml_tensor * heads = ggml_permute(context, ggml_reshape_3d(context, x, x->ne[0] / HEADS, HEADS, TOKENS), 0, 2, 1, 3);
    struct ggml_tensor * cached = ggml_cast(context, heads, GGML_TYPE_F16);
    struct ggml_tensor * y = ggml_flash_attn_ext(context, heads, cached, cached, NULL, 0.25f, 0, 0);
    ggml_flash_attn_ext_add_sinks(y, sinks);
    return y;
}

static bool is_sorted(const char * plant) {
    return strcmp(plant, "layout") == 0 || strcmp(plant, "argsort") == 0;
}

/* Columns of what the operator reads. */
static int width_of(const char * plant) {
    if (is_sorted(plant)) return ROW;
    if (strcmp(plant, "sinks") == 0) return HEADS * 20;
    if (strcmp(plant, "sinks-24") == 0) return HEADS * 24;
    return strcmp(plant, "solve") == 0 ? WIDTH_MAX : WIDTH_MAX / 2;
}

/* The operator of a layer. */
static struct ggml_tensor * planted(struct ggml_context * context, struct ggml_context * model, const char * plant, int layer, struct ggml_tensor * x) {
    if (strcmp(plant, "layout") == 0) x = ggml_view_2d(context, x, TOKENS, x->ne[1], x->nb[1], 0);
    if (is_sorted(plant)) return ggml_argsort(context, x, GGML_SORT_ORDER_ASC);
    if (strncmp(plant, "sinks", 5) == 0) return attention(context, x, weight(model, "blk.%d.attn_sinks.weight", layer, HEADS, 1));
    struct ggml_tensor * lower = ggml_tri(context, ggml_mul_mat(context, x, x), GGML_TRI_TYPE_LOWER_DIAG);
    return ggml_solve_tri(context, lower, x, true, true, false);
}

int main(int argc, char ** argv) {
    if (argc != 4) return 2;
    const char * plant = argv[2];
    const int width = width_of(plant);
    ggml_backend_load_all_from_path(argv[1]);
    ggml_backend_t backends[] = {backend_of(GGML_BACKEND_DEVICE_TYPE_GPU), backend_of(GGML_BACKEND_DEVICE_TYPE_CPU)};
    if (!backends[0] || !backends[1]) return 1;

    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    struct ggml_context * model = ggml_init(params), * context = ggml_init(params);
    struct ggml_cgraph * graph = ggml_new_graph(context);
    struct ggml_tensor * rows = ggml_set_name(ggml_new_tensor_1d(context, GGML_TYPE_I32, TOKENS), "inp_tokens");
    struct ggml_tensor * embedding = weight(model, "token_embd.weight", 0, ROW, ROW);
    struct ggml_tensor * x = ggml_set_name(ggml_get_rows(context, embedding, rows), "inp_embd");
    ggml_set_input(rows);
    for (int layer = 0; layer < LAYERS; layer++) {
        struct ggml_tensor * y = ggml_mul_mat(context, weight(model, "blk.%d.attn_q.weight", layer, ROW, width), x);
        y = planted(context, model, plant, layer, ggml_format_name(y, "Qcur-%d", layer));
        ggml_format_name(y, "planted-%d", layer);
        if (is_sorted(plant)) y = ggml_get_rows(context, embedding, ggml_view_1d(context, y, TOKENS, 0));
        else y = ggml_reshape_2d(context, y, width, TOKENS);
        y = ggml_mul_mat(context, weight(model, "blk.%d.attn_output.weight", layer, width, ROW), y);
        x = ggml_format_name(y, "l_out-%d", layer);
    }
    ggml_set_output(x);
    ggml_build_forward_expand(graph, x);

    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(model, backends[0]);
    if (!buffer) return 1;
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    for (int i = 0; i < width * ROW; i++) values[i] = (float) ((int64_t) i * 7919 % 101) / 101 - 0.5f;
    for (struct ggml_tensor * tensor = ggml_get_first_tensor(model); tensor; tensor = ggml_get_next_tensor(model, tensor)) {
        ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
    }
    ggml_backend_sched_t scheduler = ggml_backend_sched_new(backends, NULL, 2, 256, false, true);
    if (!ggml_backend_sched_alloc_graph(scheduler, graph)) return 1;
    int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++) tokens[i] = i;
    double sum = 0;
    for (int i = 0; i < atoi(argv[3]); i++) {
        ggml_backend_tensor_set(rows, tokens, 0, sizeof tokens);
        if (ggml_backend_sched_graph_compute(scheduler, graph) != GGML_STATUS_SUCCESS) return 1;
        ggml_backend_tensor_get(x, values, 0, ggml_nbytes(x));
        for (int k = 0; k < ggml_nelements(x); k++) sum += values[k];
    }
    printf("%.17g\n", sum);
    return 0;
}
