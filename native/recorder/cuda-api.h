/*
 * What the recorder uses of CUDA's ABI: only what does not depend on its version, 11 to 13. Streams, graphs and events are handles of the
 * program. Records of CUPTI are read by the offsets of these fields (cupti_activity.h: the same since version 11 for all newer records).
 */
#pragma once

#include "common/system.h"

struct cuda_dim3 {
    uint32_t x, y, z;
};

struct cuda_launch_config {
    struct cuda_dim3 grid, block;
    size_t shared;
    void * stream;
    void * attributes;
    uint32_t attribute_count;
};

enum { CUDA_INSUFFICIENT_DRIVER = 35, CUDA_NOT_READY = 600, CUBLAS_NOT_INITIALIZED = 1 }; /* cudaError_t, cublasStatus_t */
enum { CUDA_EVENT_RECORD_EXTERNAL = 1 };
enum { CUDA_NAME_BYTES = 256 }; /* of cudaDeviceProp, which begins with the name */

/* CUpti_ActivityKind, CUpti_CallbackDomain, CUpti_CallbackIdResource, CUpti_ExternalCorrelationKind, CUptiResult. */
enum { CUPTI_MEMCPY = 1, CUPTI_MEMSET = 2, CUPTI_RUNTIME = 5, CUPTI_KERNEL = 10, CUPTI_MEMCPY2 = 22, CUPTI_EXTERNAL = 39 };
enum { CUPTI_RESOURCE = 3, CUPTI_NODE_CREATED = 13, CUPTI_NODE_CLONED = 20, CUPTI_CUSTOM0 = 3, CUPTI_BUSY = 39, CUPTI_PEER_TO_PEER = 10 };
enum { CUPTI_LAUNCH_KERNEL = 307, CUPTI_LAUNCH_KERNEL_EX = 652 }; /* CUpti_driver_api_trace_cbid */

/* Offsets of CUpti_ActivityKernel5 to 10, Memcpy4 to 6, MemcpyPtoP3 and 4, Memset3 and 4, ExternalCorrelation. */
enum {
    KERNEL_START = 16, KERNEL_END = 24, KERNEL_DEVICE = 40, KERNEL_STREAM = 48, KERNEL_GRID = 52, KERNEL_BLOCK = 64,
    KERNEL_CORRELATION = 92, KERNEL_NAME = 104, KERNEL_NODE = 144,
    MEMCPY_KIND = 4, MEMCPY_BYTES = 8, MEMCPY_START = 16, MEMCPY_END = 24, MEMCPY_DEVICE = 32, MEMCPY_STREAM = 40, MEMCPY_CORRELATION = 44,
    MEMCPY_NODE = 64,
    MEMCPY2_DEVICE = 32, MEMCPY2_STREAM = 40, MEMCPY2_CORRELATION = 60, MEMCPY2_NODE = 72, MEMCPY2_START = 16, MEMCPY2_END = 24,
    MEMSET_BYTES = 8, MEMSET_START = 16, MEMSET_END = 24, MEMSET_DEVICE = 32, MEMSET_STREAM = 40, MEMSET_CORRELATION = 44, MEMSET_NODE = 64,
    EXTERNAL_KIND = 4, EXTERNAL_ID = 8, EXTERNAL_CORRELATION = 16,
};

/* CUpti_ResourceData, and the CUpti_GraphData that it has for nodes. */
struct cupti_resource {
    void * context, * handle;
    const struct cupti_graph_data * graph;
};

struct cupti_graph_data {
    void * graph, * original_graph, * node, * original_node;
    uint32_t node_type;
    void * dependency, * exec;
};
