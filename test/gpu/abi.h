/* What of CUDA's ABI the stand-ins need. layouts.cc compares it with the toolkit's headers, where a machine has them. */
#pragma once

#include <cstddef>
#include <cstdint>

struct Dim3 {
    uint32_t x, y, z;
};

struct LaunchConfig {
    Dim3 grid, block;
    size_t shared;
    void * stream;
    void * attributes;
    uint32_t attribute_count;
};

struct FunctionAttributes {
    size_t shared, constant, local;
    int threads_max, registers, ptx_version, binary_version, cache_mode, dynamic_shared_max;
    char rest[144 - 48];
};

struct UpdateResult {
    int result;
    void * error_node, * error_from;
};

struct KernelParameters {
    const void * function;
    Dim3 grid, block;
    unsigned shared;
    void ** arguments, ** extra;
};

/* cudaDeviceProp, by offset: of its 100 fields few are read. CUDA 13 has left out some that 12 has; hipDeviceProp_tR0600 has more than 12. */
enum Property {
    PROPERTY_NAME = 0,
    PROPERTY_UUID = 256,
    PROPERTY_MEMORY = 288,
    PROPERTY_SHARED_PER_BLOCK = 296,
    PROPERTY_WARP = 308,
    PROPERTY_THREADS_PER_BLOCK = 320,
    PROPERTY_GRID = 336,
    PROPERTY_MAJOR = 360,
    PROPERTY_MINOR = 364,
#if CUDA >= 13
    PROPERTY_BYTES = 1008,
    PROPERTY_PROCESSORS = 384,
    PROPERTY_MAPS_HOST = 392,
    PROPERTY_BUS = 568,
    PROPERTY_DEVICE = 572,
    PROPERTY_DOMAIN = 576,
    PROPERTY_L2 = 596,
    PROPERTY_THREADS_PER_PROCESSOR = 604,
    PROPERTY_SHARED_PER_PROCESSOR = 624,
    PROPERTY_COOPERATIVE = 668,
    PROPERTY_SHARED_OPTIN = 672,
    PROPERTY_BLOCKS_PER_PROCESSOR = 688,
#else
#ifdef HIP
    PROPERTY_BYTES = 1472,
    PROPERTY_ARCHITECTURE = 1160,
#else
    PROPERTY_BYTES = 1032,
#endif
    PROPERTY_PROCESSORS = 388,
    PROPERTY_MAPS_HOST = 400,
    PROPERTY_BUS = 584,
    PROPERTY_DEVICE = 588,
    PROPERTY_DOMAIN = 592,
    PROPERTY_L2 = 616,
    PROPERTY_THREADS_PER_PROCESSOR = 624,
    PROPERTY_SHARED_PER_PROCESSOR = 640,
    PROPERTY_COOPERATIVE = 688,
    PROPERTY_SHARED_OPTIN = 696,
    PROPERTY_BLOCKS_PER_PROCESSOR = 712,
#endif
};

/* Records of CUPTI 13's activities; of older ones, these fields have the same offsets. */
struct ActivityKernel {
    uint32_t kind;
    char cache[8];
    uint32_t shared;
    uint64_t start, end;
    uint64_t completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3];
    int32_t static_shared, dynamic_shared;
    uint32_t local, local_total, correlation;
    int64_t number;
    const char * name;
    char between[32];
    uint64_t node;
    char after[4];
    uint32_t graph;
    char rest[56];
} __attribute__((packed));

struct ActivityCopy {
    uint32_t kind;
    uint8_t copy_kind, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation, runtime_correlation, pad;
    void * reserved;
    uint64_t node;
    uint32_t graph, channel, channel_type;
    uint8_t is_device_launched, pad2[3];
    uint64_t count;
} __attribute__((packed));

struct ActivityPeerCopy {
    uint32_t kind;
    uint8_t copy_kind, from, to, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, from_device, from_context, to_device, to_context, correlation;
    void * reserved;
    uint64_t node;
    uint32_t graph, channel, channel_type, pad;
} __attribute__((packed));

struct ActivityFill {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
    uint16_t flags, memory;
    uint32_t pad;
    void * reserved;
    uint64_t node;
    uint32_t graph, channel, channel_type;
    uint8_t is_device_launched, pad2[3];
} __attribute__((packed));

struct ActivityCall {
    uint32_t kind, id;
    uint64_t start, end;
    uint32_t process, thread, correlation, result;
} __attribute__((packed));

struct ActivityExternal {
    uint32_t kind, external_kind;
    uint64_t external;
    uint32_t correlation, reserved;
} __attribute__((packed));

/* Of a callback about a graph: CUpti_ResourceData and CUpti_GraphData. */
struct ResourceData {
    void * context, * handle;
    void * descriptor;
};

struct GraphData {
    void * graph, * original_graph;
    void * node, * original_node;
    uint32_t node_type;
    void * dependency;
    void * exec;
};

/* Of a copy between devices: cudaMemcpy3DPeerParms. */
struct CopySide {
    void * array;
    size_t position[3];
    char * at;
    size_t pitch, xsize, ysize;
    int device;
};

struct CopyBox {
    CopySide from, to;
    size_t width, height, depth;
};
