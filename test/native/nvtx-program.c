/*
 * A program that uses NVTX as NVIDIA's own headers have it (-I of a CUDA toolkit's include folder), without a GPU: what
 * nvtx.test.ts looks for in the log. It prints the levels that pushes and pops return. `fork`: a child announces, too.
 */
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MODULE
/* Built once more, as a library with an NVTX of its own. */
void announce(void);

void announce(void) {
    nvtxDomainHandle_t io = nvtxDomainCreateA("io");
    nvtxEventAttributes_t event = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "of the module";
    nvtxDomainMarkEx(io, &event);
}
#else
extern void announce(void);

static nvtxDomainHandle_t io;
static nvtxRangeId_t across;

static nvtxEventAttributes_t text(const char * message) {
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = message;
    return event;
}

static void * on_thread(void * unused) {
    nvtxNameOsThreadA((uint32_t) syscall(SYS_gettid), "reader");
    nvtxDomainRangeEnd(io, across);
    nvtxRangePushA("on reader");
    nvtxRangePop();
    return unused;
}

static void payloads(void) {
    nvtxEventAttributes_t event = text("payload");
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    event.payload.ullValue = 0xffffffffffffffffull;
    nvtxMarkEx(&event);
    event.payload.ullValue = 0x7fffffffffffffffull;
    nvtxMarkEx(&event);
    event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    event.payload.llValue = -0x7fffffffffffffffll - 1;
    nvtxMarkEx(&event);
    event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    event.payload.dValue = 0.1;
    nvtxMarkEx(&event);
    event.payload.ullValue = 0x1111111111111111ull;
    event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
    event.payload.uiValue = 0xffffffffu;
    nvtxMarkEx(&event);
    event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    event.payload.iValue = -7;
    nvtxMarkEx(&event);
    event.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    event.payload.fValue = 0.5f;
    nvtxMarkEx(&event);
    event.payloadType = (int32_t) 0xDFBD0009;
    event.payload.ullValue = 16;
    nvtxMarkEx(&event);
}

static void ranges(void) {
    printf("%d", nvtxRangePushA("outer"));
    nvtxEventAttributes_t event = text("inner");
    event.category = 7;
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0xff336699;
    event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    event.payload.iValue = 42;
    printf(" %d", nvtxRangePushEx(&event));
    printf(" %d", nvtxRangePushW(L"breit \u00e4\u20ac\U0001f680"));
    event = text(NULL);
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(io, "registered");
    event.category = 7;
    printf(" %d", nvtxDomainRangePushEx(io, &event));
    event.message.registered = nvtxDomainRegisterStringW(io, L"\u0440\u0443\u0441\u0441\u043a\u0438\u0439");
    nvtxDomainMarkEx(io, &event);
    printf(" %d", nvtxRangePop());
    printf(" %d", nvtxRangePop());
    printf(" %d", nvtxDomainRangePop(io));
    printf(" %d\n", nvtxRangePop());
}

int main(int count, char ** args) {
    const int is_fork = count > 1 && strcmp(args[1], "fork") == 0;
    nvtxNameOsThreadW((uint32_t) syscall(SYS_gettid), L"main thread");
    nvtxNameCategoryA(7, "default seven");
    io = nvtxDomainCreateA("io");
    nvtxDomainNameCategoryW(io, 7, L"io seven");
    nvtxNameCudaStreamA((cudaStream_t) 0x7f0000000001, "copy stream");
    nvtxNameCudaDeviceW(0, L"first GPU");
    nvtxNameCuContextA((CUcontext) 0x10, "context");
    ranges();
    announce();
    nvtxMarkA("a mark");
    nvtxMarkW(L"a wide mark");
    payloads();
    nvtxEventAttributes_t event = text("across threads");
    event.colorType = NVTX_COLOR_ARGB;
    event.color = 0x80ff0001;
    across = nvtxDomainRangeStartEx(io, &event);
    const nvtxRangeId_t first = nvtxRangeStartA("first"), second = nvtxRangeStartW(L"second");
    pthread_t thread;
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, NULL);
    nvtxRangeEnd(first);
    nvtxRangeEnd(second);
    nvtxRangeStartA("left open");
    nvtxDomainDestroy(io);
    if (!is_fork) return 0;
    if (fork() == 0) {
        nvtxMarkA("of the child");
        nvtxRangePushA("of the child");
        _exit(nvtxRangePop() < 0 ? 0 : 1);
    }
    int status;
    wait(&status);
    nvtxMarkA("after the child");
    return WEXITSTATUS(status);
}
#endif
