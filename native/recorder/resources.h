/* What the kernel counted from the start of a call, or of a stage of loading, to its end: page faults, reads from disks, CPU time. */
#pragma once

#include "common/system.h"
#include "log/ggtrace-requests.h"

/* Page faults and reads of the process, 1 µs. */
void resources_begin(struct ggtrace_resources * resources);

/* Also the times of this thread, which the kernel returns as a text: some 5 µs. */
void resources_begin_of_thread(struct ggtrace_resources * resources);

/* The counts since the begin replace those at the begin. */
void resources_end(struct ggtrace_resources * resources);
