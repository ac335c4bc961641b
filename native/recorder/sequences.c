#include "recorder/sequences.h"

#include "common/clock.h"
#include "recorder/calls.h"
#include "recorder/contexts.h"
#include "recorder/functions.h"
#include "recorder/recording.h"

/* common_context_can_seq_rm removes this, after a call, to see whether the memory can remove a part of a sequence. */
static bool is_probe(const struct ggtrace_sequence * change) {
    return change->what == GGTRACE_REMOVE && change->sequence == 0 && change->from == 1 && change->end == -1;
}

void sequences_changed(const void * memory, struct ggtrace_sequence * change) {
    if (!functions_are_recorded() || calls_are_warm_ups()) return;
    const void * context = contexts_of_memory(memory);
    const enum calls_of calls = calls_of_context(context);
    change->context = (uint64_t) (uintptr_t) context;
    change->time = clock_now();
    if (calls == CALLS_HELD && is_probe(change)) {
        calls_hold_change(change);
        return;
    }
    if (change->what == GGTRACE_COPY_SEQUENCE) calls_used(context);
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_sequence(writer, change);
}
