#define _GNU_SOURCE
#include "recorder/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/environment.h"
#include "recorder/cuda-api.h"
#include "recorder/recorder.h"

enum { BUFFER_BYTES = 1 << 20, FLUSH_MS = 100, END_MS = 1000 };

static struct {
    int (*Subscribe)(void ** subscriber, void (*callback)(void *, int, uint32_t, const void *), void * user);
    int (*EnableCallback)(uint32_t enable, void * subscriber, int domain, uint32_t id);
    int (*ActivityRegisterTimestampCallback)(uint64_t (*timestamp)(void));
    int (*ActivityRegisterCallbacks)(void (*request)(uint8_t **, size_t *, size_t *), void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
    int (*ActivityEnable)(int kind);
    int (*ActivityFlushAll)(uint32_t flag);
    int (*ActivityGetNextRecord)(uint8_t * buffer, size_t valid, uint8_t ** record);
    int (*ActivityGetNumDroppedRecords)(void * context, uint32_t stream, size_t * dropped);
    int (*ActivityPushExternalCorrelationId)(int kind, uint64_t id);
    int (*ActivityPopExternalCorrelationId)(int kind, uint64_t * last);
    int (*GetGraphNodeId)(void * node, uint64_t * id);
    int (*GetStreamIdEx)(void * context, void * stream, uint8_t is_per_thread, uint32_t * id);
    int (*GetResultString)(int result, const char ** text);
} cupti;

static _Atomic bool is_on;
static const struct cupti_listener * listener;

bool cupti_is_on(void) {
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

/* ---- Launches ---- */

void cupti_launch_begins(uint32_t id) {
    if (cupti_is_on()) cupti.ActivityPushExternalCorrelationId(CUPTI_CUSTOM0, id);
}

void cupti_launch_ends(void) {
    uint64_t last;
    if (cupti_is_on()) cupti.ActivityPopExternalCorrelationId(CUPTI_CUSTOM0, &last);
}

uint32_t cupti_stream(uint32_t device, void * stream) {
    static __thread struct { void * stream; uint32_t device, id; } latest;
    if (latest.id && latest.stream == stream && latest.device == device) return latest.id;
    uint32_t id = 0;
    if (!cupti_is_on() || cupti.GetStreamIdEx(NULL, stream, 0, &id) != 0) return (uint32_t) (uintptr_t) stream & 0xffff;
    latest.stream = stream;
    latest.device = device;
    latest.id = id;
    return id;
}

/* ---- Graphs ---- */

static void on_resource(void * user, int domain, uint32_t id, const void * data) {
    (void) user;
    if (domain != CUPTI_RESOURCE) return;
    const struct cupti_graph_data * graph = ((const struct cupti_resource *) data)->graph;
    uint64_t node, original;
    if (cupti.GetGraphNodeId(graph->node, &node) != 0) return;
    if (id == CUPTI_NODE_CREATED) listener->created(node);
    else if (cupti.GetGraphNodeId(graph->original_node, &original) == 0) listener->cloned(original, node);
}

static void request_buffer(uint8_t ** buffer, size_t * size, size_t * most) {
    *most = 0;
    *size = BUFFER_BYTES;
    *buffer = NULL;
    void * memory;
    if (posix_memalign(&memory, 8, BUFFER_BYTES) == 0) *buffer = memory;
    else *size = 0;
}

static void take_buffer(void * context, uint32_t stream, uint8_t * buffer, size_t size, size_t valid) {
    (void) size;
    size_t dropped = 0;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) != 0) dropped = 0;
    pthread_mutex_lock(&lock);
    listener->take(buffer, valid, dropped);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

bool cupti_next(uint8_t * buffer, size_t valid, uint8_t ** record) {
    return cupti.ActivityGetNextRecord(buffer, valid, record) == 0;
}

/* ---- Begin and end ---- */

static uint64_t timestamp(void) {
    return clock_now();
}

static void missing(const char * why) {
    struct ggtrace * log = recorder_log();
    if (log) ggtrace_fact(log, "gpu.missing", why);
}

static void * load(void) {
    static const char * const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so"};
    const char * path = environment(ENV_CUPTI);
    if (path) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void * library = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !library; i++) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

#define FIND(name) (*(void **) &cupti.name = dlsym(library, "cupti" #name))

static bool find_functions(void * library) {
    return FIND(Subscribe) && FIND(EnableCallback) && FIND(ActivityRegisterTimestampCallback) && FIND(ActivityRegisterCallbacks) &&
        FIND(ActivityEnable) && FIND(ActivityFlushAll) && FIND(ActivityGetNextRecord) && FIND(ActivityGetNumDroppedRecords) &&
        FIND(ActivityPushExternalCorrelationId) && FIND(ActivityPopExternalCorrelationId) && FIND(GetGraphNodeId) && FIND(GetStreamIdEx) &&
        FIND(GetResultString);
}

/* The thread that asks CUPTI for what is complete. */
static pthread_mutex_t flush_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t flush_wakes = PTHREAD_COND_INITIALIZER, flush_ends = PTHREAD_COND_INITIALIZER;
static enum { FLUSH_RUNS, FLUSH_LAST, FLUSH_OVER } flush_state;

static struct timespec after(uint32_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t ns = (uint64_t) until.tv_nsec + (uint64_t) ms * 1000000;
    until.tv_sec += (time_t) (ns / 1000000000);
    until.tv_nsec = (long) (ns % 1000000000);
    return until;
}

static void * flush(void * unused) {
    (void) unused;
    pthread_mutex_lock(&flush_lock);
    while (flush_state == FLUSH_RUNS) {
        const struct timespec until = after(FLUSH_MS);
        pthread_cond_timedwait(&flush_wakes, &flush_lock, &until);
        pthread_mutex_unlock(&flush_lock);
        cupti.ActivityFlushAll(flush_state != FLUSH_RUNS);
        pthread_mutex_lock(&flush_lock);
    }
    listener->end();
    flush_state = FLUSH_OVER;
    pthread_cond_signal(&flush_ends);
    pthread_mutex_unlock(&flush_lock);
    return NULL;
}

static bool start_thread(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_there = pthread_create(&thread, NULL, flush, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_there) pthread_detach(thread);
    return is_there;
}

static const char * start(void) {
    void * library = load(), * subscriber;
    if (!library) return "times of CUDA's devices: NVIDIA's CUPTI is not installed (libcupti.so, part of the CUDA toolkit)";
    if (!find_functions(library)) return "times of CUDA's devices: this CUPTI is older than 11.6";
    const int result = cupti.Subscribe(&subscriber, on_resource, NULL);
    if (result == CUPTI_BUSY) return "times of CUDA's devices: another profiler uses CUPTI (nsys, ncu, the program itself)";
    if (result != 0) return "times of CUDA's devices: CUPTI cannot be used (no driver, or no permission)";
    cupti.EnableCallback(1, subscriber, CUPTI_RESOURCE, CUPTI_NODE_CREATED);
    cupti.EnableCallback(1, subscriber, CUPTI_RESOURCE, CUPTI_NODE_CLONED);
    if (cupti.ActivityRegisterTimestampCallback(timestamp) != 0) return "times of CUDA's devices: CUPTI's clock cannot be set";
    cupti.ActivityRegisterCallbacks(request_buffer, take_buffer);
    static const int kinds[] = {CUPTI_RUNTIME, CUPTI_EXTERNAL, CUPTI_KERNEL, CUPTI_MEMCPY, CUPTI_MEMSET};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (cupti.ActivityEnable(kinds[i]) != 0) return "times of CUDA's devices: CUPTI does not record this device's kernels";
    }
    if (!start_thread()) return "times of CUDA's devices: no thread can be started";
    atomic_store(&is_on, true);
    return NULL;
}

void cupti_start(const struct cupti_listener * own) {
    static _Atomic bool is_tried;
    if (atomic_exchange(&is_tried, true)) return;
    listener = own;
    const char * problem = start();
    if (problem) missing(problem);
}

void cupti_finish(void) {
    if (!atomic_exchange(&is_on, false)) return;
    const struct timespec until = after(END_MS);
    pthread_mutex_lock(&flush_lock);
    flush_state = FLUSH_LAST;
    pthread_cond_signal(&flush_wakes);
    int error = 0;
    while (flush_state != FLUSH_OVER && !error) error = pthread_cond_timedwait(&flush_ends, &flush_lock, &until);
    pthread_mutex_unlock(&flush_lock);
    if (error) missing("the last times of CUDA's devices: CUPTI did not return within a second");
}
