/* What may happen to a log's file: it reaches the limit of a file's size (RLIMIT_FSIZE), or another program truncates it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ggtrace;

/*
 * May the process write to a file up to this offset? A write beyond the limit gives SIGXFSZ, which kills the host: all that may grow a file
 * asks first. false: errno is EFBIG, or the reason why the limit is not known.
 */
bool ggtrace_may_reach(uint64_t end);

/*
 * For a handler of SIGBUS: was the fault in a page of the log, whose file another program truncated? Then the log has ended, other memory is
 * in the place of the page, and the handler returns. false: it was not.
 */
bool ggtrace_survive(struct ggtrace * log, const void * address);
