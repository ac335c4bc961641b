/* Changes of the code of this process: systems and sandboxes refuse them in some. */
#pragma once

#include "common/system.h"

/* Why not: a word for `record`, and the words of the log. */
struct code_refusal {
    const char * reason, * text;
};

/* Before the first change: NULL, or that a change would end the process (a seccomp filter that kills it). Tries it in a child, if there is a filter. */
const struct code_refusal * code_change_ends_process(void);

/* After mprotect failed: who refused it, by its errno. */
const struct code_refusal * code_change_refused(int error);

/* Memory for code, not executable yet, from where a jump reaches what is above an address; NULL: there is none. */
uint8_t * code_map_below(uintptr_t first, size_t bytes);
