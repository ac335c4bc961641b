/* The entry points of NVTX into the recorder. */
#include "nvtx/abi.h"
#include "nvtx/listen.h"

/* NVTX calls these functions in the library that NVTX_INJECTION64_PATH names; nvtx/alone.c looks for them too. */
#define EXPORTED __attribute__((visibility("default")))
int InitializeInjectionNvtx2(nvtx_get_table get);
int ggml2perfetto_nvtx_listen(nvtx_get_table get);

EXPORTED int InitializeInjectionNvtx2(nvtx_get_table get) {
    return nvtx_listen(get);
}

EXPORTED int ggml2perfetto_nvtx_listen(nvtx_get_table get) {
    return nvtx_listen(get);
}
