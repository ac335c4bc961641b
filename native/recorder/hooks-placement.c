/*
 * The questions by which a scheduler divides a graph over backends, and llama.cpp chooses the memory of weights. They are recorded when they
 * are asked: afterwards, a node's sources are copies on its own backend. Answers of yes cost nothing.
 */
#include "common/system.h"
#include "log/ggtrace.h"
#include "recorder/hook.h"
#include "recorder/placement.h"
#include "recorder/recording.h"

/* ggml_backend_supports_op and its like ask these. */
HOOK(bool, ggml_backend_dev_supports_op, void * device, const void * node) {
    REAL(ggml_backend_dev_supports_op);
    const bool is_supported = real(device, node);
    if (!is_supported && recording_level() >= LEVEL_GRAPH) placement_refused_node(GGTRACE_SUPPORTS_OP, device, node);
    return is_supported;
}

HOOK(bool, ggml_backend_dev_offload_op, void * device, const void * node) {
    REAL(ggml_backend_dev_offload_op);
    const bool is_offloaded = real(device, node);
    if (!is_offloaded && recording_level() >= LEVEL_GRAPH) placement_refused_node(GGTRACE_OFFLOAD_OP, device, node);
    return is_offloaded;
}

HOOK(bool, ggml_backend_dev_supports_buft, void * device, void * buffer_type) {
    REAL(ggml_backend_dev_supports_buft);
    const bool is_supported = real(device, buffer_type);
    if (!is_supported && recording_level() >= LEVEL_GRAPH) placement_refused_memory(device, buffer_type);
    return is_supported;
}

/* llama.cpp goes through all devices when it loads a model. */
HOOK(void *, ggml_backend_dev_get, size_t index) {
    REAL(ggml_backend_dev_get);
    void * device = real(index);
    placement_note_device(device, -1);
    return device;
}

HOOK(int, ggml_backend_dev_type, void * device) {
    REAL(ggml_backend_dev_type);
    const int type = real(device);
    placement_note_device(device, type);
    return type;
}
