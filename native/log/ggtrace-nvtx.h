/* NVTX records (docs/reference/ggtrace-format.md) and the functions that write them, as in ggtrace.h. */
#pragma once

#include "ggtrace.h"

/* All of a push or a mark; a start also has `range`. Type numbers are those of NVTX. */
struct ggtrace_nvtx_record {
    uint32_t head;
    uint64_t time;
    uint32_t domain, message, category, color;
    uint16_t color_type, payload_type;
    uint64_t payload, range;
} GGTRACE_RECORD;
struct ggtrace_nvtx_pop_record { uint32_t head; uint64_t time; uint32_t domain; } GGTRACE_RECORD;
struct ggtrace_nvtx_end_record { uint32_t head; uint64_t time, range; } GGTRACE_RECORD;
struct ggtrace_nvtx_named_record { uint32_t head; uint64_t time, handle; uint32_t what, name; } GGTRACE_RECORD;

/* Objects that a program gives names to. */
enum ggtrace_named {
    GGTRACE_CU_DEVICE, GGTRACE_CU_CONTEXT, GGTRACE_CU_STREAM, GGTRACE_CU_EVENT,
    GGTRACE_CUDA_DEVICE, GGTRACE_CUDA_STREAM, GGTRACE_CUDA_EVENT, GGTRACE_RESOURCE,
};

GGTRACE_SIZE(ggtrace_nvtx_record, 48);
GGTRACE_AT(ggtrace_nvtx_record, color_type, 28);
GGTRACE_AT(ggtrace_nvtx_record, payload, 32);
GGTRACE_SIZE(ggtrace_nvtx_pop_record, 16);
GGTRACE_SIZE(ggtrace_nvtx_end_record, 20);
GGTRACE_SIZE(ggtrace_nvtx_named_record, 28);

/* Definitions that consist of numbers only: NVTX_DOMAIN (id, name), NVTX_CATEGORY (domain, number, name), THREAD (tid, name). */
bool ggtrace_define_numbers(struct ggtrace * log, enum ggtrace_type type, const uint32_t * numbers, uint32_t count);

/* type: GGTRACE_NVTX_PUSH, GGTRACE_NVTX_START or GGTRACE_NVTX_MARK. */
GGTRACE_INLINE void ggtrace_nvtx(struct ggtrace_writer * writer, enum ggtrace_type type,
                                 const struct ggtrace_nvtx_record * event) {
    const uint32_t size = type == GGTRACE_NVTX_START ? sizeof(*event) : offsetof(struct ggtrace_nvtx_record, range);
    uint8_t * record = ggtrace_begin(writer, size, event->time);
    if (GGTRACE_UNLIKELY(!record)) return;
    memcpy(record + 4, (const uint8_t *) event + 4, size - 4);
    ggtrace_commit(writer, record, type, size);
}

GGTRACE_INLINE void ggtrace_nvtx_pop(struct ggtrace_writer * writer, uint64_t time, uint32_t domain) {
    GGTRACE_WRITE(writer, time, GGTRACE_NVTX_POP, ggtrace_nvtx_pop_record, .time = time, .domain = domain);
}

GGTRACE_INLINE void ggtrace_nvtx_end(struct ggtrace_writer * writer, uint64_t time, uint64_t range) {
    GGTRACE_WRITE(writer, time, GGTRACE_NVTX_END, ggtrace_nvtx_end_record, .time = time, .range = range);
}

GGTRACE_INLINE void ggtrace_nvtx_named(struct ggtrace_writer * writer, uint64_t time, enum ggtrace_named what,
                                       uint64_t handle, uint32_t name) {
    GGTRACE_WRITE(writer, time, GGTRACE_NVTX_NAMED, ggtrace_nvtx_named_record, .time = time, .handle = handle,
                  .what = (uint32_t) what, .name = name);
}
