/* What thread states and counters share of the kernel's perf events. */
#pragma once

#include "common/system.h"

#include <linux/perf_event.h>

/* perf_event_open(2); the file is closed on exec. -1 and errno on failure. */
int perf_event_open(const struct perf_event_attr * event, int pid, int cpu, int leader);

/* The reason why the kernel refuses an event, in words. */
const char * perf_event_why(int error);
