/* The place in a mapped file from which a tensor's data was copied. Not thread-safe. */
#pragma once

#include "common/system.h"

struct origin {
    const char * path;
    uint64_t offset;
    uint64_t bytes;
};

/* `data` is being copied into the whole of `tensor`; replaces its earlier origin. */
void origin_note(const void * tensor, const void * data, uint64_t bytes);

/* NULL: unknown. The caller must check that the tensor is still the same. */
const struct origin * origin_of(const void * tensor);
