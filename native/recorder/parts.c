#include "recorder/parts.h"

#include "common/clock.h"
#include "recorder/calls.h"
#include "recorder/recording.h"

/* Otherwise each graph that is computed again would add a record. */
enum { RECORDER_NS_MIN = 10000 };

uint64_t parts_begin(void) {
    return calls_inside() && calls_take() && recording_level() >= LEVEL_GRAPH ? clock_now() : 0;
}

void parts_end(uint64_t start, uint32_t what) {
    if (!start) return;
    const uint64_t end = clock_now();
    if (what == GGTRACE_RECORDER && end - start < RECORDER_NS_MIN) return;
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_part(writer, start, end, calls_current(), what);
}
