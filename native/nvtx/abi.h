/*
 * The binary interface between a program that uses NVTX version 3 and a tool that listens to it, described independently:
 * what each side passes to the other, 64-bit. Each module of a program contains its own copy of NVTX. The copy calls the
 * tool's InitializeInjectionNvtx2 with a function that returns tables by number. Through one of these tables, the tool gets
 * an array of function pointers per NVTX module, and sets them to its own functions. Anything may be missing or shorter than here.
 */
#pragma once

#include "common/system.h"

enum nvtx_table { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };
enum nvtx_module { NVTX_CORE = 1, NVTX_CUDA = 2, NVTX_OPENCL = 3, NVTX_CUDART = 4, NVTX_CORE2 = 5, NVTX_SYNC = 6 };

/* Indices into the arrays, by module. Index 0 is never used. */
enum nvtx_core {
    CORE_MARK_EX = 1, CORE_MARK_A, CORE_MARK_W,
    CORE_START_EX, CORE_START_A, CORE_START_W, CORE_END,
    CORE_PUSH_EX, CORE_PUSH_A, CORE_PUSH_W, CORE_POP,
    CORE_NAME_CATEGORY_A, CORE_NAME_CATEGORY_W, CORE_NAME_THREAD_A, CORE_NAME_THREAD_W,
    CORE_PLACES,
};
enum nvtx_core2 {
    CORE2_MARK_EX = 1, CORE2_START_EX, CORE2_END, CORE2_PUSH_EX, CORE2_POP,
    CORE2_RESOURCE_CREATE, CORE2_RESOURCE_DESTROY, CORE2_NAME_CATEGORY_A, CORE2_NAME_CATEGORY_W,
    CORE2_REGISTER_STRING_A, CORE2_REGISTER_STRING_W, CORE2_DOMAIN_CREATE_A, CORE2_DOMAIN_CREATE_W, CORE2_DOMAIN_DESTROY,
    CORE2_INITIALIZE,
    CORE2_PLACES,
};
enum nvtx_cuda {
    CUDA_NAME_DEVICE_A = 1, CUDA_NAME_DEVICE_W, CUDA_NAME_CONTEXT_A, CUDA_NAME_CONTEXT_W,
    CUDA_NAME_STREAM_A, CUDA_NAME_STREAM_W, CUDA_NAME_EVENT_A, CUDA_NAME_EVENT_W,
    CUDA_PLACES,
};
enum nvtx_cudart {
    CUDART_NAME_DEVICE_A = 1, CUDART_NAME_DEVICE_W, CUDART_NAME_STREAM_A, CUDART_NAME_STREAM_W,
    CUDART_NAME_EVENT_A, CUDART_NAME_EVENT_W,
    CUDART_PLACES,
};

/* Any function; the caller casts it. A module's array contains the addresses of the program's function pointers. */
typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
    size_t size;
    int (*module_places)(int module, nvtx_function *** places, unsigned * count);
};

struct nvtx_version_info {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

typedef const void * (*nvtx_get_table)(uint32_t table);
typedef int (*nvtx_initialize)(nvtx_get_table get);

/* The tool chooses the values of handles; NULL is the default domain, or no string. */
typedef const void * nvtx_handle;

enum nvtx_message_type { NVTX_TEXT = 1, NVTX_WIDE_TEXT = 2, NVTX_REGISTERED = 3 };
enum nvtx_color_type { NVTX_NO_COLOR = 0, NVTX_ARGB = 1 };
enum nvtx_payload_type {
    NVTX_NO_PAYLOAD = 0, NVTX_U64, NVTX_I64, NVTX_F64, NVTX_U32, NVTX_I32, NVTX_F32,
    NVTX_PAYLOADS, /* the number of kinds; an extension uses much larger numbers */
};
enum { NVTX_VERSION = 3, NVTX_NO_TRACKING = -2 }; /* -2: push and pop return this if the tool does not count levels */

/*
 * The attributes of a mark or a range. `size` is the size of the program's struct, which may be older and shorter. Version 1
 * has no 32-bit payloads, and is otherwise the same.
 */
struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload; /* a 32-bit payload uses its first bytes */
    int32_t message_type, padding;
    const void * message;
};

struct nvtx_resource {
    uint16_t version, size;
    int32_t type;
    uint64_t identifier;
    int32_t message_type, padding;
    const void * message;
};

enum nvtx_resource_type { NVTX_POINTER = 0x10001, NVTX_HANDLE = 0x10002, NVTX_THREAD = 0x10003, NVTX_POSIX_THREAD = 0x10004 };

_Static_assert(offsetof(struct nvtx_attributes, payload) == 24 && sizeof(struct nvtx_attributes) == 48, "as NVTX has it");
_Static_assert(offsetof(struct nvtx_resource, message) == 24 && sizeof(struct nvtx_resource) == 32, "as NVTX has it");
