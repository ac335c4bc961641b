#include "recorder/experts.h"

#include "recorder/layout.h"
#include "recorder/recording.h"
#include "recorder/graphs.h"

/* Copies ids to the stack first: the tensor is a view, and its rows need not be contiguous. */
enum { IDS_MAX = 4096 };

void experts_record(const struct graph * graph, int index, uint64_t now) {
    const struct tensor_layout * layout = &recording.layout;
    const void * choice = layout_pointer(graph->nodes[index].tensor, layout->sources + 16);
    const char * data = layout_pointer(choice, layout->data);
    struct ggtrace_writer * writer = recording_writer(0);
    if (!data || !writer) return;
    const int64_t k = layout_i64(choice, layout->ne);
    const int64_t tokens = layout_i64(choice, layout->ne + 8);
    const size_t stride = (size_t) layout_i64(choice, layout->nb + 8);
    if (k <= 0 || k > IDS_MAX || tokens <= 0) return;
    const uint32_t call = atomic_load_explicit(&graph->call, memory_order_relaxed);
    const int64_t at_once = IDS_MAX / k;
    for (int64_t first = 0; first < tokens; first += at_once) {
        int32_t ids[IDS_MAX];
        const int64_t count = tokens - first < at_once ? tokens - first : at_once;
        for (int64_t i = 0; i < count; i++) {
            memcpy(ids + i * k, data + (size_t) (first + i) * stride, (size_t) k * sizeof(*ids));
        }
        ggtrace_experts(writer, now, graph->experts[index], (uint32_t) count, (uint32_t) k, call, ids);
    }
}
