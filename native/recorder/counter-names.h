/* The counters that can be requested, with the names that perf(1) uses. */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

enum { COUNTER_NAME_BYTES = 64 };

enum counter_source {
    COUNTER_EVENT, /* perf_event_open */
    COUNTER_CPU_TIME, /* CLOCK_THREAD_CPUTIME_ID */
    /* getrusage, which needs no permission and returns the same counts as perf: */
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
    /* For an event: */
    uint32_t type;
    uint64_t config;
    bool is_kernels; /* the event happens in the kernel only */
};

/* Finds a counter by its name. Returns NULL, or the reason why there is no such counter, in words. */
const char * counter_find(struct counter * counter, const char * name, size_t length);
