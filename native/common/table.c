#include "common/table.h"

#include "common/hold.h"

enum { CHUNK_BYTES = 512 * 1024, SHARE_BYTES_MAX = CHUNK_BYTES / 2 };

static char * chunk;
static size_t left;

static void * map(size_t bytes, int flags) {
    void * fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return fresh == MAP_FAILED ? NULL : fresh;
}

/* All of a chunk is used soon: in one go, its pages cost a fraction of what they cost with a fault each. */
static void * take(size_t bytes) {
    if (bytes > SHARE_BYTES_MAX) return map(bytes, 0);
    if (bytes > left) {
        void * fresh = map(CHUNK_BYTES, MAP_POPULATE);
        if (!fresh) return NULL;
        chunk = fresh;
        left = CHUNK_BYTES;
    }
    void * taken = chunk;
    chunk += bytes;
    left -= bytes;
    return taken;
}

void * reserve(size_t bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    HOLD(&lock);
    return take((bytes + 15) & ~(size_t) 15);
}

/* In four lanes, because each multiplication waits for the one before it in its lane. */
uint64_t hash_bytes(uint64_t hash, const void * bytes, size_t size) {
    const char * at = bytes;
    if (size >= 64) {
        uint64_t lanes[4] = {hash, mix(hash, 1), mix(hash, 2), mix(hash, 3)};
        for (; size >= 32; size -= 32, at += 32) {
            for (int i = 0; i < 4; i++) {
                uint64_t word;
                memcpy(&word, at + 8 * i, 8);
                lanes[i] = mix(lanes[i], word);
            }
        }
        hash = mix(mix(mix(mix(lanes[0], 4), lanes[1]), lanes[2]), lanes[3]);
    }
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = mix(hash, word);
    }
    uint64_t rest = 0;
    memcpy(&rest, at, size);
    return mix(hash, rest ^ (size << 56));
}

static bool is_used(const struct table * table, const struct entry * entry) {
    return entry->round == table->round + 1;
}

static bool table_grow(struct table * table) {
    const uint32_t capacity = table->capacity ? table->capacity * 2 : 1024;
    struct entry * entries = reserve(capacity * sizeof(*entries));
    if (!entries) return false;
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (!is_used(table, &table->entries[i])) continue;
        uint32_t slot = (uint32_t) table->entries[i].key & (capacity - 1);
        while (entries[slot].round) slot = (slot + 1) & (capacity - 1);
        entries[slot] = table->entries[i];
    }
    table->entries = entries;
    table->capacity = capacity;
    return true;
}

struct entry * table_at(struct table * table, uint64_t key) {
    if (table->count * 2 >= table->capacity && !table_grow(table)) return NULL;
    uint32_t slot = (uint32_t) key & (table->capacity - 1);
    while (is_used(table, &table->entries[slot]) && table->entries[slot].key != key) slot = (slot + 1) & (table->capacity - 1);
    struct entry * entry = &table->entries[slot];
    if (!is_used(table, entry)) {
        *entry = (struct entry){.key = key, .id = 0, .round = table->round + 1};
        table->count++;
    }
    return entry;
}
