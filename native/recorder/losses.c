#include "recorder/losses.h"

#include "common/clock.h"
#include "recorder/full.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

static const char * const reasons[FULL_TABLES] = {
    [FULL_NODES] = "nodes of graphs: the recorder's table of them is full",
    [FULL_FINGERPRINTS] = "fingerprints of tensors: the recorder's table of them is full",
    [FULL_CONTEXTS] = "states of contexts: the recorder's table of contexts is full",
    [FULL_COMMANDS] = "work of a GPU: the recorder's table of command buffers is full",
    [FULL_FENCES] = "work of a GPU: the recorder's table of fences is full",
    [FULL_REFUSALS] = "refusals of devices: the recorder's table of them is full",
    [FULL_PAGES] = "nodes of pages: more buffers than the recorder has room for",
    [FULL_WEIGHTS] = "memory of weights: more questions than the recorder has room for",
    [FULL_RPC] = "messages of ggml-rpc: too many connections, or bytes that are not as in the known protocol",
    [FULL_QUEUES] = "work of a GPU: the recorder's table of queues is full",
};

void losses_report(bool is_end) {
    static uint32_t reported[FULL_TABLES];
    static _Atomic bool is_reporting;
    if (!is_end && !atomic_load_explicit(&full_has_much, memory_order_relaxed)) return;
    if (atomic_exchange(&is_reporting, true)) return;
    atomic_store_explicit(&full_has_much, false, memory_order_relaxed);
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    for (int i = 0; writer && i < FULL_TABLES; i++) {
        const uint32_t count = atomic_load_explicit(&full_counts[i], memory_order_relaxed);
        if (count != reported[i]) ggtrace_loss(writer, clock_now(), count - reported[i], registry_name(reasons[i]));
        reported[i] = count;
    }
    atomic_store(&is_reporting, false);
}
