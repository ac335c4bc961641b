#include "recorder/origins.h"

#include "recorder/mapped.h"
#include "common/table.h"

enum { ORIGINS_MAX = 1 << 16 };

static struct table known;
static struct origin * origins;
static uint32_t count;

static struct entry * entry_of(const void * tensor) {
    return table_at(&known, mix(7, (uint64_t) (uintptr_t) tensor));
}

void origin_note(const void * tensor, const void * data, uint64_t bytes) {
    const struct mapped * mapping = mapped_at(data);
    struct entry * entry = entry_of(tensor);
    if (!origins) origins = reserve(ORIGINS_MAX * sizeof(*origins));
    if (!entry || !origins) return;
    if (!mapping || (entry->id == 0 && count + 1 == ORIGINS_MAX)) {
        entry->id = 0;
        return;
    }
    if (entry->id == 0) entry->id = ++count;
    origins[entry->id] = (struct origin){
        .path = mapping->path,
        .offset = mapping->offset + ((uint64_t) (uintptr_t) data - mapping->begin),
        .bytes = bytes,
    };
}

const struct origin * origin_of(const void * tensor) {
    const struct entry * entry = entry_of(tensor);
    return entry && entry->id ? &origins[entry->id] : NULL;
}
