/* A library for LD_PRELOAD that makes a ggml without labels of one with them: it removes the variable by which they are requested. */
#include <stdlib.h>

__attribute__((constructor)) static void take_away(void) {
    unsetenv("GGML_VK_DEBUG_MARKERS");
}
