#include "recorder/cuda-times.h"

#include "common/clock.h"
#include "common/hold.h"
#include "common/table.h"
#include "log/ggtrace-gpu.h"
#include "recorder/cuda-api.h"
#include "recorder/cuda-thread.h"
#include "recorder/libraries.h"
#include "recorder/recording.h"

enum { EVENTS_MAX = 1 << 17, DEVICES = 64, TRIES = 8, NON_BLOCKING = 1, RELAXED = 2 };
/* A float of a second's milliseconds is exact to 61 ns: the clock is read again before differences are longer. */
#define READ_NS 1000000000ull
#define TRY_NS 2000000ull
/* A correction of the clock is spread over the time to the next reading, so that times do not jump; a larger one is no drift. */
#define SPREAD_MAX_NS 1e6

static struct {
    int (*EventCreateWithFlags)(void ** event, unsigned flags);
    int (*EventRecordWithFlags)(void * event, void * stream, unsigned flags);
    int (*EventQuery)(void * event);
    int (*EventElapsedTime)(float * ms, void * from, void * to);
    int (*StreamCreateWithFlags)(void ** stream, unsigned flags);
    int (*SetDevice)(int device);
    int (*PeekAtLastError)(void);
    int (*GetLastError)(void);
    int (*ThreadExchangeStreamCaptureMode)(int * mode);
} cuda;

/* A reading of a device's clock: an event of the recorder's own stream, and the time of the host in the middle of a call that waited for it. */
struct reading {
    void * event;
    double rate; /* ns of the host for each ns of the device behind it */
    uint64_t time; /* 0: there is none */
};

static struct device {
    void ** spare; /* events */
    uint32_t spare_count, made;
    void * stream;
    void * next[2]; /* events for readings */
    struct reading latest, before;
} devices[DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of devices */

#define FIND(name) (*(void **) &cuda.name = dlsym(library, "cuda" #name))

bool cuda_times_start(const void * address) {
    const char * path;
    void * library = library_of(address, &path);
    if (!library) return false;
    FIND(ThreadExchangeStreamCaptureMode);
    return FIND(EventCreateWithFlags) && FIND(EventRecordWithFlags) && FIND(EventQuery) && FIND(EventElapsedTime) &&
        FIND(StreamCreateWithFlags) && FIND(SetDevice) && FIND(PeekAtLastError) && FIND(GetLastError);
}

/* Of one of the functions above. */
static bool is_done(int result) {
    if (result != 0) cuda.GetLastError();
    return result == 0;
}

/* ---- Events ---- */

static void * spare_event(struct device * device) {
    HOLD(&lock);
    if (device->spare_count > 0) return device->spare[--device->spare_count];
    if (!device->spare) device->spare = reserve(EVENTS_MAX * sizeof(*device->spare));
    if (device->spare && device->made < EVENTS_MAX) device->made++;
    return NULL;
}

void * cuda_event_take(uint32_t number) {
    if (number >= DEVICES || cuda.PeekAtLastError() != 0) return NULL;
    struct device * device = &devices[number];
    void * event = spare_event(device);
    if (event || !device->spare || device->made == EVENTS_MAX) return event;
    if (device->made == 1) cuda_thread_wake(); /* the clock of the device is needed before its first graph is launched again */
    return is_done(cuda.EventCreateWithFlags(&event, 0)) ? event : NULL;
}

void cuda_event_give(uint32_t number, void * event) {
    HOLD(&lock);
    struct device * device = &devices[number];
    if (event && device->spare_count < EVENTS_MAX) device->spare[device->spare_count++] = event;
}

bool cuda_event_record(void * event, void * stream, bool captures) {
    return event && cuda.PeekAtLastError() == 0 && is_done(cuda.EventRecordWithFlags(event, stream, captures ? CUDA_EVENT_RECORD_EXTERNAL : 0));
}

enum cuda_event_state cuda_event_state(void * event) {
    const bool is_clear = cuda.PeekAtLastError() == 0;
    const int result = cuda.EventQuery(event);
    if (result != 0 && is_clear) cuda.GetLastError();
    return result == 0 ? CUDA_EVENT_COMPLETE : result == CUDA_NOT_READY ? CUDA_EVENT_OPEN : CUDA_EVENT_FAILED;
}

/* ---- Times ---- */

/* ns of the device from one event to the other; `is_known`: both have a time. */
static double elapsed(void * from, void * to, bool * is_known) {
    float ms = 0;
    *is_known = is_done(cuda.EventElapsedTime(&ms, from, to));
    return (double) ms * 1e6;
}

/* On a line from each reading to the next: the same for an event whenever it is asked for, and later for a later event. */
uint64_t cuda_event_time(uint32_t number, void * event) {
    pthread_mutex_lock(&lock);
    const struct reading latest = devices[number].latest, before = devices[number].before;
    pthread_mutex_unlock(&lock);
    bool is_known = false;
    if (!latest.time || cuda.PeekAtLastError() != 0) return 0;
    double since = elapsed(latest.event, event, &is_known);
    if (!is_known) return 0;
    if (since >= 0 || !before.time) return latest.time + (uint64_t) (int64_t) (since * latest.rate);
    since = elapsed(before.event, event, &is_known);
    return is_known ? before.time + (uint64_t) (int64_t) (since * before.rate) : 0;
}

/* Waits on the recorder's thread until the device has done nothing but the event. Returns how long, with the time in its middle; 0: too long. */
static uint64_t read_once(const struct device * device, void * event, uint64_t * time) {
    const uint64_t start = clock_now();
    uint64_t end = start;
    if (!cuda_event_record(event, device->stream, false)) return 0;
    while (cuda_event_state(event) != CUDA_EVENT_COMPLETE) {
        if (clock_now() - start > TRY_NS) return 0;
        sched_yield();
    }
    end = clock_now();
    *time = start + (end - start) / 2;
    return end - start + 1;
}

/* The best of some tries. Its event is the one that `next` has first. Returns its width; 0: none. */
static uint64_t read_best(struct device * device, uint64_t * time) {
    uint64_t best = 0;
    for (int i = 0; i < TRIES; i++) {
        uint64_t at;
        const uint64_t width = read_once(device, device->next[1], &at);
        if (!width || (best && width >= best)) continue;
        best = width;
        *time = at;
        void * event = device->next[0];
        device->next[0] = device->next[1];
        device->next[1] = event;
    }
    return best;
}

static bool prepare(uint32_t number) {
    struct device * device = &devices[number];
    int mode = RELAXED;
    if (cuda.ThreadExchangeStreamCaptureMode) is_done(cuda.ThreadExchangeStreamCaptureMode(&mode)); /* else another's capture would fail */
    if (!is_done(cuda.SetDevice((int) number))) return false;
    if (!device->stream && !is_done(cuda.StreamCreateWithFlags(&device->stream, NON_BLOCKING))) return false;
    for (int i = 0; i < 2; i++) if (!device->next[i]) device->next[i] = cuda_event_take(number);
    return device->next[0] && device->next[1];
}

static void read_clock(uint32_t number) {
    struct device * device = &devices[number];
    uint64_t time = 0;
    if (!prepare(number)) return;
    const uint64_t width = read_best(device, &time);
    if (!width) return;
    struct reading reading = {.event = device->next[0], .rate = 1, .time = time};
    double late = 0;
    bool is_known = true;
    if (device->latest.time) {
        const double since = elapsed(device->latest.event, reading.event, &is_known) * device->latest.rate;
        late = (double) (int64_t) (device->latest.time - time) + since;
        if (is_known && late < SPREAD_MAX_NS && late > -SPREAD_MAX_NS) {
            reading.time = device->latest.time + (uint64_t) since;
            reading.rate = 1 - late / (double) READ_NS;
        }
    }
    if (!is_known) return;
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_gpu_clock(writer, &(struct ggtrace_gpu_clock){.time = time, .ticks = reading.time, .deviation = width / 2, .late = (int64_t) late, .device = number});
    HOLD(&lock);
    void * const unused = device->before.event;
    device->before = device->latest;
    device->latest = reading;
    device->next[0] = unused; /* NULL at first: the next reading takes another one */
}

void cuda_times_read_clocks(void) {
    for (uint32_t i = 0; i < DEVICES; i++) {
        const uint64_t latest = devices[i].latest.time;
        if (devices[i].made && (!latest || clock_now() - latest > READ_NS)) read_clock(i);
    }
}
