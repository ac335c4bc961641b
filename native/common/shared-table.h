/* A table that threads read without a lock, and that is never given back: from 64-bit keys, mixed well, to 64-bit values. */
#ifndef GGML2PERFETTO_SHARED_TABLE_H
#define GGML2PERFETTO_SHARED_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

/* A power of two. A key that finds no room in PROBES_MAX places is not kept: its maker makes it again each time. */
enum { SHARED_TABLE_PLACES = 1 << 16, SHARED_TABLE_PROBES_MAX = 32 };

struct shared_entry {
    _Atomic uint64_t key; /* 0: free. Stored last */
    uint64_t value;
};

struct shared_table {
    struct shared_entry entries[SHARED_TABLE_PLACES];
};

/* The value of a key that is not 0; 0 where it is not in the table. */
static inline uint64_t shared_table_get(struct shared_table * table, uint64_t key) {
    for (uint32_t i = 0; i < SHARED_TABLE_PROBES_MAX; i++) {
        struct shared_entry * entry = &table->entries[(key + i) % SHARED_TABLE_PLACES];
        const uint64_t found = atomic_load_explicit(&entry->key, memory_order_acquire);
        if (found == key) return entry->value;
        if (found == 0) return 0;
    }
    return 0;
}

/* Keeps a value, if there is room. By one thread at a time, for a key that is not there. */
static inline void shared_table_put(struct shared_table * table, uint64_t key, uint64_t value) {
    for (uint32_t i = 0; i < SHARED_TABLE_PROBES_MAX; i++) {
        struct shared_entry * entry = &table->entries[(key + i) % SHARED_TABLE_PLACES];
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) != 0) continue;
        entry->value = value;
        atomic_store_explicit(&entry->key, key, memory_order_release);
        return;
    }
}

#endif
