/*
 * Counts events of the CPU and of the kernel, per operator, on each worker's thread. GGML2PERFETTO_COUNTERS lists the
 * events.
 */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

/* The counts of a thread at some time, in the order of the definitions. */
struct counts {
    uint64_t values[GGTRACE_COUNTS_MAX];
    /* How long the events were enabled, and how long they were in hardware counters, in ns. */
    uint64_t enabled, running;
};

extern HIDDEN uint32_t counters_count;

/* Are any counters requested and available? */
static inline bool counters_on(void) {
    return __builtin_expect(counters_count != 0, 0);
}

/*
 * Reads the environment, and finds out which counters are available. If counters are requested, calls `fact` with `counters` (the
 * counters, and how they are read) and `counters.missing` (the unavailable ones, with the reasons).
 */
void counters_start(struct ggtrace * log, void (*fact)(const char * key, const char * value));

/* Starts counting on the calling thread, if it is not counting yet: about 50 µs per event, once per thread. */
void counters_join(void);

/* The counts of the calling thread so far. Without a system call if all events are in counters that user space can read. */
void counters_read(struct counts * counts);

/* Writes the counts of the operator that `writer` writes next. */
void counters_write(struct ggtrace_writer * writer, uint64_t time, const struct counts * from, const struct counts * to);

/* Ends counting on the calling thread, when it exits. */
void counters_leave(void);
