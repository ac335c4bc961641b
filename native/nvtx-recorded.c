/* NVTX calls of a program under the recorder go into its log. */
#include "nvtx-abi.h"
#include "nvtx-host.h"
#include "nvtx-listen.h"
#include "recorder.h"
#include "registry.h"

struct ggtrace * nvtx_log(void) {
    return recorder_log();
}

uint32_t nvtx_new_name(const char * text, size_t bytes) {
    return registry_new_name(text, bytes);
}

/* What a program's NVTX looks for in the library that NVTX_INJECTION64_PATH names; and what nvtx-alone.c looks for. */
#define EXPORTED __attribute__((visibility("default")))
int InitializeInjectionNvtx2(nvtx_get_table get);
int ggml2perfetto_nvtx_listen(nvtx_get_table get);

EXPORTED int InitializeInjectionNvtx2(nvtx_get_table get) {
    return nvtx_listen(get);
}

EXPORTED int ggml2perfetto_nvtx_listen(nvtx_get_table get) {
    return nvtx_listen(get);
}
