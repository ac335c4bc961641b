/* librocblas.so: the three functions that ggml calls of it, which compute nothing. */
#include <cstddef>
#include <cstring>

#define API extern "C" __attribute__((visibility("default"))) int

static const char VERSION[] = "4.0.0";

extern "C" __attribute__((visibility("default"))) void rocblas_initialize() {}
API rocblas_get_version_string_size(size_t * size) {
    *size = sizeof(VERSION);
    return 0;
}
API rocblas_get_version_string(char * text, size_t size) {
    strncpy(text, VERSION, size);
    return 0;
}
