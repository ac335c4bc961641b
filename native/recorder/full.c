#include "recorder/full.h"

_Atomic uint32_t full_counts[FULL_TABLES];
_Atomic bool full_has_much;

void * full_count(enum full table) {
    const uint32_t count = atomic_fetch_add_explicit(&full_counts[table], 1, memory_order_relaxed) + 1;
    if ((count & (count - 1)) == 0) atomic_store_explicit(&full_has_much, true, memory_order_relaxed);
    return NULL;
}
