/* Parts of a call that are not graph runs: what llama.cpp does between them, and the recorder's own work. */
#pragma once

#include "common/system.h"
#include "log/ggtrace.h"

/* Begins a part: returns its start time, or 0 if it is not recorded. Only parts of a call are recorded. */
uint64_t parts_begin(void);

/* Ends the part that began at `start`. The recorder's own work is written only if it took long enough to mislead. */
void parts_end(uint64_t start, uint32_t what);
