/*
 * An observer of CUDA that shares nothing with the recorder: NVIDIA's driver loads it into a program (CUDA_INJECTION64_PATH=libobserver.so).
 *   OBSERVER_OUT=file    each kernel, copy and fill that CUPTI's activities contain, as a line of JSON
 *   OBSERVER_COST=kinds  instead, what recording costs: CUPTI records kinds such as kernel,runtime and callbacks of launches; nothing is written
 *   OBSERVER_CALLS=1     instead, each launch of a kernel, as a line on standard output when the host makes it
 * Made by verify.mjs with the toolkit's headers: cc -shared -fPIC observer.c -I<toolkit>/include -l:libcupti.so.13 -o libobserver.so
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cupti.h>

enum { BUFFER_BYTES = 8 << 20 };

static FILE * out;

static void expect(CUptiResult result, const char * what) {
    const char * text = "?";
    if (result == CUPTI_SUCCESS) return;
    cuptiGetResultString(result, &text);
    fprintf(stderr, "observer: %s: %s\n", what, text);
}

static void print_name(FILE * to, const char * name) {
    static char * (*demangle)(const char *, char *, size_t *, int *);
    if (!demangle) {
        void * library = dlopen("libstdc++.so.6", RTLD_NOW);
        *(void **) &demangle = library ? dlsym(library, "__cxa_demangle") : NULL;
    }
    int status = -1;
    char * readable = demangle && name ? demangle(name, NULL, NULL, &status) : NULL;
    fprintf(to, "\"name\":\"%s\"", status == 0 ? readable : name ? name : "");
    free(readable);
}

static void print_record(const CUpti_Activity * record) {
    switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const CUpti_ActivityKernel10 * kernel = (const void *) record;
            fprintf(out, "{\"event\":\"work\",\"kind\":\"kernel\",\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"stream\":%u,\"node\":%" PRIu64
                ",\"grid\":\"%d,%d,%d\",\"block\":\"%d,%d,%d\",", kernel->start, kernel->end, kernel->streamId, kernel->graphNodeId,
                kernel->gridX, kernel->gridY, kernel->gridZ, kernel->blockX, kernel->blockY, kernel->blockZ);
            print_name(out, kernel->name);
            fprintf(out, "}\n");
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const CUpti_ActivityMemcpy6 * copy = (const void *) record;
            fprintf(out, "{\"event\":\"work\",\"kind\":\"copy\",\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"stream\":%u,\"node\":%" PRIu64
                ",\"bytes\":%" PRIu64 ",\"direction\":%d}\n", copy->start, copy->end, copy->streamId, copy->graphNodeId, copy->bytes, copy->copyKind);
            break;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const CUpti_ActivityMemset4 * fill = (const void *) record;
            fprintf(out, "{\"event\":\"work\",\"kind\":\"fill\",\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"stream\":%u,\"node\":%" PRIu64
                ",\"bytes\":%" PRIu64 "}\n", fill->start, fill->end, fill->streamId, fill->graphNodeId, fill->bytes);
            break;
        }
        default: break;
    }
}

static void CUPTIAPI request(uint8_t ** buffer, size_t * size, size_t * most) {
    *most = 0;
    *size = BUFFER_BYTES;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t * buffer, size_t size, size_t valid) {
    CUpti_Activity * record = NULL;
    size_t dropped = 0;
    (void) size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) print_record(record);
    expect(cuptiActivityGetNumDroppedRecords(context, stream, &dropped), "dropped records");
    if (dropped) fprintf(stderr, "observer: %zu records were dropped\n", dropped);
    free(buffer);
}

static void CUPTIAPI on_launch(void * user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void * data) {
    const CUpti_CallbackData * call = data;
    (void) user, (void) domain, (void) id;
    if (call->callbackSite != CUPTI_API_ENTER) return;
    flockfile(stdout);
    printf("{\"event\":\"work\",\"kind\":\"kernel\",");
    print_name(stdout, call->symbolName);
    printf("}\n");
    funlockfile(stdout);
}

static void finish(void) {
    expect(cuptiActivityFlushAll(1), "flush");
    fclose(out);
}

static void CUPTIAPI drop(CUcontext context, uint32_t stream, uint8_t * buffer, size_t size, size_t valid) {
    (void) context, (void) stream, (void) size, (void) valid;
    free(buffer);
}

static void CUPTIAPI on_any(void * user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void * data) {
    static _Atomic uint32_t latest;
    (void) user, (void) domain, (void) id;
    latest = ((const CUpti_CallbackData *) data)->correlationId;
}

static void enable_cost(const char * kinds) {
    static CUpti_SubscriberHandle subscriber;
    static const CUpti_CallbackId runtime[] = {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
        CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020};
    static const CUpti_CallbackId driver[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx};
    expect(cuptiSubscribe(&subscriber, on_any, NULL), "subscribe");
    expect(cuptiActivityRegisterCallbacks(request, drop), "register callbacks");
    if (strstr(kinds, "kernel")) {
        expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "kernels");
        expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), "copies");
        expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), "fills");
    }
    if (strstr(kinds, "graph")) expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), "graphs");
    if (strstr(kinds, "runtime")) expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), "runtime");
    if (strstr(kinds, "driver")) {
        for (int i = 0; i < 2; i++) expect(cuptiActivityEnableDriverApi(driver[i], 1), "driver");
    }
    if (strstr(kinds, "callbacks")) {
        for (int i = 0; i < 4; i++) expect(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, runtime[i]), "callbacks");
        for (int i = 0; i < 2; i++) expect(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, driver[i]), "callbacks");
    }
}

int InitializeInjection(void) {
    static CUpti_SubscriberHandle subscriber;
    static const CUpti_CallbackId launches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};
    const char * path = getenv("OBSERVER_OUT"), * kinds = getenv("OBSERVER_COST");
    if (kinds) return enable_cost(kinds), 1;
    expect(cuptiSubscribe(&subscriber, on_launch, NULL), "subscribe");
    if (getenv("OBSERVER_CALLS")) {
        for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
            expect(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]), "callbacks of launches");
        }
    } else if (path && (out = fopen(path, "w"))) {
        expect(cuptiActivityRegisterCallbacks(request, complete), "register callbacks");
        expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "kernels");
        expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), "copies");
        expect(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET), "fills");
        atexit(finish);
    }
    return 1;
}
