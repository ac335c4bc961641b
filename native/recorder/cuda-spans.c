#include "recorder/cuda-spans.h"

#include "common/clock.h"
#include "common/hold.h"
#include "common/table.h"
#include "recorder/calls.h"
#include "recorder/cuda-times.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

/* IN_LINE_MAX: as many are looked at although they are not complete: streams end in another order. */
enum { SPANS_MAX = 1 << 15, CAPTURED_MAX = 1 << 12, GRAPHS_MAX = 1 << 10, IN_LINE_MAX = 64 };

struct cuda_spans {
    pthread_mutex_t lock; /* of a launch, and while it is read */
    struct cuda_span * all;
    uint32_t count, device, launch, call;
    const void * exec; /* NULL: not that of a graph that can be launched */
    void * done; /* event behind the latest launch */
    bool is_taken, is_pending;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_span * spare, * made, * first, ** last = &first; /* not written yet: from first on */
static uint32_t made_count;
static struct cuda_spans graphs[GRAPHS_MAX];
static _Atomic uint32_t graphs_count;

/* Numbers of spans since the last report. */
enum { LOST_TOO_MANY, LOST_CAPTURED, LOST_REPLAYED, LOST_WITHOUT_TIMES, LOST_AT_END, LOSSES };
static _Atomic uint32_t losses[LOSSES];

static void lose(int why, uint32_t count) {
    atomic_fetch_add_explicit(&losses[why], count, memory_order_relaxed);
}

static void report_losses(struct ggtrace_writer * writer) {
    static const char * const reasons[LOSSES] = {
        [LOST_TOO_MANY] = "work of a GPU: too many events are not complete",
        [LOST_CAPTURED] = "work of a GPU: a CUDA graph has too many nodes to time them by events",
        [LOST_REPLAYED] = "work of a GPU: a CUDA graph was launched again before its events were complete",
        [LOST_WITHOUT_TIMES] = "work of a GPU: events without a time",
        [LOST_AT_END] = "work of a GPU: events that were not complete when the program ended",
    };
    for (int i = 0; i < LOSSES; i++) {
        const uint32_t count = atomic_exchange_explicit(&losses[i], 0, memory_order_relaxed);
        if (count) ggtrace_loss(writer, clock_now(), count, registry_name(reasons[i]));
    }
}

/* ---- Writing ---- */

static void write_span(struct ggtrace_writer * writer, const struct cuda_span * span, uint32_t launch, uint32_t call) {
    const struct cuda_operator * operator = &span->operator;
    if (span->what == GGTRACE_GPU_OPERATOR && !operator->tensor) return; /* --ops */
    const uint64_t start = span->is_failed ? 0 : cuda_event_time(span->device, span->begin);
    const uint64_t end = start ? cuda_event_time(span->device, span->end) : 0;
    if (end < start || !end) {
        lose(LOST_WITHOUT_TIMES, 1);
        return;
    }
    ggtrace_gpu_work(writer, &(struct ggtrace_gpu_work_record){
        .start = start,
        .end = end,
        .submission = launch,
        .queue = span->queue,
        .what = span->what,
        .tensor = operator->tensor,
        .last = operator->last,
        .call = call,
        .graph = operator->graph,
        .part = operator->part,
    });
}

/* ---- Spans that are written once ---- */

struct cuda_span * cuda_span_take(uint32_t device) {
    HOLD(&lock);
    struct cuda_span * span = spare;
    if (span) spare = span->next;
    else if ((made || (made = reserve(SPANS_MAX * sizeof(*made)))) && made_count < SPANS_MAX) span = &made[made_count++];
    if (!span) {
        lose(LOST_TOO_MANY, 1);
        return NULL;
    }
    *span = (struct cuda_span){.device = device};
    *last = span;
    last = &span->next;
    return span;
}

void cuda_span_ready(struct cuda_span * span) {
    atomic_store_explicit(&span->is_ready, true, memory_order_release);
}

static bool is_complete(const struct cuda_span * span) {
    return span->is_failed || cuda_event_state(span->end) != CUDA_EVENT_OPEN;
}

static void give_back(struct cuda_span * span) {
    if (!span->shares_begin) cuda_event_give(span->device, span->begin);
    cuda_event_give(span->device, span->end);
}

/* Of the recorder's thread. Those that are not complete are in line again, before those that came meanwhile. */
static uint32_t read_line(struct ggtrace_writer * writer) {
    pthread_mutex_lock(&lock);
    struct cuda_span * span = first, * done = NULL, * waiting = NULL, ** waiting_end = &waiting;
    first = NULL;
    last = &first;
    pthread_mutex_unlock(&lock);
    uint32_t open = 0;
    while (span) {
        struct cuda_span * const next = span->next;
        if (open < IN_LINE_MAX && atomic_load_explicit(&span->is_ready, memory_order_acquire) && is_complete(span)) {
            write_span(writer, span, span->launch, span->call);
            give_back(span);
            span->next = done;
            done = span;
        } else {
            open++;
            *waiting_end = span;
            waiting_end = &span->next;
        }
        span = next;
    }
    HOLD(&lock);
    *waiting_end = first;
    if (!first && waiting) last = waiting_end;
    if (waiting) first = waiting;
    while (done) {
        struct cuda_span * const next = done->next;
        done->next = spare;
        spare = done;
        done = next;
    }
    return open;
}

/* ---- Spans of graphs ---- */

struct cuda_spans * cuda_spans_new(uint32_t device) {
    HOLD(&lock);
    uint32_t i = 0;
    while (i < GRAPHS_MAX && graphs[i].is_taken) i++;
    struct cuda_spans * spans = i < GRAPHS_MAX ? &graphs[i] : NULL;
    if (!spans || !(spans->all || (spans->all = reserve(CAPTURED_MAX * sizeof(*spans->all))))) return NULL;
    if (i == graphs_count) {
        pthread_mutex_init(&spans->lock, NULL);
        atomic_store(&graphs_count, i + 1);
    }
    spans->is_taken = true;
    spans->is_pending = false;
    spans->device = device;
    spans->exec = NULL;
    spans->count = 0;
    return spans;
}

struct cuda_span * cuda_spans_add(struct cuda_spans * spans) {
    if (spans->count == CAPTURED_MAX) {
        lose(LOST_CAPTURED, 1);
        return NULL;
    }
    struct cuda_span * span = &spans->all[spans->count++];
    *span = (struct cuda_span){.device = spans->device};
    return span;
}

/* Under its lock. Writes the spans of the latest launch, if they are not written yet. */
static bool read_replay(struct cuda_spans * spans) {
    if (!spans->is_pending) return true;
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    const bool is_done = cuda_event_state(spans->done) == CUDA_EVENT_COMPLETE;
    for (uint32_t i = 0; writer && is_done && i < spans->count; i++) write_span(writer, &spans->all[i], spans->launch, spans->call);
    if (is_done) spans->is_pending = false;
    return is_done;
}

/* Under its lock. Events that the device may still record are not used again. */
static void release(struct cuda_spans * spans) {
    const bool is_done = read_replay(spans);
    if (!is_done) lose(LOST_REPLAYED, spans->count);
    for (uint32_t i = 0; is_done && i < spans->count; i++) give_back(&spans->all[i]);
    spans->exec = NULL;
    spans->count = 0;
    spans->is_pending = spans->is_taken = false;
}

static struct cuda_spans * spans_of(const void * exec) {
    const uint32_t count = atomic_load(&graphs_count);
    for (uint32_t i = 0; i < count; i++) if (__atomic_load_n(&graphs[i].exec, __ATOMIC_ACQUIRE) == exec) return &graphs[i];
    return NULL;
}

void cuda_spans_drop_unused(struct cuda_spans * spans) {
    if (!spans || spans->exec) return;
    HOLD(&spans->lock);
    release(spans);
}

void cuda_spans_adopt(struct cuda_spans * spans, const void * exec) {
    struct cuda_spans * before = spans_of(exec);
    if (before == spans) return;
    if (before) {
        HOLD(&before->lock);
        release(before);
    }
    if (spans) __atomic_store_n(&spans->exec, exec, __ATOMIC_RELEASE);
}

uint32_t cuda_spans_begin(const void * exec) {
    struct cuda_spans * spans = spans_of(exec);
    if (!spans) return 0;
    HOLD(&spans->lock);
    if (!read_replay(spans)) lose(LOST_REPLAYED, spans->count);
    spans->is_pending = false;
    return spans->count;
}

void cuda_spans_end(const void * exec, void * stream, uint32_t launch) {
    struct cuda_spans * spans = spans_of(exec);
    if (!spans) return;
    HOLD(&spans->lock);
    if (!spans->done) spans->done = cuda_event_take(spans->device);
    spans->launch = launch;
    spans->call = calls_current();
    spans->is_pending = cuda_event_record(spans->done, stream, false);
    if (!spans->is_pending) lose(LOST_WITHOUT_TIMES, spans->count);
}

uint32_t cuda_spans_read(bool is_last) {
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (!writer) return 0;
    uint32_t open = read_line(writer);
    for (uint32_t i = 0; i < graphs_count; i++) {
        HOLD(&graphs[i].lock);
        if (!read_replay(&graphs[i])) open += graphs[i].count;
    }
    if (is_last) lose(LOST_AT_END, open);
    report_losses(writer);
    return open;
}
