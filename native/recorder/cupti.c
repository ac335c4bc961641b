#include "recorder/cupti.h"

#include "common/clock.h"
#include "common/environment.h"
#include "recorder/cuda-api.h"
#include "recorder/cuda-thread.h"
#include "recorder/recorder.h"

enum { BUFFER_BYTES = 1 << 20 };

static struct {
    int (*Subscribe)(void ** subscriber, void (*callback)(void *, int, uint32_t, const void *), void * user);
    int (*EnableCallback)(uint32_t enable, void * subscriber, int domain, uint32_t id);
    int (*ActivityRegisterTimestampCallback)(uint64_t (*timestamp)(void));
    int (*ActivityRegisterCallbacks)(void (*request)(uint8_t **, size_t *, size_t *), void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
    int (*Unsubscribe)(void * subscriber);
    int (*ActivityEnable)(int kind);
    int (*ActivityDisable)(int kind);
    int (*ActivityEnableDriverApi)(uint32_t id, uint8_t enable); /* since 12.8; NULL: not there */
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

uint32_t cupti_stream(void * stream) {
    uint32_t id = 0;
    return cupti.GetStreamIdEx(NULL, stream, 0, &id) == 0 ? id : 0;
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

static pthread_mutex_t take_lock = PTHREAD_MUTEX_INITIALIZER;

static void take_buffer(void * context, uint32_t stream, uint8_t * buffer, size_t size, size_t valid) {
    (void) size;
    size_t dropped = 0;
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) != 0) dropped = 0;
    pthread_mutex_lock(&take_lock);
    listener->take(buffer, valid, dropped);
    pthread_mutex_unlock(&take_lock);
    free(buffer);
}

bool cupti_next(uint8_t * buffer, size_t valid, uint8_t ** record) {
    return cupti.ActivityGetNextRecord(buffer, valid, record) == 0;
}

/* ---- Begin and end ---- */

static uint64_t timestamp(void) {
    return clock_now();
}

void cupti_missing(const char * why) {
    struct ggtrace * log = recorder_log();
    if (log) ggtrace_fact(log, "gpu.missing", why);
}

#define FIND(name) (*(void **) &cupti.name = dlsym(library, "cupti" #name))

static bool find_functions(void * library) {
    FIND(ActivityEnableDriverApi);
    return FIND(Subscribe) && FIND(Unsubscribe) && FIND(EnableCallback) && FIND(ActivityRegisterTimestampCallback) && FIND(ActivityRegisterCallbacks) &&
        FIND(ActivityEnable) && FIND(ActivityDisable) && FIND(ActivityFlushAll) && FIND(ActivityGetNextRecord) && FIND(ActivityGetNumDroppedRecords) &&
        FIND(ActivityPushExternalCorrelationId) && FIND(ActivityPopExternalCorrelationId) && FIND(GetGraphNodeId) && FIND(GetStreamIdEx) &&
        FIND(GetResultString);
}

/* Of the recorder's thread. */
static void ask(bool is_last) {
    cupti.ActivityFlushAll(is_last);
    if (!is_last) return;
    pthread_mutex_lock(&take_lock);
    listener->end();
    pthread_mutex_unlock(&take_lock);
}

static const int kinds[] = {CUPTI_RUNTIME, CUPTI_EXTERNAL, CUPTI_KERNEL, CUPTI_MEMCPY, CUPTI_MEMCPY2, CUPTI_MEMSET};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* `enabled`: the number of kinds that are. */
static const char * record(void * subscriber, size_t * enabled) {
    cupti.EnableCallback(1, subscriber, CUPTI_RESOURCE, CUPTI_NODE_CREATED);
    cupti.EnableCallback(1, subscriber, CUPTI_RESOURCE, CUPTI_NODE_CLONED);
    if (cupti.ActivityRegisterTimestampCallback(timestamp) != 0) return "times of CUDA's devices: CUPTI's clock cannot be set";
    cupti.ActivityRegisterCallbacks(request_buffer, take_buffer);
    for (; *enabled < KINDS; ++*enabled) {
        if (cupti.ActivityEnable(kinds[*enabled]) != 0) return "times of CUDA's devices: CUPTI does not record this device's kernels";
    }
    if (cupti.ActivityEnableDriverApi) { /* by these cuBLAS launches */
        cupti.ActivityEnableDriverApi(CUPTI_LAUNCH_KERNEL, 1);
        cupti.ActivityEnableDriverApi(CUPTI_LAUNCH_KERNEL_EX, 1);
    }
    return cuda_thread_start(ask) ? NULL : "times of CUDA's devices: no thread can be started";
}

/* Begins with a CUPTI, or returns why not; `is_only`: no other will be better. */
static const char * use(void * library, bool * is_only) {
    void * subscriber;
    if (!find_functions(library)) return "times of CUDA's devices: this CUPTI is older than 11.6";
    const int result = cupti.Subscribe(&subscriber, on_resource, NULL);
    *is_only = result == CUPTI_BUSY || result == 0;
    if (result == CUPTI_BUSY) return "times of CUDA's devices: another profiler uses CUPTI (nsys, ncu, the program itself)";
    if (result != 0) return "times of CUDA's devices: CUPTI cannot be used (no driver, or no permission)";
    size_t enabled = 0;
    const char * problem = record(subscriber, &enabled);
    if (!problem) return NULL;
    while (enabled > 0) cupti.ActivityDisable(kinds[--enabled]);
    cupti.Unsubscribe(subscriber);
    return problem;
}

static const char * start(void) {
    static const char * const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so"};
    const char * const chosen = environment(ENV_CUPTI), * const * paths = chosen ? &chosen : names;
    const size_t count = chosen ? 1 : sizeof(names) / sizeof(*names);
    for (size_t i = 0; i < count && !chosen; i++) {
        if (dlopen(paths[i], RTLD_NOW | RTLD_NOLOAD)) return "times of CUDA's devices: the program itself has loaded CUPTI (--cupti <path> uses it anyway)";
    }
    const char * problem = "times of CUDA's devices: NVIDIA's CUPTI is not installed (libcupti.so, part of the CUDA toolkit)";
    bool is_only = false;
    for (size_t i = 0; i < count && !is_only; i++) {
        void * library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
        if (library) problem = use(library, &is_only);
    }
    if (!problem) atomic_store(&is_on, true);
    return problem;
}

const char * cupti_start(const struct cupti_listener * own) {
    listener = own;
    return start();
}

void cupti_forked(void) {
    atomic_store(&is_on, false);
}

void cupti_finish(void) {
    if (!atomic_exchange(&is_on, false)) return;
    if (!cuda_thread_finish()) cupti_missing("the last times of CUDA's devices: CUPTI did not return within a second");
}
