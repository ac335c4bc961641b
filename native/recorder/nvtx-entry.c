/* Where NVTX enters the recorder. */
#include "nvtx/abi.h"
#include "nvtx/listen.h"

/* What a program's NVTX looks for in the library that NVTX_INJECTION64_PATH names; and what nvtx/alone.c looks for. */
#define EXPORTED __attribute__((visibility("default")))
int InitializeInjectionNvtx2(nvtx_get_table get);
int ggml2perfetto_nvtx_listen(nvtx_get_table get);

EXPORTED int InitializeInjectionNvtx2(nvtx_get_table get) {
    return nvtx_listen(get);
}

EXPORTED int ggml2perfetto_nvtx_listen(nvtx_get_table get) {
    return nvtx_listen(get);
}
