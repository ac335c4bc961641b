#include "recorder/loading.h"

#include "recorder/ends.h"
#include "recorder/frames.h"
#include "recorder/recording.h"
#include "recorder/resources.h"

/* Of this thread: the purposes of the stages that it is in (bits), the bytes copied so far, and copies outside of GGTRACE_COPY_WEIGHTS. */
static __thread uint32_t inside __attribute__((tls_model("initial-exec")));
static __thread uint64_t copied __attribute__((tls_model("initial-exec")));
static __thread struct { uint64_t start, end, bytes; } loose __attribute__((tls_model("initial-exec")));

enum { READS_WEIGHTS = 1 << GGTRACE_LOAD_MODEL | 1 << GGTRACE_LOAD_LORA };

static void leave(uint32_t before) {
    inside = before;
}

void loading_begin(struct stage * stage, uintptr_t here, uint32_t what, const char * path) {
    stage->outer = inside;
    stage->at = here;
    frames_begin(here, leave, inside);
    stage->copied_before = copied;
    functions_begin(&stage->function, what);
    if (inside & 1u << what) stage->function.start = 0;
    if (stage->function.start) stage->function.name = functions_file_name(path);
    if (stage->function.start) resources_begin_of_thread(&stage->resources);
    if (!(inside & READS_WEIGHTS)) loose.bytes = 0;
    inside |= 1u << what;
    ends_register(ENDS_FROM_START);
}

/* A loader that passes no hook of GGTRACE_COPY_WEIGHTS: its copies, from the first to the last, are one stage. */
static void write_loose(void) {
    if (!loose.bytes) return;
    struct ggtrace_function copy;
    functions_begin(&copy, GGTRACE_COPY_WEIGHTS);
    struct ggtrace_writer * writer = copy.start ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    copy.start = loose.start;
    copy.end = loose.end;
    copy.value = loose.bytes;
    if (writer) ggtrace_function(writer, &copy);
    loose.bytes = 0;
}

static void write_resources(struct stage * stage) {
    struct ggtrace_writer * writer = stage->function.start ? recording_writer(GGTRACE_NO_WORKER) : NULL;
    if (!writer) return;
    resources_end(&stage->resources);
    stage->resources.time = stage->function.start;
    ggtrace_resources(writer, &stage->resources);
}

void loading_end(struct stage * stage) {
    if (!frames_end(stage->at)) return;
    inside = stage->outer;
    if (!(inside & READS_WEIGHTS)) write_loose();
    write_resources(stage);
    functions_end(&stage->function);
    ends_register(stage->function.what);
}

uint64_t loading_copied(const struct stage * stage) {
    return copied - stage->copied_before;
}

uint64_t loading_copy_begin(void) {
    return inside & (READS_WEIGHTS | 1u << GGTRACE_COPY_WEIGHTS) && functions_take() ? clock_now() : 0;
}

void loading_copy_end(uint64_t start, uint64_t bytes) {
    if (!start) return;
    copied += bytes;
    if (inside & 1u << GGTRACE_COPY_WEIGHTS) return;
    if (!loose.bytes) loose.start = start;
    loose.end = clock_now();
    loose.bytes += bytes;
}
