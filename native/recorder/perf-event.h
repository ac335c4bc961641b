/* The kernel's perf events, as far as thread states and counters have them in common. */
#ifndef GGML2PERFETTO_PERF_EVENT_H
#define GGML2PERFETTO_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stdint.h>

/* perf_event_open(2); the file is closed on exec. -1 and errno where it cannot be had. */
int perf_event_open(const struct perf_event_attr * event, int pid, int cpu, int leader);

/* Why the kernel does not give an event, in words. */
const char * perf_event_why(int error);

#endif
