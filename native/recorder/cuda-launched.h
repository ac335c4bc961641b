/*
 * What each launch is of, for a log without the times of that work: its operators and its kernel are in the log before the launch, which
 * is written when the last of its operators is known.
 */
#pragma once

#include "common/system.h"
#include "log/ggtrace-gpu.h"
#include "recorder/cuda-api.h"

/* The functions that launch: `buffers` of a GPU_SUBMISSION. */
enum cuda_function { CUDA_LAUNCH_KERNEL, CUDA_LAUNCH_EX, CUDA_LAUNCH_COOPERATIVE, CUDA_MEMCPY, CUDA_MEMCPY_2D, CUDA_MEMCPY_PEER, CUDA_MEMSET, CUDA_GRAPH_LAUNCH, CUDA_GEMM, CUDA_MEMCPY_3D_PEER };

/* Operators of a launch: from the loop over the nodes of a graph; 0: of none. */
struct cuda_operator {
    uint32_t tensor, last, graph, part; /* part: n > 0: the n-th further launch for it */
};

/* What a launch is of: a kernel, or a copy or fill. */
struct cuda_what {
    const void * kernel;
    struct cuda_dim3 grid, block;
    uint64_t bytes;
    int kind; /* cudaMemcpyKind */
};

/* What was launched, as records name it. */
struct cuda_named {
    uint32_t what, kernel, shape; /* shape: of a copy: its kind, as CUPTI numbers it */
    uint64_t bytes;
};
struct cuda_named cuda_named(enum cuda_function function, const struct cuda_what * what);

/* A launch of this thread; `operator` remains where it is, and its last node is not known yet. */
void cuda_launched_hold(const struct ggtrace_gpu_submission * submission, const struct cuda_operator * operator, const struct cuda_named * named);

/* One of the works of a launch; the launch must be written next. */
void cuda_launched_work(const struct ggtrace_gpu_submission * submission, const struct cuda_operator * operator, const struct cuda_named * named);

/* The last nodes of the operators are known, or will not be. */
void cuda_launched_flush(void);
