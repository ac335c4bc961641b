/* Which files are mapped where: model files, as the kernel lists them. Not for several threads at once. */
#ifndef GGML2PERFETTO_MAPPED_H
#define GGML2PERFETTO_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

struct mapped {
    uint64_t begin, end; /* addresses */
    uint64_t offset;     /* in the file, of the first */
    const char * path;   /* for good */
};

/* Looks anew, and calls `tell` for each mapped .gguf that was not there when it was last told of one. */
void mapped_look(void (*tell)(const struct mapped * mapping));

/* The mapped .gguf that an address lies in; NULL if none. Looks anew where it seems worth it. */
const struct mapped * mapped_at(const void * address);

#endif
