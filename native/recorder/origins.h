/* From where in a mapped file a tensor's data were copied. Not for several threads at once. */
#ifndef GGML2PERFETTO_ORIGINS_H
#define GGML2PERFETTO_ORIGINS_H

#include <stdint.h>

struct origin {
    const char * path;
    uint64_t offset;
    uint64_t bytes;
};

/* `data` are being copied into the whole of `tensor`; forgets what was in it before. */
void origin_note(const void * tensor, const void * data, uint64_t bytes);

/* NULL: not known. Whether the tensor is still the one that was noted is the caller's to see. */
const struct origin * origin_of(const void * tensor);

#endif
