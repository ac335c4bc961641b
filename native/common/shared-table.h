/* A hash table from well mixed 64-bit keys to 64-bit values. Threads read it without a lock; its memory is never freed. */
#pragma once

#include "common/system.h"

/* A power of two. A key without a free place after PROBES_MAX probes is not stored; its value is made again each time. */
enum { SHARED_TABLE_PLACES = 1 << 16, SHARED_TABLE_PROBES_MAX = 32 };

struct shared_entry {
    _Atomic uint64_t key; /* 0: free. Stored last */
    uint64_t value;
};

struct shared_table {
    struct shared_entry entries[SHARED_TABLE_PLACES];
};

/* The value of a key, which is not 0; 0 if the table does not contain it. */
static inline uint64_t shared_table_get(struct shared_table * table, uint64_t key) {
    for (uint32_t i = 0; i < SHARED_TABLE_PROBES_MAX; i++) {
        struct shared_entry * entry = &table->entries[(key + i) % SHARED_TABLE_PLACES];
        const uint64_t found = atomic_load_explicit(&entry->key, memory_order_acquire);
        if (found == key) return entry->value;
        if (found == 0) return 0;
    }
    return 0;
}

/* Stores a value, if there is room. For one thread at a time, and a key that the table does not contain. */
static inline void shared_table_put(struct shared_table * table, uint64_t key, uint64_t value) {
    for (uint32_t i = 0; i < SHARED_TABLE_PROBES_MAX; i++) {
        struct shared_entry * entry = &table->entries[(key + i) % SHARED_TABLE_PLACES];
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) != 0) continue;
        entry->value = value;
        atomic_store_explicit(&entry->key, key, memory_order_release);
        return;
    }
}
