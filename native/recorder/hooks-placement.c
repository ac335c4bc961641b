/*
 * The questions by which a scheduler divides a graph over backends, and llama.cpp chooses the memory of weights. They are recorded when they
 * are asked: afterwards, a node's sources are copies on its own backend. An answer of yes is written
 * only where it is about the memory of a weight.
 */
#include "common/system.h"
#include "log/ggtrace.h"
#include "recorder/hook.h"
#include "recorder/placement.h"
#include "recorder/recording.h"
#include "recorder/weights.h"

static void note_answer(void * device, const void * node, bool answer) {
    if (recording_level() < LEVEL_GRAPH) return;
    if (!answer) placement_refused_node(GGTRACE_SUPPORTS_OP, device, node);
    weights_asked(device, node, answer);
}

/* ggml_backend_supports_op and its like ask these. */
HOOK_AFTER(bool, ggml_backend_dev_supports_op, note_answer(device, node, result),
    LIST(void * device, const void * node), device, node)

HOOK_AFTER(bool, ggml_backend_dev_offload_op,
    if (!result && recording_level() >= LEVEL_GRAPH) placement_refused_node(GGTRACE_OFFLOAD_OP, device, node),
    LIST(void * device, const void * node), device, node)

HOOK_AFTER(bool, ggml_backend_dev_supports_buft, if (!result && recording_level() >= LEVEL_GRAPH) placement_refused_memory(device, buffer_type),
    LIST(void * device, void * buffer_type), device, buffer_type)

/* llama.cpp goes through all devices when it loads a model. */
HOOK_AFTER(void *, ggml_backend_dev_get, placement_note_device(result, -1), size_t index, index)

HOOK_AFTER(int, ggml_backend_dev_type, placement_note_device(device, result), void * device, device)

HOOK_AFTER_VOID(ggml_backend_dev_memory, placement_note_memory(device, free_bytes), LIST(void * device, size_t * free_bytes, size_t * total_bytes),
    device, free_bytes, total_bytes)
