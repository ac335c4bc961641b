/* What can be counted, by the names that perf(1) has for it. */
#ifndef GGML2PERFETTO_COUNTER_NAMES_H
#define GGML2PERFETTO_COUNTER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/ggtrace.h"

enum { COUNTER_NAME_BYTES = 64 };

enum counter_source {
    COUNTER_EVENT, /* perf_event_open */
    COUNTER_CPU_TIME, /* CLOCK_THREAD_CPUTIME_ID */
    /* getrusage, which needs no permission, and tells what perf tells: */
    COUNTER_MINOR_FAULTS,
    COUNTER_MAJOR_FAULTS,
    COUNTER_PAGE_FAULTS,
    COUNTER_SWITCHES,
    COUNTER_BYTES_READ,
};

struct counter {
    char name[COUNTER_NAME_BYTES];
    enum counter_source source;
    enum ggtrace_unit unit;
    /* Of an event: */
    uint32_t type;
    uint64_t config;
    bool is_kernels; /* it happens in the kernel only */
};

/* Finds what a name stands for; NULL, or why there is no such counter, in words. */
const char * counter_find(struct counter * counter, const char * name, size_t length);

#endif
