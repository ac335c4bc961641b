/*
 * What each worker's thread counts, operator by operator: events of the processor and of the kernel, as
 * GGML2PERFETTO_COUNTERS lists them.
 */
#ifndef GGML2PERFETTO_COUNTERS_H
#define GGML2PERFETTO_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "log/ggtrace.h"

/* What was counted on a thread up to some time, in the order of the definitions. */
struct counts {
    uint64_t values[GGTRACE_COUNTS_MAX];
    /* ns for which the events were asked for, and were in registers of the processor. */
    uint64_t enabled, running;
};

extern uint32_t counters_count;

/* Is anything counted? */
static inline bool counters_on(void) {
    return __builtin_expect(counters_count != 0, 0);
}

/*
 * Reads the environment, and finds out what can be counted here. `tell` is called with the facts `counters` (what is counted,
 * and how) and `counters.missing` (what is not, and why), where something was asked for.
 */
void counters_start(struct ggtrace * log, void (*tell)(const char * key, const char * value));

/* The calling thread counts from now on, if it does not yet: some 50 µs for each event, once in its life. */
void counters_join(void);

/* What the calling thread has counted so far. No system call where all are registers that it may read. */
void counters_read(struct counts * counts);

/* What the operator that `writer` gets next has counted. */
void counters_write(struct ggtrace_writer * writer, uint64_t time, const struct counts * from, const struct counts * to);

/* The calling thread ends. */
void counters_leave(void);

#endif
