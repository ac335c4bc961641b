/*
 * The functions of HIP's runtime and of hipBLAS that ggml's backend calls, which is the source of ggml-cuda, compiled with these names. They
 * have the parameters of CUDA's, and the same numbers of errors.
 */
#include "common/system.h"
#define HIP

#define __cudaLaunchKernel hipLaunchKernel
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaEventSynchronize hipEventSynchronize
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDevicePropertiesR0600
#define cudaGraphExecUpdate hipGraphExecUpdate
#define cudaGraphInstantiate hipGraphInstantiate
#define cudaGraphLaunch hipGraphLaunch
#define cudaLaunchCooperativeKernel hipLaunchCooperativeKernel
#define cudaMemcpy2DAsync hipMemcpy2DAsync
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyPeerAsync hipMemcpyPeerAsync
#define cudaMemset hipMemset
#define cudaMemsetAsync hipMemsetAsync
#define cudaSetDevice hipSetDevice
#define cudaStreamBeginCapture hipStreamBeginCapture
#define cudaStreamEndCapture hipStreamEndCapture
#define cudaStreamSynchronize hipStreamSynchronize

#define cublasGemmBatchedEx hipblasGemmBatchedEx
#define cublasGemmEx hipblasGemmEx
#define cublasGemmStridedBatchedEx hipblasGemmStridedBatchedEx
#define cublasSetStream_v2 hipblasSetStream
#define cublasSgemmBatched hipblasSgemmBatched
#define cublasSgemmStridedBatched hipblasSgemmStridedBatched
#define cublasSgemm_v2 hipblasSgemm
#define cublasStrsmBatched hipblasStrsmBatched

#include "log/ggtrace-gpu.h"

#define GGTRACE_WAIT_CUDA_STREAM GGTRACE_WAIT_HIP_STREAM
#define GGTRACE_WAIT_CUDA_EVENT GGTRACE_WAIT_HIP_EVENT
#define GGTRACE_WAIT_CUDA_DEVICE GGTRACE_WAIT_HIP_DEVICE
#define GGTRACE_CUDA_CAPTURE GGTRACE_HIP_CAPTURE
#define GGTRACE_CUDA_INSTANTIATE GGTRACE_HIP_INSTANTIATE
#define GGTRACE_CUDA_UPDATE GGTRACE_HIP_UPDATE

#include "recorder/cuda.c"
