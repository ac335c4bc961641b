#include "recorder/cuda-launched.h"

#include "common/table.h"
#include "recorder/cuda-api.h"
#include "recorder/cuda-names.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"

enum { HELD_MAX = 32 };

static __thread struct {
    uint32_t count;
    struct held {
        struct ggtrace_gpu_submission submission;
        const struct cuda_operator * operator;
        struct cuda_named named;
    } held[HELD_MAX];
} here __attribute__((tls_model("initial-exec")));

/* Of HIP's kernels; a function of CUDA could leave an error behind that the program finds. */
static const char * name_of(const void * kernel) {
    static _Atomic(void *) function;
    void * found = atomic_load_explicit(&function, memory_order_relaxed);
    if (!found) atomic_store(&function, found = library_resolve("hipKernelNameRefByPtr", NULL));
    const char * (*get)(const void *, void *);
    *(void **) &get = found;
    return get ? get(kernel, NULL) : NULL;
}

static uint32_t kernel_of(const void * kernel) {
    static __thread struct { const void * kernel; uint32_t id; } known[64] __attribute__((tls_model("initial-exec")));
    const uint32_t slot = (uint32_t) mix(20, (uint64_t) (uintptr_t) kernel) % 64;
    if (known[slot].kernel != kernel) {
        const char * name = name_of(kernel);
        known[slot].kernel = kernel;
        known[slot].id = name ? cuda_kernel_name(name) : 0;
    }
    return known[slot].id;
}

/* cudaMemcpyKind, as CUPTI numbers it: unknown, to, from, between hosts, within a device. */
static uint32_t copy_kind(int kind) {
    static const uint8_t kinds[] = {9, 1, 2, 8};
    return kind >= 0 && kind < 4 ? kinds[kind] : 0;
}

struct cuda_named cuda_named(enum cuda_function function, const struct cuda_what * what) {
    switch (function) {
        case CUDA_MEMCPY:
        case CUDA_MEMCPY_2D: return (struct cuda_named){.what = GGTRACE_GPU_COPY, .shape = copy_kind(what->kind), .bytes = what->bytes};
        case CUDA_MEMCPY_3D_PEER:
        case CUDA_MEMCPY_PEER: return (struct cuda_named){.what = GGTRACE_GPU_COPY, .shape = CUPTI_PEER_TO_PEER, .bytes = what->bytes};
        case CUDA_MEMSET: return (struct cuda_named){.what = GGTRACE_GPU_FILL, .bytes = what->bytes};
        default: break;
    }
    if (!what->kernel) return (struct cuda_named){.what = GGTRACE_GPU_OPERATOR};
    const uint32_t sizes[] = {what->grid.x, what->grid.y, what->grid.z, what->block.x, what->block.y, what->block.z};
    return (struct cuda_named){.what = GGTRACE_GPU_OPERATOR, .kernel = kernel_of(what->kernel), .shape = cuda_shape_name(sizes)};
}

void cuda_launched_work(const struct ggtrace_gpu_submission * submission, const struct cuda_operator * operator, const struct cuda_named * named) {
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return;
    ggtrace_gpu_work(writer, &(struct ggtrace_gpu_work_record){
        .start = submission->start,
        .submission = submission->id,
        .queue = submission->queue,
        .what = named->what,
        .tensor = operator->tensor,
        .last = operator->last,
        .call = submission->call,
        .graph = operator->graph,
        .kernel = named->kernel,
        .dispatches = named->shape,
        .part = operator->part,
        .bytes = named->bytes,
    });
}

static void write_held(const struct held * held) {
    cuda_launched_work(&held->submission, held->operator, &held->named);
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_gpu_submission(writer, &held->submission);
}

void cuda_launched_flush(void) {
    for (uint32_t i = 0; i < here.count; i++) write_held(&here.held[i]);
    here.count = 0;
}

void cuda_launched_hold(const struct ggtrace_gpu_submission * submission, const struct cuda_operator * operator, const struct cuda_named * named) {
    if (here.count == HELD_MAX) cuda_launched_flush();
    here.held[here.count++] = (struct held){*submission, operator, *named};
}
