/* Work of a GPU: its queues, what was submitted to them, and when it ran. */
#pragma once

#include "ggtrace-nvtx.h"
#include "ggtrace-requests.h"

/* `what` of a GPU_WORK, a GPU_WAIT: docs/reference/ggtrace-format.md explains them. */
enum ggtrace_gpu_work { GGTRACE_GPU_OPERATOR, GGTRACE_GPU_COPY, GGTRACE_GPU_FILL, GGTRACE_GPU_GRAPH };
enum ggtrace_gpu_wait { GGTRACE_WAIT_FENCES, GGTRACE_WAIT_SEMAPHORES, GGTRACE_WAIT_QUEUE, GGTRACE_WAIT_DEVICE,
                        GGTRACE_WAIT_CUDA_STREAM, GGTRACE_WAIT_CUDA_EVENT, GGTRACE_WAIT_CUDA_DEVICE,
                        GGTRACE_WAIT_HIP_STREAM, GGTRACE_WAIT_HIP_EVENT, GGTRACE_WAIT_HIP_DEVICE,
                        GGTRACE_CUDA_CAPTURE, GGTRACE_CUDA_INSTANTIATE, GGTRACE_CUDA_UPDATE,
                        GGTRACE_HIP_CAPTURE, GGTRACE_HIP_INSTANTIATE, GGTRACE_HIP_UPDATE };
enum ggtrace_gpu_api { GGTRACE_API_VULKAN, GGTRACE_API_CUDA, GGTRACE_API_HIP };
/* `flags` of a CUDA stream: its times are those of events, so they are of spans on the stream, not of kernels. */
enum { GGTRACE_CUDA_BY_EVENTS = 1 };

/* The structures have the fields of the record, after its first word. */
struct ggtrace_gpu_queue {
    uint32_t id, device, name, family, index, flags, bits, api; /* bits: of a timestamp; 0: it has none; api: enum ggtrace_gpu_api */
    double period; /* ns per tick */
};

struct ggtrace_gpu_work_record {
    uint64_t start, end; /* end: 0: the times are unknown, and start is that of its submission, whose record follows */
    uint32_t submission, queue, what, tensor, last, call, graph, kernel, dispatches, part;
    /* last: of the fused nodes; 0: one node. part: 0, or more if it continues a node of another command buffer */
    uint64_t bytes;
};

struct ggtrace_gpu_submission {
    uint64_t start, end; /* of the function that submits */
    uint32_t id, queue, buffers, works, call, graph;
};

struct ggtrace_gpu_complete {
    uint64_t seen, start, end; /* when the host knew that it was complete; the device's times of its command buffers, 0: unknown */
    uint32_t submission, queue;
};

struct ggtrace_gpu_pipeline {
    uint64_t start, end;
    uint32_t name, count;
};

struct ggtrace_gpu_wait_record {
    uint64_t start, end;
    uint32_t what, device, call, reserved; /* what: enum ggtrace_gpu_wait */
};

struct ggtrace_gpu_clock {
    uint64_t time, ticks, deviation;
    int64_t late;
    uint32_t device, reserved;
};

GGTRACE_SIZE(ggtrace_gpu_queue, 44 - 4);
GGTRACE_SIZE(ggtrace_gpu_work_record, 68 - 4);
GGTRACE_SIZE(ggtrace_gpu_submission, 44 - 4);
GGTRACE_SIZE(ggtrace_gpu_complete, 36 - 4);
GGTRACE_SIZE(ggtrace_gpu_pipeline, 28 - 4);
GGTRACE_SIZE(ggtrace_gpu_wait_record, 36 - 4);
GGTRACE_SIZE(ggtrace_gpu_clock, 44 - 4);

GGTRACE_INLINE void ggtrace_define_gpu_queue(struct ggtrace * log, const struct ggtrace_gpu_queue * queue) {
    uint32_t words[sizeof(*queue) / 4];
    memcpy(words, queue, sizeof(*queue));
    ggtrace_define_numbers(log, GGTRACE_GPU_QUEUE, words, sizeof(words) / 4);
}

GGTRACE_WRITES(ggtrace_gpu_work, ggtrace_gpu_work_record, GGTRACE_GPU_WORK, start)
GGTRACE_WRITES(ggtrace_gpu_submission, ggtrace_gpu_submission, GGTRACE_GPU_SUBMISSION, start)
GGTRACE_WRITES(ggtrace_gpu_complete, ggtrace_gpu_complete, GGTRACE_GPU_COMPLETE, seen)
GGTRACE_WRITES(ggtrace_gpu_pipeline, ggtrace_gpu_pipeline, GGTRACE_GPU_PIPELINE, start)
GGTRACE_WRITES(ggtrace_gpu_wait, ggtrace_gpu_wait_record, GGTRACE_GPU_WAIT, start)
GGTRACE_WRITES(ggtrace_gpu_clock, ggtrace_gpu_clock, GGTRACE_GPU_CLOCK, time)
