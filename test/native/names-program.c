/*
 * A ggml that was built with another GGML_MAX_NAME, as far as the recorder needs it (-DMODULE), and a program that computes a graph whose
 * third node gets another name each time. Names differ behind the 64th byte only, in a ggml whose names are long enough.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "ggml.h"

enum { NODES = 8, RENAMED = 2, OBJECT_BYTES = 32 };

struct ggml_cgraph { int count; struct ggml_tensor * nodes[NODES]; };

#ifdef MODULE
struct ggml_context * ggml_init(struct ggml_init_params params) {
    return calloc(1, params.mem_size);
}

void ggml_free(struct ggml_context * context) {
    free(context);
}

size_t ggml_tensor_overhead(void) {
    return sizeof(struct ggml_tensor) + OBJECT_BYTES;
}

size_t ggml_graph_overhead(void) {
    return sizeof(struct ggml_cgraph);
}

struct ggml_tensor * ggml_new_tensor_4d(struct ggml_context * context, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    (void) context;
    struct ggml_tensor * tensor = calloc(1, ggml_tensor_overhead());
    *tensor = (struct ggml_tensor){.type = type, .ne = {ne0, ne1, ne2, ne3}};
    tensor->nb[0] = type == GGML_TYPE_F16 ? 2 : 4;
    for (int i = 1; i < GGML_MAX_DIMS; i++) tensor->nb[i] = tensor->nb[i - 1] * (size_t) tensor->ne[i - 1];
    return tensor;
}

static struct ggml_tensor * result(enum ggml_op op, struct ggml_tensor * a, struct ggml_tensor * b) {
    struct ggml_tensor * tensor = ggml_new_tensor_4d(NULL, a->type, a->ne[0], a->ne[1], a->ne[2], a->ne[3]);
    tensor->op = op;
    tensor->src[0] = a;
    tensor->src[1] = b;
    return tensor;
}

struct ggml_tensor * ggml_mul(struct ggml_context * context, struct ggml_tensor * a, struct ggml_tensor * b) {
    (void) context;
    return result(GGML_OP_MUL, a, b);
}

struct ggml_tensor * ggml_add(struct ggml_context * context, struct ggml_tensor * a, struct ggml_tensor * b) {
    (void) context;
    return result(GGML_OP_ADD, a, b);
}

struct ggml_tensor * ggml_view_1d(struct ggml_context * context, struct ggml_tensor * a, int64_t ne0, size_t offset) {
    struct ggml_tensor * view = ggml_new_tensor_4d(context, a->type, ne0, 1, 1, 1);
    view->op = GGML_OP_VIEW;
    view->src[0] = view->view_src = a;
    view->view_offs = offset;
    return view;
}

const char * ggml_op_name(enum ggml_op op) {
    return op == GGML_OP_NONE ? "NONE" : op == GGML_OP_MUL ? "MUL" : op == GGML_OP_ADD ? "ADD" : op == GGML_OP_VIEW ? "VIEW" : "OTHER";
}

const char * ggml_type_name(enum ggml_type type) {
    return type == GGML_TYPE_F16 ? "f16" : "f32";
}

const char * ggml_get_name(const struct ggml_tensor * tensor) {
    return tensor->name;
}

struct ggml_tensor * ggml_set_name(struct ggml_tensor * tensor, const char * name) {
    snprintf(tensor->name, sizeof(tensor->name), "%s", name);
    return tensor;
}

void * ggml_get_data(const struct ggml_tensor * tensor) {
    return tensor->data;
}

int ggml_graph_n_nodes(struct ggml_cgraph * graph) {
    return graph->count;
}

struct ggml_tensor * ggml_graph_node(struct ggml_cgraph * graph, int i) {
    return graph->nodes[i];
}

enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend, struct ggml_cgraph * graph) {
    (void) backend, (void) graph;
    return GGML_STATUS_SUCCESS;
}
#else
int main(int count, char ** names) {
    struct ggml_tensor * a = ggml_new_tensor_4d(NULL, GGML_TYPE_F32, 4, 4, 1, 1);
    struct ggml_cgraph graph = {.count = NODES};
    for (int i = 0; i < NODES; i++) graph.nodes[i] = ggml_mul(NULL, a, a);
    for (int i = 1; i < count; i++) {
        ggml_set_name(graph.nodes[RENAMED], names[i]);
        ggml_backend_graph_compute_async(NULL, &graph);
    }
    return 0;
}
#endif
