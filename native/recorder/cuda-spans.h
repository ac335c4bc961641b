/* Spans between two events on a stream: of nodes, and of graph runs. They are written to the log when the device has completed them. */
#pragma once

#include "common/system.h"
#include "recorder/cuda-launched.h"

struct cuda_span {
    struct cuda_span * next;
    void * begin, * end; /* events */
    struct cuda_operator operator;
    uint32_t device, queue, what, launch, call; /* what: enum ggtrace_gpu_work */
    bool shares_begin; /* it is the end of another span */
    bool is_failed; /* CUDA refused an event of it */
    _Atomic bool is_ready; /* its end and its operator are known */
};

/* A span that is written once; NULL: too many are not complete. From then on, only cuda_span_ready gives it away. */
struct cuda_span * cuda_span_take(uint32_t device);
void cuda_span_ready(struct cuda_span * span);

/* Spans of what is captured: they are written after each replay of its graph. NULL: there is no room. */
struct cuda_spans;
struct cuda_spans * cuda_spans_new(uint32_t device);
struct cuda_span * cuda_spans_add(struct cuda_spans * spans);

/* They are those of a graph that can be launched, no longer those that it had; NULL: it has none any more. Captured ones without a graph are of no use. */
void cuda_spans_adopt(struct cuda_spans * spans, const void * exec);
void cuda_spans_drop_unused(struct cuda_spans * spans);

/*
 * The graph is about to be launched: its events are recorded again, so what they are of the launch before is read now, if that is complete, else
 * lost. Returns the number of its spans, 0 if they are not known. And it was launched, for a call that is recorded.
 */
uint32_t cuda_spans_begin(const void * exec);
void cuda_spans_end(const void * exec, void * stream, uint32_t launch);

/* Of the recorder's thread: writes what is complete, and the losses; what is not complete for the last time is lost. Returns how many spans are not complete. */
uint32_t cuda_spans_read(bool is_last);
