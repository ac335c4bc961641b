/* The limit of a file's size (RLIMIT_FSIZE). A write beyond it gives SIGXFSZ, which kills the host: all that may grow a file asks first. */
#ifndef GGTRACE_FILE_H
#define GGTRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* May the process write to a file up to this offset? false: errno is EFBIG, or the reason why the limit is not known. */
bool ggtrace_may_reach(uint64_t end);

#endif
