/* The mapped model files, from /proc/self/maps. Not thread-safe. */
#pragma once

#include "common/system.h"

struct mapped {
    uint64_t begin, end; /* addresses of the mapping */
    uint64_t offset;     /* of its first byte in the file */
    const char * path;   /* never freed */
};

/* Looks again, and calls `report` for each mapped .gguf that was not there at the previous call. */
void mapped_look(void (*report)(const struct mapped * mapping));

/* The mapped .gguf that contains an address; NULL if none. Looks again if that may find more. */
const struct mapped * mapped_at(const void * address);
