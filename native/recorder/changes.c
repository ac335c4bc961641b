#include "recorder/changes.h"

#include "common/table.h"
#include "recorder/graph.h"
#include "recorder/ops.h"
#include "recorder/registry-inside.h"

/* More inputs than this are not watched. */
enum { INPUTS_MAX = 512 };

static bool is_input(const void * source) {
    if (!source || op_of(source) != OP_NONE) return false;
    void * buffer = registry.layout->buffer < 0 ? NULL : layout_pointer(source, registry.layout->buffer);
    const bool is_weight = buffer && registry.api->buffer_get_usage && registry.api->buffer_get_usage(buffer) == 1;
    return !is_weight;
}

/* Fills a set with the nodes of a graph; NULL if memory is short. */
static const void ** set_of_nodes(const struct graph * graph, uint32_t * mask) {
    static const void ** set;
    static uint32_t capacity;
    uint32_t wanted = 1024;
    while (wanted < 2 * (uint32_t) graph->node_count) wanted *= 2;
    if (wanted > capacity) {
        set = reserve(wanted * sizeof(*set));
        capacity = set ? wanted : 0;
    }
    if (!set) return NULL;
    *mask = capacity - 1;
    memset(set, 0, capacity * sizeof(*set));
    for (int i = 0; i < graph->node_count; i++) {
        const void * node = graph->nodes[i].tensor;
        uint32_t slot = (uint32_t) mix(13, (uint64_t) (uintptr_t) node) & *mask;
        while (set[slot]) slot = (slot + 1) & *mask;
        set[slot] = node;
    }
    return set;
}

static bool set_has(const void ** set, uint32_t mask, const void * node) {
    uint32_t slot = (uint32_t) mix(13, (uint64_t) (uintptr_t) node) & mask;
    while (set[slot] && set[slot] != node) slot = (slot + 1) & mask;
    return set[slot];
}

/* The inputs stay unknown if a node of another graph is among them. */
void changes_prepare(struct graph * graph) {
    graph->input_count = INPUTS_UNKNOWN;
    const void * found[INPUTS_MAX];
    const size_t bytes = registry_compared_bytes();
    uint32_t mask = 0;
    const void ** nodes = set_of_nodes(graph, &mask);
    int count = 0;
    for (int i = 0; i < graph->node_count; i++) {
        for (int k = 0; k < registry.layout->source_count; k++) {
            const void * source = registry_source(graph->nodes[i].tensor, k);
            if (!nodes || (source && op_of(source) != OP_NONE && !set_has(nodes, mask, source))) return;
            if (!is_input(source)) continue;
            int at = 0;
            while (at < count && found[at] != source) at++;
            if (at == INPUTS_MAX) return;
            found[at] = source;
            if (at == count) count++;
        }
    }
    if (count > graph->input_capacity) {
        graph->input_capacity = 0;
        graph->inputs = reserve((size_t) count * sizeof(*graph->inputs));
        graph->inputs_snapshot = reserve((size_t) count * bytes);
        if (!graph->inputs || !graph->inputs_snapshot) return;
        graph->input_capacity = count;
    }
    memcpy(graph->inputs, found, (size_t) count * sizeof(*found));
    for (int i = 0; i < count; i++) memcpy(graph->inputs_snapshot + (size_t) i * bytes, found[i], bytes);
    graph->input_count = count;
}

/* A set of pointers; most pointers that are not in it are recognised by their bit. */
struct few {
    uint64_t bits[32];
    int count;
    const void * members[INPUTS_MAX + CHANGED_MAX];
};

static uint64_t * few_word(struct few * set, const void * pointer, uint64_t * bit) {
    const uint64_t hash = mix(12, (uint64_t) (uintptr_t) pointer);
    *bit = 1ull << (hash & 63);
    return &set->bits[hash >> 6 & 31];
}

static void few_add(struct few * set, const void * pointer) {
    uint64_t bit;
    *few_word(set, pointer, &bit) |= bit;
    set->members[set->count++] = pointer;
}

static bool few_has(struct few * set, const void * pointer) {
    uint64_t bit;
    if (!(*few_word(set, pointer, &bit) & bit)) return false;
    int at = set->count;
    while (at > 0 && set->members[at - 1] != pointer) at--;
    return at > 0;
}

static bool has_changed_source(const void * node, struct few * changed) {
    for (int i = 0; i < registry.layout->source_count; i++) {
        const void * source = registry_source(node, i);
        if (source && few_has(changed, source)) return true;
    }
    return false;
}

/* Has the node the same op and sources as before, and is it still computed, or not? */
static bool has_same_links(const void * node, const void * before) {
    const struct tensor_layout * layout = registry.layout;
    return layout_i32(node, layout->op) == layout_i32(before, layout->op) &&
        memcmp((const char *) node + layout->sources, (const char *) before + layout->sources, 8 * (size_t) layout->source_count) == 0 &&
        op_is_computed(node) == op_is_computed(before);
}

/* The nodes of `graph` whose structs have changed; -1: too many, or it is another graph. */
static int different_nodes(const struct graph * graph, void * cgraph, int indexes[], int most) {
    const size_t bytes = registry_compared_bytes();
    int found = 0;
    for (int i = 0; i < graph->node_count; i++) {
        const void * node = registry.api->graph_node(cgraph, i), * before = graph->snapshot + (size_t) i * bytes;
        if (node != graph->nodes[i].tensor) return -1;
        if (memcmp(node, before, bytes) == 0) continue;
        if (found == most || !has_same_links(node, before)) return -1;
        indexes[found++] = i;
    }
    return found;
}

/* Only the nodes surely exist yet, not what the graph's last run read. */
int changes_find(const struct graph * graph, void * cgraph, int indexes[], int most, bool * inputs_differ) {
    if (graph->input_count == INPUTS_UNKNOWN) return -1;
    static int different[CHANGED_MAX]; /* these two are under the lock */
    static struct few changed;
    const size_t bytes = registry_compared_bytes();
    const int differ = different_nodes(graph, cgraph, different, most);
    if (differ < 0) return -1;
    memset(changed.bits, 0, sizeof(changed.bits));
    changed.count = 0;
    /* The nodes have the same sources as before: their inputs exist. */
    for (int i = 0; i < graph->input_count; i++) {
        if (memcmp(graph->inputs[i], graph->inputs_snapshot + (size_t) i * bytes, bytes) != 0) few_add(&changed, graph->inputs[i]);
    }
    *inputs_differ = changed.count > 0;
    int found = 0, next = 0;
    for (int i = 0; i < graph->node_count; i++) {
        const bool differs = next < differ && different[next] == i;
        next += differs;
        if (!differs && !(changed.count && has_changed_source(graph->nodes[i].tensor, &changed))) continue;
        if (found == most) return -1;
        indexes[found++] = i;
        few_add(&changed, graph->nodes[i].tensor);
    }
    return found;
}

void changes_accept(struct graph * graph, const int indexes[], int count) {
    const size_t bytes = registry_compared_bytes();
    for (int i = 0; i < graph->input_count; i++) memcpy(graph->inputs_snapshot + (size_t) i * bytes, graph->inputs[i], bytes);
    for (int k = 0; k < count; k++) memcpy(graph->snapshot + (size_t) indexes[k] * bytes, graph->nodes[indexes[k]].tensor, bytes);
}
