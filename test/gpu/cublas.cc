/* libcublas.so, or libhipblas.so: the 13 functions that ggml-cuda calls. A product is one kernel, launched without passing the program's cudart. */
#ifdef HIP
#include "hip.h"
#endif
#include "bed.h"

#define API extern "C" __attribute__((visibility("default"))) int

using namespace bed;

struct Handle {
    void * stream;
};

enum { CALL_KERNEL = 505 };

static int product(const Handle * handle, int64_t m, int64_t n, int64_t k, int64_t batch, int bytes) {
    const Call call(CALL_KERNEL);
    return submit(stream_of(handle->stream), gemm(m, n, k, batch, bytes)) ? 13 : 0; /* CUBLAS_STATUS_EXECUTION_FAILED */
}

static int bytes_of(int type) {
    return type == 0 || type == 151 ? 4 : 2; /* CUDA_R_32F, HIPBLAS_R_32F; CUDA_R_16F, CUDA_R_16BF */
}

API cublasCreate_v2(Handle ** handle) {
    *handle = new Handle{nullptr};
    return 0;
}
API cublasDestroy_v2(Handle * handle) {
    delete handle;
    return 0;
}
API cublasSetStream_v2(Handle * handle, void * stream) {
    handle->stream = stream;
    return 0;
}
API cublasSetMathMode(Handle *, int) { return 0; }
API cublasSetWorkspace_v2(Handle *, void *, size_t) { return 0; }
extern "C" __attribute__((visibility("default"))) const char * cublasGetStatusString(int status) {
    return status ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_SUCCESS";
}

API cublasGemmEx(Handle * handle, int, int, int m, int n, int k, const void *, const void *, int type, int, const void *, int, int, const void *, void *, int, int, int, int) {
    return product(handle, m, n, k, 1, bytes_of(type));
}
API cublasGemmBatchedEx(Handle * handle, int, int, int m, int n, int k, const void *, const void * const *, int type, int, const void * const *, int, int, const void *, void * const *, int, int, int batch, int, int) {
    return product(handle, m, n, k, batch, bytes_of(type));
}
API cublasGemmStridedBatchedEx(Handle * handle, int, int, int m, int n, int k, const void *, const void *, int type, int, long long, const void *, int, int, long long, const void *, void *, int, int, long long, int batch, int, int) {
    return product(handle, m, n, k, batch, bytes_of(type));
}
API cublasSgemm_v2(Handle * handle, int, int, int m, int n, int k, const float *, const float *, int, const float *, int, const float *, float *, int) {
    return product(handle, m, n, k, 1, 4);
}
API cublasSgemmBatched(Handle * handle, int, int, int m, int n, int k, const float *, const float * const *, int, const float * const *, int, const float *, float * const *, int, int batch) {
    return product(handle, m, n, k, batch, 4);
}
API cublasSgemmStridedBatched(Handle * handle, int, int, int m, int n, int k, const float *, const float *, int, long long, const float *, int, long long, const float *, float *, int, long long, int batch) {
    return product(handle, m, n, k, batch, 4);
}
API cublasStrsmBatched(Handle * handle, int, int, int, int, int m, int n, const float *, const float * const *, int, float * const *, int, int batch) {
    return product(handle, m, n, m, batch, 4);
}
