#include "common/system.h"
#include "recorder/cuda-records.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/table.h"
#include "recorder/cuda-api.h"
#include "recorder/cuda-devices.h"
#include "recorder/cuda-names.h"
#include "recorder/cuda-work.h"
#include "recorder/cupti.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

enum { CORRELATIONS = 1 << 16, WAITING_MAX = 1 << 17 };
#define WAIT_NS 500000000ull /* for its launch */

/* A record of work, and whose launch it is, as far as that is known. */
struct work {
    uint32_t kind, device, stream, correlation;
    uint32_t kernel, shape; /* ids of names; of a copy: its kind */
    uint64_t start, end, bytes, node, taken;
};

static struct { uint32_t correlation, launch; } * correlations;
static struct work * waiting;
static uint32_t waiting_count;
static struct { uint64_t without_times, without_launch; } counts;

static uint32_t u32(const uint8_t * at) {
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t u64(const uint8_t * at) {
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

#define READ(of) (struct work){                                                                           \
    .kind = kind, .device = u32(record + of##_DEVICE), .stream = u32(record + of##_STREAM),               \
    .correlation = u32(record + of##_CORRELATION), .start = u64(record + of##_START),                     \
    .end = u64(record + of##_END), .node = u64(record + of##_NODE)}

static bool read_work(const uint8_t * record, struct work * work) {
    const uint32_t kind = u32(record);
    if (kind == CUPTI_KERNEL) {
        const char * name;
        memcpy(&name, record + KERNEL_NAME, sizeof(name));
        *work = READ(KERNEL);
        work->kernel = name ? cuda_kernel_name(name) : 0;
        work->shape = cuda_shape_name((const uint32_t *) (record + KERNEL_GRID));
    } else if (kind == CUPTI_MEMCPY || kind == CUPTI_MEMCPY2) {
        *work = kind == CUPTI_MEMCPY ? READ(MEMCPY) : READ(MEMCPY2);
        work->kind = CUPTI_MEMCPY;
        work->bytes = u64(record + MEMCPY_BYTES);
        work->shape = record[MEMCPY_KIND];
    } else if (kind == CUPTI_MEMSET) {
        *work = READ(MEMSET);
        work->bytes = u64(record + MEMSET_BYTES);
    } else return false;
    return true;
}

/* Writes a record, if its launch is known, or if it must not wait; false: it waits. */
static bool write_work(struct ggtrace_writer * writer, const struct work * work, bool may_wait) {
    struct cuda_launched launched = {.call = GGTRACE_NO_CALL};
    const uint32_t slot = work->correlation % CORRELATIONS;
    const bool is_correlated = correlations[slot].correlation == work->correlation;
    const uint32_t id = is_correlated ? correlations[slot].launch : 0;
    if (is_correlated && !id) return true; /* of no recorded call */
    if (work->start == 0 || work->end < work->start) {
        counts.without_times++;
        return true;
    }
    bool is_open = false;
    const bool is_known = id && cuda_launched(id, &launched, &is_open);
    if (!is_known && (is_open || !is_correlated) && may_wait) return false;
    counts.without_launch += !is_known;
    if (work->node) {
        launched.operator = (struct cuda_operator){0};
        cuda_node_operator(work->node, &launched.operator);
    }
    const uint32_t what = work->kind == CUPTI_KERNEL ? GGTRACE_GPU_OPERATOR : work->kind == CUPTI_MEMCPY ? GGTRACE_GPU_COPY : GGTRACE_GPU_FILL;
    ggtrace_gpu_work(writer, &(struct ggtrace_gpu_work_record){
        .start = work->start,
        .end = work->end,
        .submission = is_known ? id : 0,
        .queue = cuda_queue(work->device, work->stream),
        .what = what,
        .tensor = launched.operator.tensor,
        .last = launched.operator.last,
        .call = launched.call,
        .graph = launched.operator.graph ? launched.operator.graph : launched.graph,
        .kernel = work->kernel,
        .dispatches = work->shape,
        .part = launched.operator.part,
        .bytes = work->bytes,
    });
    return true;
}

/* Memory for what waits; false: there is none. */
static bool has_room(void) {
    if (!correlations) correlations = reserve(CORRELATIONS * sizeof(*correlations));
    if (!waiting) waiting = reserve(WAITING_MAX * sizeof(*waiting));
    return correlations && waiting;
}

static void write_waiting(struct ggtrace_writer * writer, bool is_last) {
    const uint64_t now = clock_now();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < waiting_count; i++) {
        const struct work work = waiting[i];
        if (!write_work(writer, &work, !is_last && now - work.taken < WAIT_NS)) waiting[kept++] = work;
    }
    waiting_count = kept;
}

static void lose(struct ggtrace_writer * writer, size_t count, const char * why) {
    if (count) ggtrace_loss(writer, clock_now(), (uint32_t) count, registry_name(why));
}

static void take(uint8_t * buffer, size_t valid, size_t dropped) {
    struct ggtrace_writer * writer = recording.log && has_room() ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (!writer) return;
    lose(writer, dropped, "work of a GPU: CUPTI dropped records of it");
    /* External ids first: CUPTI does not order records of different kinds. */
    uint8_t * record = NULL;
    while (cupti_next(buffer, valid, &record)) {
        if (u32(record) != CUPTI_EXTERNAL || u32(record + EXTERNAL_KIND) != CUPTI_CUSTOM0) continue;
        const uint32_t correlation = u32(record + EXTERNAL_CORRELATION);
        correlations[correlation % CORRELATIONS].correlation = correlation;
        correlations[correlation % CORRELATIONS].launch = (uint32_t) u64(record + EXTERNAL_ID);
    }
    write_waiting(writer, false);
    record = NULL;
    struct work work;
    size_t too_many = 0;
    const uint64_t now = clock_now();
    while (cupti_next(buffer, valid, &record)) {
        if (!read_work(record, &work) || write_work(writer, &work, true)) continue;
        work.taken = now;
        if (waiting_count < WAITING_MAX) waiting[waiting_count++] = work;
        else too_many++;
    }
    lose(writer, too_many, "work of a GPU: too much of it waits for its launch");
}

static void count(const char * key, uint64_t number) {
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long) number);
    if (number) ggtrace_fact(recording.log, key, text);
}

/* What still waits is written without its launch. */
static void end(void) {
    struct ggtrace_writer * writer = recording.log ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (!writer) return;
    write_waiting(writer, true);
    count("gpu.without_times", counts.without_times);
    count("gpu.without_launch", counts.without_launch);
}

const char * cuda_records_start(void) {
    static const struct cupti_listener listener = {cuda_node_created, cuda_node_cloned, take, end};
    return cupti_start(&listener);
}
