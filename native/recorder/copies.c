#include "recorder/copies.h"

#include "common/clock.h"
#include "recorder/calls.h"
#include "recorder/frames.h"
#include "recorder/parts.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static void leave(uint32_t before) {
    is_inside = before;
}

uint64_t copies_begin(uintptr_t here) {
    if (is_inside || !calls_inside() || !calls_take() || recording_level() < LEVEL_GRAPH) return 0;
    is_inside = true;
    frames_begin(here, leave, false);
    return clock_now();
}

void copies_end(uintptr_t here, uint64_t start, const void * tensor, size_t size, uint32_t kind) {
    if (!start || !frames_end(here)) return;
    const uint64_t end = clock_now();
    is_inside = false;
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    const uint32_t buffer = registry_tensor_buffer(tensor);
    ggtrace_copy(writer, &(struct ggtrace_copy){
        .start = start,
        .end = end,
        .bytes = size,
        .source = kind == GGTRACE_GET ? buffer : 0,
        .target = kind == GGTRACE_SET ? buffer : 0,
        .tensor = registry_tensor(tensor),
        .kind = kind,
    });
    parts_end(end, GGTRACE_RECORDER);
}

void copies_end_between(uintptr_t here, uint64_t start, const void * from, const void * to) {
    if (!start || !frames_end(here)) return;
    const uint64_t end = clock_now();
    is_inside = false;
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    ggtrace_copy(writer, &(struct ggtrace_copy){
        .start = start,
        .end = end,
        .bytes = registry_tensor_bytes(from),
        .source = registry_tensor_buffer(from),
        .target = registry_tensor_buffer(to),
        .tensor = registry_tensor(to),
        .kind = GGTRACE_BETWEEN,
    });
    parts_end(end, GGTRACE_RECORDER);
}

void copies_note_origin(const void * tensor, const void * data, size_t offset, size_t size) {
    if (offset == 0 && !calls_inside() && recording_level() != LEVEL_OFF) registry_note_origin(tensor, data, size);
}
