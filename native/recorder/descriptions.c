#include "recorder/descriptions.h"

#include "common/table.h"
#include "recorder/graph.h"
#include "recorder/registry-inside.h"

enum { NOT_A_NODE = -1 };

/* A node that has changed before. */
struct changing {
    bool is_known; /* are the other fields complete? */
    struct description description;
    struct fingerprint * fingerprint; /* in the registry */
    /* Its sources: their indexes in the graph, or NOT_A_NODE, and then their fingerprints. */
    int nodes[TENSOR_SOURCES_MAX];
    uint64_t wholes[TENSOR_SOURCES_MAX];
    int view_node; /* the same of what it is a view of */
    const void * view_source;
    /* What else the description was made from. */
    const void * buffer;
    const char * op_name;
    int32_t type;
    char name[];
};

static int index_before(const struct graph * graph, int index, const void * tensor) {
    while (--index >= 0 && graph->nodes[index].tensor != tensor) continue;
    return index < 0 ? NOT_A_NODE : index;
}

static const void * view_source_of(const void * node) {
    return layout_pointer(node, registry.layout->view_source);
}

static bool is_described(const struct changing * known, const void * node) {
    const struct tensor_layout * layout = registry.layout;
    return known->view_source == view_source_of(node) && known->buffer == registry_own_buffer(node) &&
        known->type == layout_i32(node, layout->type) && known->op_name == registry_op_name(node) &&
        memcmp(known->name, (const char *) node + layout->name, (size_t) layout->name_bytes) == 0;
}

/* Describes the node with all look-ups. */
static void learn(struct graph * graph, int index) {
    struct changing * known = graph->changing[index];
    const struct tensor_layout * layout = registry.layout;
    if (!known) known = graph->changing[index] = reserve(sizeof(*known) + (size_t) layout->name_bytes);
    if (!known) return;
    const void * node = graph->nodes[index].tensor;
    registry_describe(node, &known->description);
    int count = 0;
    for (int i = 0; i < layout->source_count; i++) {
        const void * source = registry_source(node, i);
        if (!source) continue;
        known->nodes[count] = index_before(graph, index, source);
        known->wholes[count++] = registry_fingerprint(source);
    }
    known->fingerprint = registry_fingerprint_of(node);
    known->view_source = view_source_of(node);
    known->view_node = known->view_source ? index_before(graph, index, known->view_source) : NOT_A_NODE;
    known->buffer = registry_own_buffer(node);
    known->op_name = registry_op_name(node);
    known->type = layout_i32(node, layout->type);
    memcpy(known->name, (const char *) node + layout->name, (size_t) layout->name_bytes);
    known->is_known = known->fingerprint && count == known->description.definition.source_count;
}

/* As registry_fingerprint_node does. */
static void set_fingerprint(struct graph * graph, int index, const struct changing * known) {
    struct fingerprint * fingerprint = &graph->fingerprints[index];
    fingerprint->own = fingerprint->whole = registry_own_fingerprint(graph->nodes[index].tensor);
    for (int i = 0; i < known->description.definition.source_count; i++) {
        const int source = known->nodes[i];
        fingerprint->whole = mix(fingerprint->whole, source == NOT_A_NODE ? known->wholes[i] : graph->fingerprints[source].whole);
    }
    *known->fingerprint = *fingerprint;
}

static uint32_t define_again(const struct graph * graph, int index, struct changing * known, const uint32_t * ids) {
    bool is_new = false;
    const uint32_t id = registry_new_tensor(graph->fingerprints[index].whole, &is_new);
    if (!is_new) return id;
    struct description * description = &known->description;
    for (int i = 0; i < description->definition.source_count; i++) {
        if (known->nodes[i] != NOT_A_NODE) description->sources[i] = ids[known->nodes[i]];
    }
    if (known->view_node != NOT_A_NODE) description->definition.view_source = ids[known->view_node];
    registry_define(id, graph->nodes[index].tensor, description);
    return id;
}

static bool can_describe(const struct graph * graph, int index) {
    const struct changing * known = graph->changing ? graph->changing[index] : NULL;
    return known && known->is_known && is_described(known, graph->nodes[index].tensor);
}

void descriptions_forget(struct graph * graph) {
    for (int i = 0; graph->changing && i < graph->capacity; i++) if (graph->changing[i]) graph->changing[i]->is_known = false;
}

void descriptions_renew(struct graph * graph, const int indexes[], int count, bool others_differ, uint32_t * ids) {
    if (!graph->changing) graph->changing = reserve((size_t) graph->capacity * sizeof(*graph->changing));
    int quick = 0; /* how many of them, from the first on, need no look-ups */
    while (quick < count && !others_differ && can_describe(graph, indexes[quick])) {
        set_fingerprint(graph, indexes[quick], graph->changing[indexes[quick]]);
        registry_expect_tensor(graph->fingerprints[indexes[quick++]].whole);
    }
    for (int k = 0; k < count; k++) {
        const int i = indexes[k];
        if (k < quick) {
            ids[i] = define_again(graph, i, graph->changing[i], ids);
            continue;
        }
        graph->fingerprints[i] = registry_fingerprint_node(graph->nodes[i].tensor);
        ids[i] = registry_node_locked(graph->nodes[i].tensor, graph->fingerprints[i].whole);
        if (graph->changing) learn(graph, i);
    }
}
