/* Reports in the log what did not fit into tables of the recorder. */
#ifndef GGML2PERFETTO_LOSSES_H
#define GGML2PERFETTO_LOSSES_H

#include <stdbool.h>

/* Writes what was counted since the last time, if that is much. `is_end`: also if it is little. Without any lock. */
void losses_report(bool is_end);

#endif
