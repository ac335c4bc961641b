/* Memory that is never freed, hashes, and a hash table. No malloc, because the host program may replace it. */
#pragma once

#include "common/system.h"

/* Maps a 64-bit key to an id. Callers mix their keys well. */
struct entry {
    uint64_t key;
    uint32_t id;
    uint32_t round; /* the table's, plus 1; an entry of another round is free */
};

struct table {
    struct entry * entries;
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint32_t round; /* how often it was cleared */
};

/* Zeroed memory that is never freed; NULL if there is none. Thread-safe, unlike the other functions here. */
void * reserve(size_t bytes);

/* The entry of a key, created with id 0 if it is new; NULL if memory is short. Valid until the next call. */
struct entry * table_at(struct table * table, uint64_t key);

/* Removes all entries, and keeps the memory. */
static inline void table_clear(struct table * table) {
    table->round++;
    table->count = 0;
}

/* Loads the entry of a key into the caches. */
static inline void table_prefetch(const struct table * table, uint64_t key) {
    if (table->capacity) __builtin_prefetch(&table->entries[(uint32_t) key & (table->capacity - 1)], 1);
}

static inline uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

uint64_t hash_bytes(uint64_t hash, const void * bytes, size_t size);
