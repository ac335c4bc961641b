#include "recorder/resources.h"

enum { BLOCK_BYTES = 512, TEXT_BYTES = 96 };

static uint64_t ns_of(struct timeval time) {
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_usec * 1000u;
}

void resources_begin(struct ggtrace_resources * resources) {
    struct rusage now = {0};
    getrusage(RUSAGE_SELF, &now);
    *resources = (struct ggtrace_resources){
        .minor_faults = (uint64_t) now.ru_minflt,
        .major_faults = (uint64_t) now.ru_majflt,
        .bytes_read = (uint64_t) now.ru_inblock * BLOCK_BYTES,
        .process_cpu = ns_of(now.ru_utime) + ns_of(now.ru_stime),
        .cpu = GGTRACE_UNKNOWN_VALUE,
        .waiting = GGTRACE_UNKNOWN_VALUE,
    };
}

/* `<ns on a CPU> <ns in which it could run but had no CPU> <how often it was given one>`; all 0 where the kernel does not count them. */
void resources_begin_of_thread(struct ggtrace_resources * resources) {
    const int kept = errno;
    char text[TEXT_BYTES], * at = text;
    resources_begin(resources);
    const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = 0;
    const uint64_t cpu = strtoull(at, &at, 10), waiting = strtoull(at, &at, 10);
    if (strtoull(at, NULL, 10)) resources->cpu = cpu, resources->waiting = waiting;
    errno = kept;
}

static uint64_t since(uint64_t before, uint64_t now) {
    if (before == GGTRACE_UNKNOWN_VALUE || now == GGTRACE_UNKNOWN_VALUE) return GGTRACE_UNKNOWN_VALUE;
    return now > before ? now - before : 0;
}

void resources_end(struct ggtrace_resources * resources) {
    struct ggtrace_resources now;
    if (resources->cpu == GGTRACE_UNKNOWN_VALUE) resources_begin(&now);
    else resources_begin_of_thread(&now);
    resources->minor_faults = since(resources->minor_faults, now.minor_faults);
    resources->major_faults = since(resources->major_faults, now.major_faults);
    resources->bytes_read = since(resources->bytes_read, now.bytes_read);
    resources->process_cpu = since(resources->process_cpu, now.process_cpu);
    resources->cpu = since(resources->cpu, now.cpu);
    resources->waiting = since(resources->waiting, now.waiting);
}
