#include "recorder/vulkan-labels.h"

#include "recorder/graphs.h"
#include "recorder/recording.h"
#include "recorder/ops.h"
#include "recorder/registry.h"
#include "recorder/runs.h"

enum { KERNEL_BYTES = 128 };

/* The latest labelled node, and the one after it: nodes are labelled in the order of the graph, and names may repeat. */
static __thread struct {
    uint64_t start; /* of the graph run */
    int latest, next;
    uint32_t part;
} labels __attribute__((tls_model("initial-exec")));

static bool is_node(const void * node, const char * label, size_t op_bytes, const char * name) {
    const char * op = recording.api.op_name(layout_i32(node, recording.layout.op));
    return strcmp((const char *) node + recording.layout.name, name) == 0 && strncmp(op, label, op_bytes) == 0 && op[op_bytes] == 0;
}

/* The id of the last of fused nodes that is computed: views after it are part of the fusion, too. 0: that is the first one. */
static uint32_t last_computed(const struct graph * graph, int first, int last) {
    if (last >= graph->node_count) last = graph->node_count - 1;
    while (last > first && !op_is_computed(graph->nodes[last].tensor)) last--;
    return last > first ? graph->ids[last] : 0;
}

bool vulkan_label_find(const char * label, struct labelled * found) {
    const struct run * run = runs_current();
    if (!run || !run->is_recorded || !run->has_operators) return false;
    const char * name = strchr(label, ' ');
    if (!name) return false;
    int fused = 0;
    for (const char * at = label; at < name; at++) fused += *at == '+';
    const struct graph * graph = run->graph;
    if (labels.start != run->start) labels.latest = -1, labels.next = 0;
    labels.start = run->start;
    for (int i = 0; i < graph->node_count; i++) {
        const int at = (labels.next + i) % graph->node_count;
        if (!is_node(graph->nodes[at].tensor, label, strcspn(label, "+ "), name + 1)) continue;
        const int last = at + fused;
        labels.part = at == labels.latest ? labels.part + 1 : 0;
        labels.latest = at;
        labels.next = last + 1;
        *found = (struct labelled){.tensor = graph->ids[at], .graph = graph->id, .part = labels.part};
        if (fused) found->last = last_computed(graph, at, last);
        return found->tensor != 0;
    }
    return false;
}

uint32_t vulkan_label_kernel(const char * label) {
    char name[KERNEL_BYTES] = {0};
    strncpy(name, label, KERNEL_BYTES - 1);
    char * workgroups = strrchr(name, '(');
    if (workgroups && workgroups > name && workgroups[-1] == ' ') workgroups[-1] = 0;
    return registry_name(name);
}
