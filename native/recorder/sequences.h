/* Changes of a memory (KV cache) of llama.cpp, as SEQUENCE records. */
#pragma once

#include "common/system.h"
#include "log/ggtrace-requests.h"

/*
 * A memory has changed: `change` contains what its function was passed; time and context are added. Like calls, changes are recorded
 * while recording is paused, too. Those between llama_set_warmup(true) and (false) are left out, with what tests an unused memory. A clearing separates runs
 * of a benchmark, so it is recorded even before the first call.
 */
void sequences_changed(const void * memory, struct ggtrace_sequence * change);
