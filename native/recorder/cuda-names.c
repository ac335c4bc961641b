#include "recorder/cuda-names.h"

#include <stdio.h>

#include "common/hold.h"
#include "common/table.h"
#include "recorder/libraries.h"
#include "recorder/registry.h"

enum { NAMES = 1 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* By the C++ library that ggml is linked to, if it has the function. */
static uint32_t readable_name(const char * text) {
    static char * (*demangle)(const char *, char *, size_t *, int *);
    static bool is_resolved;
    int status = -1;
    if (!is_resolved) *(void **) &demangle = library_resolve("__cxa_demangle", NULL);
    is_resolved = true;
    char * readable = demangle ? demangle(text, NULL, NULL, &status) : NULL;
    const uint32_t id = registry_name(status == 0 && readable ? readable : text);
    free(readable);
    return id;
}

uint32_t cuda_kernel_name(const char * text) {
    static struct { const char * text; uint32_t id; } known[NAMES];
    HOLD(&lock);
    const uint32_t slot = (uint32_t) mix(16, (uint64_t) (uintptr_t) text) % NAMES;
    if (known[slot].text != text) {
        known[slot].text = text;
        known[slot].id = readable_name(text);
    }
    return known[slot].id;
}

uint32_t cuda_shape_name(const uint32_t sizes[6]) {
    static struct { uint32_t sizes[6]; uint32_t id; } known[NAMES];
    enum { BYTES = sizeof(known[0].sizes) };
    HOLD(&lock);
    const uint32_t slot = (uint32_t) hash_bytes(17, sizes, BYTES) % NAMES;
    if (!known[slot].id || memcmp(known[slot].sizes, sizes, BYTES) != 0) {
        char text[96];
        snprintf(text, sizeof(text), "%u,%u,%u %u,%u,%u", sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]);
        memcpy(known[slot].sizes, sizes, BYTES);
        known[slot].id = registry_name(text);
    }
    return known[slot].id;
}
