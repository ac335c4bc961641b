#include "recorder/graphs.h"

#include "common/hold.h"
#include "recorder/changes.h"
#include "recorder/control.h"
#include "recorder/descriptions.h"
#include "recorder/full.h"
#include "recorder/ops.h"
#include "recorder/registry-inside.h"
#include "common/table.h"

/* The graph and index of a node: written by the thread that starts a graph, read by its workers. */
struct place {
    _Atomic(const void *) tensor;
    _Atomic(struct graph *) graph;
    _Atomic int index;
};

enum { PLACES = 1 << 18, LATEST = 4, ROOM_STEP = 64, ROOM_FACTOR = 2 };

static struct place * places;
static struct graph * known;
static struct graph * latest[LATEST];
static uint32_t graph_count;

void graphs_init(void) {
    void * memory = mmap(NULL, PLACES * sizeof(struct place), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    places = memory == MAP_FAILED ? NULL : memory;
}

/*
 * The place of a tensor, or a free one; NULL: there is none. Tensors of a graph are close together in memory. So the places for 8 KiB of
 * tensors are close together too, on fewer pages. For a new tensor, a place whose graph is gone is free, too: its readers compare tensors.
 */
static inline struct place * place_of(const void * tensor, bool is_new) {
    const uint64_t address = (uint64_t) (uintptr_t) tensor;
    uint32_t slot = ((uint32_t) mix(5, address >> 13) << 6 | (uint32_t) (address >> 7 & 63)) & (PLACES - 1);
    struct place * left = NULL;
    for (int tries = 0; tries < 64; tries++, slot = (slot + 1) & (PLACES - 1)) {
        struct place * place = &places[slot];
        const void * there = atomic_load_explicit(&place->tensor, memory_order_acquire);
        if (there == tensor) return place;
        if (there == NULL) return left ? left : place;
        if (is_new && !left && !atomic_load_explicit(&place->graph, memory_order_relaxed)) left = place;
    }
    return left;
}

struct graph * graphs_find_node(const void * tensor, int * index) {
    struct place * place = places ? place_of(tensor, false) : NULL;
    if (!place || atomic_load_explicit(&place->tensor, memory_order_acquire) != tensor) return NULL;
    *index = atomic_load_explicit(&place->index, memory_order_relaxed);
    struct graph * graph = atomic_load_explicit(&place->graph, memory_order_acquire);
    if (!graph || *index >= graph->capacity) return NULL;
    /* In this order: while `edges` is odd, the nodes are those that are computed, although the memory may have been another graph's before. */
    const bool is_computed = atomic_load_explicit(&graph->edges, memory_order_acquire) & 1;
    return is_computed && graph->nodes[*index].tensor == tensor ? graph : NULL;
}

/* Publishes this graph as the one that its nodes belong to: for fingerprints and for workers. */
static void publish(struct graph * graph) {
    for (int i = 0; i < graph->node_count; i++) registry_set_fingerprint(graph->nodes[i].tensor, graph->fingerprints[i]);
    if (!places) return;
    for (int i = 0; i < graph->node_count; i++) {
        struct place * place = place_of(graph->nodes[i].tensor, true);
        if (!place) {
            full_count(FULL_NODES);
            continue;
        }
        if (atomic_load_explicit(&place->graph, memory_order_relaxed) == graph &&
            atomic_load_explicit(&place->index, memory_order_relaxed) == i) continue;
        atomic_store_explicit(&place->index, i, memory_order_relaxed);
        atomic_store_explicit(&place->graph, graph, memory_order_release);
        atomic_store_explicit(&place->tensor, graph->nodes[i].tensor, memory_order_release);
    }
}

static const void * source_of(const void * node, int i) {
    return layout_pointer(node, registry.layout->sources + 8 * i);
}

/* Do views pass the hook at the start of a node, too, and a barrier? */
static _Atomic bool views_start;

void graphs_note_view(const void * tensor) {
    if (!op_is_computed(tensor)) atomic_store_explicit(&views_start, true, memory_order_relaxed);
}

static bool is_linked(const void * node, bool has_views) {
    return op_is_computed(node) || (has_views && op_of(node) != OP_NONE && op_has_elements(node));
}

/* Links the nodes that are computed, and marks those that workers look for. */
static void link_nodes(struct graph * graph) {
    const int count = graph->node_count;
    graph->has_views = atomic_load_explicit(&views_start, memory_order_relaxed);
    const void * choice = NULL;
    int next = count;
    for (int i = count - 1; i >= 0; i--) {
        const void * node = graph->nodes[i].tensor;
        graph->nodes[i].next = next;
        graph->nodes[i].fuses_with_next = false;
        graph->nodes[i].chooses_experts = false;
        if (!is_linked(node, graph->has_views)) continue;
        if (next < count && op_of(node) == OP_RMS_NORM && op_of(graph->nodes[next].tensor) == OP_MUL) {
            const void * product = graph->nodes[next].tensor;
            graph->nodes[i].fuses_with_next = source_of(product, 0) == node || source_of(product, 1) == node;
        }
        next = i;
    }
    graph->first = next;
    for (int i = graph->first; i < count; i = graph->nodes[i].next) {
        const void * node = graph->nodes[i].tensor;
        if (op_of(node) != OP_MUL_MAT_ID || source_of(node, 2) == choice) continue;
        choice = source_of(node, 2);
        graph->experts[i] = registry_tensor_locked(choice);
        graph->nodes[i].chooses_experts = graph->experts[i] != 0;
    }
}

static bool is_wanted(const void * node) {
    return control_takes_op(registry_op_name(node)) || control_takes_op(registry.api->op_name(layout_i32(node, registry.layout->op)));
}

/* Clears the ids of nodes whose operators are not recorded; fused nodes only together. */
static void leave_out(const struct graph * graph) {
    if (control_takes_all_ops()) return;
    int fused = -1;
    for (int i = 0; i < graph->node_count; i++) {
        if (i == fused) continue;
        if (graph->nodes[i].fuses_with_next) fused = graph->nodes[i].next;
        const int last = graph->nodes[i].fuses_with_next ? fused : i;
        if (!is_wanted(graph->nodes[i].tensor) && !is_wanted(graph->nodes[last].tensor)) graph->ids[i] = graph->ids[last] = 0;
    }
}

/* Defines a graph in the log, unless it is there already; returns its id. */
static uint32_t graph_id(const struct graph * graph, const uint32_t * ids) {
    struct entry * entry = table_at(&registry.graphs, mix(graph->fingerprint, (uint64_t) graph->node_count));
    if (entry && entry->id) return entry->id;
    const uint32_t id = ++graph_count;
    if (entry) entry->id = id;
    ggtrace_define_graph(registry.log, id, graph->backend, ids, (uint32_t) graph->node_count);
    return id;
}

/* Graphs of about the same size use the same memory. */
static int round_up(int count) {
    return (count + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
}

/* Takes a graph that cannot be met again out of all lists, if it has the room for that many nodes. */
static struct graph * take_old(int count) {
    struct graph ** link = &known;
    for (; *link; link = &(*link)->next_known) {
        const struct graph * graph = *link;
        const bool fits = graph->capacity >= count && graph->capacity <= ROOM_FACTOR * round_up(count);
        if (fits && graph->freed != registry.freed && !atomic_load_explicit(&graph->users, memory_order_acquire)) break;
    }
    struct graph * old = *link;
    if (!old) return NULL;
    *link = old->next_known;
    int kept = 0;
    for (int k = 0; k < LATEST && latest[k]; k++) if (latest[k] != old) latest[kept++] = latest[k];
    if (kept < LATEST) latest[kept] = NULL;
    for (int i = 0; places && i < old->node_count; i++) {
        struct place * place = place_of(old->nodes[i].tensor, false);
        if (place && atomic_load_explicit(&place->graph, memory_order_relaxed) == old) atomic_store_explicit(&place->graph, NULL, memory_order_relaxed);
    }
    memset(old->nodes, 0, ((size_t) old->capacity + 1) * sizeof(*old->nodes));
    memset(old->experts, 0, (size_t) old->capacity * sizeof(*old->experts));
    descriptions_forget(old);
    return old;
}

/* With room for at least that many nodes; NULL if memory is short. */
static struct graph * new_graph(int count) {
    struct graph * graph = take_old(count);
    if (graph || !(graph = reserve(sizeof(*graph)))) return graph;
    const size_t room = (size_t) (graph->capacity = round_up(count));
    graph->nodes = reserve((room + 1) * sizeof(*graph->nodes));
    graph->ids = reserve(room * sizeof(*graph->ids));
    graph->spare_ids = reserve(room * sizeof(*graph->ids));
    graph->experts = reserve(room * sizeof(*graph->experts));
    graph->snapshot = reserve(room * registry_compared_bytes());
    graph->fingerprints = reserve(room * sizeof(*graph->fingerprints));
    const bool is_whole = graph->nodes && graph->ids && graph->spare_ids && graph->experts && graph->snapshot && graph->fingerprints;
    return is_whole ? graph : NULL;
}

static struct graph * define_graph(void * cgraph, int count, uint64_t hash, uint32_t backend) {
    struct graph * graph = new_graph(count);
    if (!graph) return NULL;
    graph->node_count = count;
    for (int i = 0; i < count; i++) {
        graph->nodes[i].tensor = registry.api->graph_node(cgraph, i);
        graph->ids[i] = registry_tensor_locked(graph->nodes[i].tensor);
        const struct fingerprint * fingerprint = registry_fingerprint_of(graph->nodes[i].tensor);
        graph->fingerprints[i] = fingerprint ? *fingerprint : registry_fingerprint_node(graph->nodes[i].tensor);
        memcpy(graph->snapshot + (size_t) i * registry_compared_bytes(), graph->nodes[i].tensor, registry_compared_bytes());
    }
    link_nodes(graph);
    graph->backend = backend;
    graph->fingerprint = hash;
    graph->id = graph_id(graph, graph->ids);
    graph->freed = registry.freed;
    graph->next_known = known;
    known = graph;
    changes_prepare(graph);
    leave_out(graph);
    return graph;
}

/* Returns one of the latest graphs if this is the same one, unchanged. Comparing costs a tenth of hashing. */
static struct graph * recognise(void * cgraph, int count, uint32_t backend) {
    const size_t bytes = registry_compared_bytes();
    for (int k = 0; k < LATEST && latest[k]; k++) {
        struct graph * graph = latest[k];
        if (graph->node_count != count || graph->backend != backend || graph->freed != registry.freed) continue;
        int i = 0;
        for (; i < count; i++) {
            const void * node = registry.api->graph_node(cgraph, i);
            if (node != graph->nodes[i].tensor || memcmp(node, graph->snapshot + (size_t) i * bytes, bytes) != 0) break;
        }
        if (i == count) return graph;
    }
    return NULL;
}

/* Updates one of the latest graphs, if only some of its nodes have changed: much cheaper than a new graph, of which each needs 400 bytes a node. */
static struct graph * renew(void * cgraph, int count, uint32_t backend) {
    enum { CHANGED_PART = 4 }; /* more of its nodes differ: it is another graph */
    const int part = count / CHANGED_PART, most = part < CHANGED_MAX ? part : CHANGED_MAX;
    int indexes[CHANGED_MAX], changed = -1;
    bool inputs_differ = false;
    struct graph * graph = NULL;
    for (int k = 0; k < LATEST && latest[k] && changed < 0; k++) {
        graph = latest[k];
        const bool may_fit = graph->node_count == count && graph->backend == backend && graph->freed == registry.freed;
        if (may_fit) changed = changes_find(graph, cgraph, indexes, most, &inputs_differ);
    }
    if (changed < 0 || !control_takes_all_ops()) return NULL;
    /* Another graph may have used the same addresses since. */
    for (int i = 0; graph != latest[0] && i < count; i++) registry_set_fingerprint(graph->nodes[i].tensor, graph->fingerprints[i]);
    uint32_t * ids = graph->spare_ids;
    memcpy(ids, graph->ids, (size_t) count * sizeof(*ids));
    changes_accept(graph, indexes, changed);
    descriptions_renew(graph, indexes, changed, inputs_differ, ids);
    for (int k = 0; k < changed; k++) {
        const int i = indexes[k];
        if (graph->nodes[i].chooses_experts) graph->experts[i] = registry_tensor_locked(source_of(graph->nodes[i].tensor, 2));
    }
    graph->spare_ids = graph->ids;
    graph->ids = ids;
    graph->fingerprint = mix(6, backend);
    for (int i = 0; i < count; i++) graph->fingerprint = mix(graph->fingerprint, graph->fingerprints[i].whole);
    graph->id = graph_id(graph, ids);
    return graph;
}

void graphs_expect(void * cgraph) {
    enum { DEFINED_BYTES = 350 }; /* for each node, of a prompt's graph and a token's: the nodes, their sources and names */
    const int count = registry.gave_up || !registry.api || !registry.api->graph_n_nodes ? 0 : registry.api->graph_n_nodes(cgraph);
    if (count > 0 && count < (int) GGTRACE_NODES_MAX) ggtrace_expect(registry.log, (uint32_t) count * DEFINED_BYTES);
}

static _Atomic uint32_t generation = 1;

void graphs_may_change(void) {
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

/* A known scheduled graph of this generation. Nodes are compared because a view may have the address of an earlier view. */
static struct graph * scheduled_again(void * cgraph, int count, uint32_t backend) {
    const uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    for (int k = 0; k < LATEST && latest[k]; k++) {
        struct graph * graph = latest[k];
        const bool fits = graph->cgraph == cgraph && graph->generation == now && graph->backend == backend;
        if (!fits || graph->freed != registry.freed || graph->node_count != count) continue;
        if (registry.api->graph_node(cgraph, 0) != graph->nodes[0].tensor) continue;
        if (registry.api->graph_node(cgraph, count - 1) == graph->nodes[count - 1].tensor) return graph;
    }
    return NULL;
}

struct graph * graphs_get(void * cgraph, uint32_t backend, bool scheduled) {
    const struct ggml_api * api = registry.api;
    if (registry.gave_up || !api->graph_n_nodes || !api->graph_node) return NULL;
    const int count = api->graph_n_nodes(cgraph);
    if (count <= 0) return NULL;
    HOLD(&registry.lock);
    struct graph * graph = scheduled ? scheduled_again(cgraph, count, backend) : NULL;
    if (!graph) graph = recognise(cgraph, count, backend);
    if (!graph) graph = renew(cgraph, count, backend);
    if (!graph) {
        uint64_t hash = mix(6, backend);
        registry_begin_walk();
        for (int i = 0; i < count; i++) hash = mix(hash, registry_fingerprint_node(api->graph_node(cgraph, i)).whole);
        graph = known;
        while (graph && (graph->fingerprint != hash || graph->node_count != count)) graph = graph->next_known;
        if (!graph) graph = define_graph(cgraph, count, hash, backend);
        registry_end_walk();
    }
    if (graph) {
        atomic_fetch_add_explicit(&graph->users, 1, memory_order_relaxed);
        graph->cgraph = cgraph;
        graph->generation = scheduled ? atomic_load_explicit(&generation, memory_order_relaxed) : 0;
    }
    if (graph && graph->has_views != atomic_load_explicit(&views_start, memory_order_relaxed)) link_nodes(graph);
    if (graph && graph != latest[0]) {
        int k = 1;
        while (k < LATEST - 1 && latest[k] != graph) k++;
        memmove(latest + 1, latest, (size_t) k * sizeof(*latest));
        latest[0] = graph;
        publish(graph);
    }
    return graph;
}

void graphs_leave(struct graph * graph) {
    atomic_fetch_sub_explicit(&graph->users, 1, memory_order_release);
}

bool graphs_has_nodes(void * cgraph) {
    return registry.api->graph_n_nodes && registry.api->graph_n_nodes(cgraph) > 0;
}

uint32_t graphs_only_node(void * cgraph) {
    const struct ggml_api * api = registry.api;
    if (!api->graph_n_nodes || !api->graph_node || api->graph_n_nodes(cgraph) != 1) return 0;
    return graphs_node(api->graph_node(cgraph, 0));
}

uint32_t graphs_node(const void * node) {
    return op_is_computed(node) && is_wanted(node) ? registry_tensor(node) : 0;
}
