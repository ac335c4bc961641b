/*
 * The functions of CUDA's runtime and of cuBLAS that ggml-cuda calls through the dynamic linker. cuda-work.c decides what is recorded of
 * them, cupti.c reads when the devices computed it. hip.c compiles this file again, with HIP's names of the same functions.
 */

#include "common/clock.h"
#include "common/environment.h"
#include "common/hold.h"
#include "recorder/callees.h"
#include "recorder/calls.h"
#include "recorder/cuda-api.h"
#include "recorder/cuda-devices.h"
#include "recorder/cuda-events.h"
#include "recorder/cuda-work.h"
#include "recorder/cuda-records.h"
#include "recorder/cupti.h"
#include "recorder/libraries.h"
#include "recorder/recorder.h"
#include "recorder/redirect.h"

/* ---- Who calls ---- */

/* Is it ggml's backend that calls, and not another library that uses CUDA? */
static bool is_ggml(const void * caller) {
    const char * path;
    void * library = library_of(caller, &path), * function = library ? dlsym(library, "ggml_backend_cuda_reg") : NULL;
    Dl_info own, other;
    return function && dladdr(function, &own) && dladdr(caller, &other) && own.dli_fbase == other.dli_fbase;
}

/* Without the library, a program that looks for a function finds its hook: what it returns then says so, as without a driver. */
#define REAL_OR(name, failure)        \
    REAL_OF_CALLER(name, is_ggml);    \
    if (__builtin_expect(!real, 0)) return failure

/* ---- The loop over the nodes of a graph ---- */

static _Atomic bool is_begun; /* the recording of ggml-cuda */
static bool (*is_empty)(const void * tensor);

/*
 * ggml-cuda asks this of each node that it comes to, before it launches anything for it. ggml-cpu calls the same function for each operator and
 * worker: so only ggml-cuda's calls are redirected.
 */
static bool note_node(const void * tensor) {
    cuda_node(tensor);
    return is_empty(tensor);
}

static bool has_begun(void) {
    return atomic_load_explicit(&is_begun, memory_order_relaxed);
}

/* Other libraries that use CUDA are not recorded. What was reached by a jump, which leaves no trace of its library, may be ggml's. */
static bool is_followed(const struct callee * callee) {
    return has_begun() && !callee->is_foreign;
}

static bool is_wanted(void) {
    const char * gpu = environment(ENV_GPU), * level = environment(ENV_LEVEL);
    return recording_level() != LEVEL_OFF && environment(ENV_OUT) && !(gpu && strcmp(gpu, "0") == 0) && !(level && strcmp(level, "token") == 0);
}

#ifdef HIP
#define API "HIP"
#define API_NUMBER GGTRACE_API_HIP

static void times_start(const void * caller) {
    (void) caller;
    cupti_missing("times of HIP's kernels: AMD's profiler is not used, and events do not work in HIP's graphs");
}
#else
#define API "CUDA"
#define API_NUMBER GGTRACE_API_CUDA

static void times_start(const void * caller) {
    const char * problem = cuda_records_start();
    if (problem) cuda_events_start(caller, problem);
}
#endif

/* ggml's backend looks for devices: begins with them. */
static void begin(const void * caller) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (has_begun() || !is_wanted() || !is_ggml(caller)) return;
    HOLD(&lock);
    if (has_begun()) return;
    if (!cuda_use(API_NUMBER)) {
        cupti_missing(API ": the program computes with another API of GPUs, too, and that one is recorded");
        return;
    }
    *(void **) &is_empty = library_resolve("ggml_is_empty", caller);
    if (is_empty && redirect(caller, "ggml_is_empty", *(void **) &(bool (*)(const void *)){note_node})) {
        times_start(caller);
        atomic_store(&is_begun, true);
    } else cupti_missing(API ": this backend's loop over the nodes of a graph cannot be followed");
}

/* Hooks that only note something, before the call or after it, as HOOK_BEFORE and HOOK_AFTER. */
#define CUDA_BEFORE(name, note, parameters, ...)         \
    HOOK(int, name, parameters) {                        \
        REAL_OR(name, CUDA_INSUFFICIENT_DRIVER);         \
        note;                                            \
        return real(__VA_ARGS__);                        \
    }
#define CUDA_AFTER(name, note, parameters, ...)          \
    HOOK(int, name, parameters) {                        \
        REAL_OR(name, CUDA_INSUFFICIENT_DRIVER);         \
        const int result = real(__VA_ARGS__);            \
        note;                                            \
        return result;                                   \
    }

CUDA_AFTER(cudaGetDeviceCount, if (result == 0 && *count > 0) begin(CALLER), int * count, count)
CUDA_AFTER(cudaSetDevice, if (result == 0) cuda_set_device(device), int device, device)

#define NAME_DEVICE if (result == 0 && has_begun()) cuda_name_device((uint32_t) device, properties)
CUDA_AFTER(cudaGetDeviceProperties, NAME_DEVICE, LIST(char * properties, int device), properties, device)
#ifndef HIP
/* Its name in CUDA 12. */
CUDA_AFTER(cudaGetDeviceProperties_v2, NAME_DEVICE, LIST(char * properties, int device), properties, device)
#endif

/* ---- Launches ---- */

/* `facts`: fields of struct cuda_what. */
#define LAUNCH(function, stream, facts, ...)                      \
    if (!has_begun()) return real(__VA_ARGS__);                   \
    struct cuda_launch launch;                                    \
    cuda_launch_begin(&launch, function, stream, callee->is_foreign); \
    launch.what = (struct cuda_what){facts};                      \
    const int result = real(__VA_ARGS__);                         \
    cuda_launch_end(&launch, result == 0);                        \
    return result
#define LAUNCHES(name, parameters, function, stream, facts, ...)  \
    HOOK(int, name, parameters) {                                 \
        REAL_OR(name, CUDA_INSUFFICIENT_DRIVER);                  \
        LAUNCH(function, stream, LIST(facts), __VA_ARGS__);       \
    }

LAUNCHES(__cudaLaunchKernel, LIST(const void * kernel, struct cuda_dim3 grid, struct cuda_dim3 block, void ** arguments, size_t shared, void * stream),
    CUDA_LAUNCH_KERNEL, stream, LIST(.kernel = kernel, .grid = grid, .block = block), kernel, grid, block, arguments, shared, stream)

#ifndef HIP
/* Its name in programs that are compiled for CUDA 12. */
LAUNCHES(cudaLaunchKernel, LIST(const void * function, struct cuda_dim3 grid, struct cuda_dim3 block, void ** arguments, size_t shared, void * stream),
    CUDA_LAUNCH_KERNEL, stream, LIST(.kernel = function, .grid = grid, .block = block), function, grid, block, arguments, shared, stream)

LAUNCHES(cudaLaunchKernelExC, LIST(const struct cuda_launch_config * config, const void * function, void ** arguments),
    CUDA_LAUNCH_EX, config->stream, LIST(.kernel = function, .grid = config->grid, .block = config->block), config, function, arguments)
#endif

LAUNCHES(cudaLaunchCooperativeKernel, LIST(const void * function, struct cuda_dim3 grid, struct cuda_dim3 block, void ** arguments, size_t shared, void * stream),
    CUDA_LAUNCH_COOPERATIVE, stream, LIST(.kernel = function, .grid = grid, .block = block), function, grid, block, arguments, shared, stream)

LAUNCHES(cudaMemcpyAsync, LIST(void * to, const void * from, size_t size, int kind, void * stream),
    CUDA_MEMCPY, stream, LIST(.bytes = size, .kind = kind), to, from, size, kind, stream)

LAUNCHES(cudaMemcpy2DAsync, LIST(void * to, size_t to_pitch, const void * from, size_t from_pitch, size_t width, size_t height, int kind, void * stream),
    CUDA_MEMCPY_2D, stream, LIST(.bytes = width * height, .kind = kind), to, to_pitch, from, from_pitch, width, height, kind, stream)

LAUNCHES(cudaMemcpyPeerAsync, LIST(void * to, int to_device, const void * from, int from_device, size_t size, void * stream),
    CUDA_MEMCPY_PEER, stream, LIST(.bytes = size), to, to_device, from, from_device, size, stream)

#ifndef HIP
/* Earlier releases of ggml copy parts of split matrices by it. `box`: a struct cudaMemcpy3DPeerParms. */
HOOK(int, cudaMemcpy3DPeerAsync, const char * box, void * stream) {
    REAL_OR(cudaMemcpy3DPeerAsync, CUDA_INSUFFICIENT_DRIVER);
    const struct { size_t width, height, depth; } * extent = (const void *) (box + 144);
    LAUNCH(CUDA_MEMCPY_3D_PEER, stream, LIST(.bytes = extent->width * extent->height * extent->depth), box, stream);
}
#endif

LAUNCHES(cudaMemsetAsync, LIST(void * to, int value, size_t size, void * stream),
    CUDA_MEMSET, stream, LIST(.bytes = size), to, value, size, stream)

LAUNCHES(cudaMemset, LIST(void * to, int value, size_t size),
    CUDA_MEMSET, NULL, LIST(.bytes = size), to, value, size)

/* ---- cuBLAS, whose launches pass no hook: one call may launch several kernels ---- */

/* The stream of this thread's handle: ggml sets it before each product. */
static __thread void * product_stream __attribute__((tls_model("initial-exec")));

HOOK(int, cublasSetStream_v2, void * handle, void * stream) {
    REAL_OR(cublasSetStream_v2, CUBLAS_NOT_INITIALIZED);
    if (!callee->is_foreign) product_stream = stream;
    return real(handle, stream);
}

#define PRODUCT(name, parameters, ...)                            \
    HOOK(int, name, parameters) {                                 \
        REAL_OR(name, CUBLAS_NOT_INITIALIZED);                                               \
        LAUNCH(CUDA_GEMM, product_stream, LIST(0), __VA_ARGS__);      \
    }
#define SIZES void * handle, int a, int b, int m, int n, int k
#define SIZES_OF handle, a, b, m, n, k

PRODUCT(cublasGemmEx, LIST(SIZES, const void * alpha, const void * A, int At, int lda, const void * B, int Bt, int ldb, const void * beta, void * C, int Ct, int ldc, int compute, int algorithm),
        SIZES_OF, alpha, A, At, lda, B, Bt, ldb, beta, C, Ct, ldc, compute, algorithm)
PRODUCT(cublasGemmBatchedEx, LIST(SIZES, const void * alpha, const void * A, int At, int lda, const void * B, int Bt, int ldb, const void * beta, void * C, int Ct, int ldc, int count, int compute, int algorithm),
        SIZES_OF, alpha, A, At, lda, B, Bt, ldb, beta, C, Ct, ldc, count, compute, algorithm)
PRODUCT(cublasGemmStridedBatchedEx, LIST(SIZES, const void * alpha, const void * A, int At, int lda, long long As, const void * B, int Bt, int ldb, long long Bs, const void * beta, void * C, int Ct, int ldc, long long Cs, int count, int compute, int algorithm),
        SIZES_OF, alpha, A, At, lda, As, B, Bt, ldb, Bs, beta, C, Ct, ldc, Cs, count, compute, algorithm)
PRODUCT(cublasSgemm_v2, LIST(SIZES, const void * alpha, const void * A, int lda, const void * B, int ldb, const void * beta, void * C, int ldc),
        SIZES_OF, alpha, A, lda, B, ldb, beta, C, ldc)
PRODUCT(cublasSgemmBatched, LIST(SIZES, const void * alpha, const void * A, int lda, const void * B, int ldb, const void * beta, void * C, int ldc, int count),
        SIZES_OF, alpha, A, lda, B, ldb, beta, C, ldc, count)
PRODUCT(cublasSgemmStridedBatched, LIST(SIZES, const void * alpha, const void * A, int lda, long long As, const void * B, int ldb, long long Bs, const void * beta, void * C, int ldc, long long Cs, int count),
        SIZES_OF, alpha, A, lda, As, B, ldb, Bs, beta, C, ldc, Cs, count)
PRODUCT(cublasStrsmBatched, LIST(void * handle, int side, int uplo, int trans, int diag, int m, int n, const void * alpha, const void * A, int lda, void * B, int ldb, int count),
        handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb, count)

/* ---- Graphs ---- */

/* What the host does for a device, from `start` to now. */
static void note_host(uint32_t what, uint64_t start) {
    struct ggtrace_writer * writer = recording_level() >= LEVEL_GRAPH && calls_take() ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (!writer) return;
    ggtrace_gpu_wait(writer, &(struct ggtrace_gpu_wait_record){
        .start = start, .end = clock_now(), .what = what, .device = cuda_device(), .call = calls_current()});
}

static __thread uint64_t capture_start __attribute__((tls_model("initial-exec")));

HOOK(int, cudaStreamBeginCapture, void * stream, int mode) {
    REAL_OR(cudaStreamBeginCapture, CUDA_INSUFFICIENT_DRIVER);
    const int result = real(stream, mode);
    if (result == 0 && is_followed(callee)) {
        cuda_captures(true);
        capture_start = clock_now();
    }
    return result;
}

HOOK(int, cudaStreamEndCapture, void * stream, void ** graph) {
    REAL_OR(cudaStreamEndCapture, CUDA_INSUFFICIENT_DRIVER);
    if (is_followed(callee)) cuda_settle(); /* its last event is of the capture */
    const int result = real(stream, graph);
    if (is_followed(callee)) {
        cuda_captures(false);
        if (capture_start) note_host(GGTRACE_CUDA_CAPTURE, capture_start);
        capture_start = 0;
    }
    return result;
}

/* With the parameters that they had until CUDA 11: passed on, they change nothing. */
#define PREPARES_GRAPH(name, kind, note, parameters, ...)                \
    HOOK(int, name, parameters) {                                        \
        REAL_OR(name, CUDA_INSUFFICIENT_DRIVER);                         \
        const uint64_t start = clock_now();                              \
        const int result = real(__VA_ARGS__);                            \
        if (result != 0 || !is_followed(callee)) return result;          \
        note;                                                            \
        note_host(kind, start);                                          \
        return result;                                                   \
    }
PREPARES_GRAPH(cudaGraphInstantiate, GGTRACE_CUDA_INSTANTIATE, cuda_graph_instantiated(*exec),
    LIST(void ** exec, void * graph, void * flags, void * text, size_t size), exec, graph, flags, text, size)
PREPARES_GRAPH(cudaGraphExecUpdate, GGTRACE_CUDA_UPDATE, cuda_graph_updated(exec),
    LIST(void * exec, void * graph, void * outcome, void * result_before_12), exec, graph, outcome, result_before_12)

HOOK(int, cudaGraphLaunch, void * exec, void * stream) {
    REAL_OR(cudaGraphLaunch, CUDA_INSUFFICIENT_DRIVER);
    if (!has_begun()) return real(exec, stream);
    struct cuda_launch launch;
    cuda_launch_begin(&launch, CUDA_GRAPH_LAUNCH, stream, callee->is_foreign);
    launch.exec = exec;
    cuda_graph_launch_begin(&launch);
    const int result = real(exec, stream);
    cuda_graph_launch_end(&launch);
    cuda_launch_end(&launch, result == 0);
    return result;
}

#ifndef HIP
CUDA_BEFORE(cudaGraphExecDestroy, if (is_followed(callee)) cuda_events_destroyed(exec), void * exec, exec)

/* ---- Streams that wait for others ---- */

CUDA_BEFORE(cudaEventRecord, if (is_followed(callee)) cuda_events_divide(stream), LIST(void * event, void * stream), event, stream)
CUDA_BEFORE(cudaStreamWaitEvent, if (is_followed(callee)) cuda_events_divide(stream),
    LIST(void * stream, void * event, unsigned flags), stream, event, flags)
#endif

/* ---- Waits ---- */

#define WAITS(name, kind, parameters, ...)                 \
    HOOK(int, name, parameters) {                          \
        REAL_OR(name, CUDA_INSUFFICIENT_DRIVER);           \
        if (!is_followed(callee)) return real(__VA_ARGS__); \
        const uint64_t start = clock_now();                \
        const int result = real(__VA_ARGS__);              \
        cuda_launched_flush();                             \
        note_host(kind, start);                            \
        return result;                                     \
    }
WAITS(cudaStreamSynchronize, GGTRACE_WAIT_CUDA_STREAM, void * stream, stream)

WAITS(cudaEventSynchronize, GGTRACE_WAIT_CUDA_EVENT, void * event, event)

WAITS(cudaDeviceSynchronize, GGTRACE_WAIT_CUDA_DEVICE, void, )
