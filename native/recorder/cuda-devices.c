#include "recorder/cuda-devices.h"

#include "common/hold.h"
#include "common/table.h"
#include "recorder/cuda-events.h"
#include "recorder/cupti.h"
#include "recorder/full.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

enum { DEVICES_MAX = 64, STREAMS_MAX = 4096, NO_API = -1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char * device_names[DEVICES_MAX];
static _Atomic int used_api = NO_API;
static __thread int device __attribute__((tls_model("initial-exec")));

bool cuda_use(enum ggtrace_gpu_api api) {
    int before = NO_API;
    return atomic_compare_exchange_strong(&used_api, &before, (int) api) || before == (int) api;
}

void cuda_set_device(int number) {
    device = number;
}

uint32_t cuda_device(void) {
    return (uint32_t) device;
}

void cuda_name_device(uint32_t number, const char * name) {
    static char texts[DEVICES_MAX][256];
    HOLD(&lock);
    if (number >= DEVICES_MAX || device_names[number]) return;
    strncpy(texts[number], name, sizeof(texts[number]) - 1);
    device_names[number] = texts[number];
}

/* Without CUPTI, streams are numbered as they are used. */
static uint32_t number_of_stream(uint32_t number, void * stream) {
    static struct table streams;
    static uint32_t counts[DEVICES_MAX];
    HOLD(&lock);
    struct entry * entry = table_at(&streams, mix(mix(19, number), (uint64_t) (uintptr_t) stream));
    if (entry && !entry->id) entry->id = ++counts[number % DEVICES_MAX];
    return entry ? entry->id : 0;
}

uint32_t cuda_stream_queue(uint32_t number, void * stream) {
    static __thread struct { void * stream; uint32_t device, id; } latest;
    if (latest.id && latest.stream == stream && latest.device == number) return latest.id;
    latest.id = cuda_queue(number, cupti_is_on() ? cupti_stream(stream) : number_of_stream(number, stream));
    latest.stream = stream;
    latest.device = number;
    return latest.id;
}

uint32_t cuda_queue(uint32_t number, uint32_t stream) {
    static struct table queues;
    static uint32_t count;
    HOLD(&lock);
    struct entry * entry = table_at(&queues, mix(mix(15, number), stream));
    if (!entry) return 0;
    if (entry->id) return entry->id;
    if (count == STREAMS_MAX) return full_count(FULL_QUEUES), 0;
    entry->id = ++count;
    const char * name = number < DEVICES_MAX ? device_names[number] : NULL;
    ggtrace_define_gpu_queue(recording.log, &(struct ggtrace_gpu_queue){
        .id = entry->id,
        .device = number,
        .name = registry_name(name ? name : "GPU"),
        .index = stream,
        .flags = cuda_events_are_on() ? GGTRACE_CUDA_BY_EVENTS : 0,
        .bits = cupti_is_on() || cuda_events_are_on() ? 64 : 0,
        .api = (uint32_t) used_api,
        .period = 1,
    });
    return entry->id;
}
