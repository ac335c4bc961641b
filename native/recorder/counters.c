#include "recorder/counters.h"

#include <dirent.h>

#include "common/environment.h"
#include "recorder/counter-names.h"
#include "recorder/perf-event.h"
#include "recorder/registry.h"
#include "recorder/user-page.h"

/* Usually above the file descriptors of the program itself. */
enum { FILE_LEAST = 200 };
enum { BLOCK_BYTES = 512, TEXT_BYTES = 2048, MISSING_MAX = 32 };

#define EVERYWHERE "task-clock, page-faults, minor-faults, major-faults, context-switches, bytes-read"
static const char NO_HARDWARE[] = "this machine (a virtual machine?) has no hardware counters";
static const char ONLY_ROOT[] = "the kernel permits it to root only (or at perf_event_paranoid 1)";

__extension__ typedef unsigned __int128 product;

/* The thread's events form one group, so that either all or none of them are in hardware counters at a time. */
struct group {
    int count; /* number of events; -1: not available */
    int files[GGTRACE_COUNTS_MAX]; /* reading the first returns all; -1: closed, the mapped page keeps the event alive */
    struct perf_event_mmap_page * pages[GGTRACE_COUNTS_MAX];
};

static __thread struct group group __attribute__((tls_model("initial-exec")));

uint32_t counters_count;
static struct counter counters[GGTRACE_COUNTS_MAX];
/* The indices of those counters that are events, in the order of the group. */
static uint32_t events[GGTRACE_COUNTS_MAX];
static int event_count;
static bool reads_usage;
/* Events are counted in user mode only, because the kernel permits no more. */
static bool excludes_kernel;
static struct ggtrace * counters_log;
/* The CPUs are of several kinds: a thread that migrates at the wrong moment would read a counter that does not exist. */
static bool is_hybrid;

/* ---- A thread's group ---- */

static int open_event(const struct counter * counter, int leader) {
    struct perf_event_attr event = {
        .size = sizeof(event),
        .type = counter->type,
        .config = counter->config,
        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_kernel = excludes_kernel,
        .exclude_hv = excludes_kernel,
    };
#if defined(__aarch64__)
    event.config1 = 2; /* requests a counter that user space can read */
    const int file = perf_event_open(&event, 0, -1, leader);
    if (file >= 0) return file;
    event.config1 = 0;
#endif
    return perf_event_open(&event, 0, -1, leader);
}

static void * map_page(int file) {
    const size_t size = (size_t) sysconf(_SC_PAGESIZE);
    void * page = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) return NULL;
    madvise(page, size, MADV_DONTFORK);
    return page;
}

/* Adds an event to the calling thread's group; false and errno on failure. */
static bool add_event(const struct counter * counter) {
    int file = open_event(counter, group.count ? group.files[0] : -1);
    if (file < 0) return false;
    const int index = group.count++;
    const int above = index == 0 ? fcntl(file, F_DUPFD_CLOEXEC, FILE_LEAST) : -1;
    if (above >= 0) close(file), file = above;
    group.pages[index] = map_page(file);
    group.files[index] = file;
    if (index == 0 || !group.pages[index]) return true;
    close(file);
    group.files[index] = -1;
    return true;
}

void counters_leave(void) {
    for (int i = group.count - 1; i >= 0; i--) {
        if (group.pages[i]) munmap(group.pages[i], (size_t) sysconf(_SC_PAGESIZE));
        if (group.files[i] >= 0) close(group.files[i]);
    }
    group.count = 0;
}

void counters_join(void) {
    if (event_count == 0 || group.count != 0) return;
    const int kept = errno;
    while (group.count < event_count && add_event(&counters[events[group.count]])) {}
    if (group.count < event_count) {
        char why[256] = "counters of this thread: ";
        strcat(why, perf_event_why(errno));
        counters_leave();
        group.count = -1;
        struct ggtrace_writer * writer = ggtrace_writer_of_thread(counters_log, GGTRACE_NO_WORKER);
        ggtrace_loss(writer, ggtrace_now(), 1, registry_name(why));
    }
    errno = kept;
}

/* ---- Reading ---- */

static bool read_registers(struct counts * to) {
    if (is_hybrid) return false;
    for (int i = 0; i < group.count; i++) {
        if (!group.pages[i] || !user_page_count(group.pages[i], &to->values[events[i]], &to->enabled)) return false;
    }
    to->running = to->enabled;
    return true;
}

static void read_events(struct counts * to) {
    if (group.count <= 0 || read_registers(to)) return;
    uint64_t data[3 + GGTRACE_COUNTS_MAX]; /* how many, enabled, running, counts */
    const int kept = errno;
    const bool has_read = read(group.files[0], data, sizeof(data)) == (3 + group.count) * 8;
    errno = kept;
    if (!has_read) return;
    to->enabled = data[1];
    to->running = data[2];
    for (int i = 0; i < group.count; i++) to->values[events[i]] = data[3 + i];
}

static uint64_t of_usage(const struct rusage * usage, enum counter_source source) {
    switch (source) {
        case COUNTER_MINOR_FAULTS: return (uint64_t) usage->ru_minflt;
        case COUNTER_MAJOR_FAULTS: return (uint64_t) usage->ru_majflt;
        case COUNTER_PAGE_FAULTS: return (uint64_t) (usage->ru_minflt + usage->ru_majflt);
        case COUNTER_SWITCHES: return (uint64_t) (usage->ru_nvcsw + usage->ru_nivcsw);
        case COUNTER_BYTES_READ: return (uint64_t) usage->ru_inblock * BLOCK_BYTES;
        default: return 0;
    }
}

static uint64_t cpu_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

void counters_read(struct counts * counts) {
    struct rusage usage;
    if (reads_usage) getrusage(RUSAGE_THREAD, &usage);
    for (uint32_t i = 0; i < counters_count; i++) {
        const enum counter_source source = counters[i].source;
        counts->values[i] = source == COUNTER_EVENT ? 0 : source == COUNTER_CPU_TIME ? cpu_time() : of_usage(&usage, source);
    }
    counts->enabled = counts->running = 0;
    read_events(counts);
}

/* The estimated count if the event had been in a hardware counter all the time. */
static uint64_t extrapolated(uint64_t value, uint64_t enabled, uint64_t running) {
    return running ? (uint64_t) ((product) value * enabled / running) : 0;
}

void counters_write(struct ggtrace_writer * writer, uint64_t time, const struct counts * from, const struct counts * to) {
    const uint64_t enabled = to->enabled - from->enabled, running = to->running - from->running;
    const bool is_scaled = to->running >= from->running && running < enabled;
    uint64_t values[GGTRACE_COUNTS_MAX];
    for (uint32_t i = 0; i < counters_count; i++) {
        values[i] = to->values[i] > from->values[i] ? to->values[i] - from->values[i] : 0;
        if (is_scaled && counters[i].source == COUNTER_EVENT) values[i] = extrapolated(values[i], enabled, running);
    }
    ggtrace_counts(writer, time, values, counters_count, is_scaled);
}

/* ---- Which counters this machine has ---- */

/* A PMU lists its CPUs if it does not cover all of them. */
static bool has_several_kinds(void) {
    int kinds = 0;
    DIR * units = opendir("/sys/bus/event_source/devices");
    for (struct dirent * entry; units && (entry = readdir(units));) {
        char path[64 + sizeof(entry->d_name)] = "/sys/bus/event_source/devices/";
        kinds += access(strcat(strcat(path, entry->d_name), "/cpus"), F_OK) == 0;
    }
    if (units) closedir(units);
    return kinds > 1;
}

/* Requested counters that are not available, with the reasons. */
struct missing {
    struct counter counters[MISSING_MAX];
    const char * reasons[MISSING_MAX];
    int count;
};

static char * append(char text[TEXT_BYTES], const char * more) {
    const size_t length = strlen(text), added = strlen(more);
    if (length + added < TEXT_BYTES) memcpy(text + length, more, added + 1);
    return text;
}

static bool has_alone(const struct counter * counter) {
    const int file = open_event(counter, -1);
    if (file >= 0) close(file);
    return file >= 0;
}

static const char * why_not(const struct counter * counter, int error) {
    struct counter cycles;
    switch (error) {
        case ENOENT: case EOPNOTSUPP: case ENODEV: case ENXIO:
            counter_find(&cycles, "cycles", strlen("cycles"));
            return has_alone(&cycles) ? "this processor does not count that" : NO_HARDWARE;
        case EINVAL: case ENOSPC:
            if (group.count == 0 || !has_alone(counter)) return "the kernel does not take it";
            return "it does not fit with the others: the processor has too few counters";
        default:
            return perf_event_why(error);
    }
}

/* Adds an event to the calling thread's group; returns NULL, or the reason for the failure. */
static const char * try_event(const struct counter * counter) {
    if (excludes_kernel && counter->is_kernels) return ONLY_ROOT;
    if (add_event(counter)) return NULL;
    if (errno == EACCES && group.count == 0 && !excludes_kernel) {
        excludes_kernel = true;
        if (counter->is_kernels) return ONLY_ROOT;
        if (add_event(counter)) return NULL;
    }
    return why_not(counter, errno);
}

static const char * add(const struct counter * counter) {
    for (uint32_t i = 0; i < counters_count; i++) if (strcmp(counters[i].name, counter->name) == 0) return NULL;
    if (counters_count == GGTRACE_COUNTS_MAX) return "there are too many: 16 at most";
    const bool is_event = counter->source == COUNTER_EVENT;
    const char * problem = is_event ? try_event(counter) : NULL;
    if (problem) return problem;
    if (is_event) events[event_count++] = counters_count;
    reads_usage |= !is_event && counter->source != COUNTER_CPU_TIME;
    counters[counters_count++] = *counter;
    return NULL;
}

static void add_all(const char * names, struct missing * missing) {
    for (; *names; names += *names == ',') {
        const size_t length = strcspn(names, ",");
        struct counter counter;
        const char * problem = length ? counter_find(&counter, names, length) : NULL;
        if (length && !problem) problem = add(&counter);
        names += length;
        if (!problem || missing->count == MISSING_MAX) continue;
        missing->counters[missing->count] = counter;
        missing->reasons[missing->count++] = problem;
    }
}

static void report_counted(void (*fact)(const char *, const char *)) {
    char text[TEXT_BYTES] = "";
    for (uint32_t i = 0; i < counters_count; i++) {
        append(append(text, i ? ", " : ""), counters[i].name);
    }
    struct counts now;
    if (event_count) append(text, read_registers(&now) ? "; events read in user space" : "; events read by the kernel");
    if (event_count && excludes_kernel) append(text, ", counted in user mode only (perf_event_paranoid)");
    fact("counters", counters_count ? text : "none");
}

/* `a, b: reason; c: other reason` */
static void report_missing(const struct missing * missing, void (*fact)(const char *, const char *)) {
    char text[TEXT_BYTES] = "";
    bool lacks_hardware = false;
    for (int i = 0; i < missing->count; i++) {
        append(text, missing->counters[i].name);
        const bool has_same_reason = i + 1 < missing->count && missing->reasons[i + 1] == missing->reasons[i];
        if (!has_same_reason) append(append(text, ": "), missing->reasons[i]);
        if (i + 1 < missing->count) append(text, has_same_reason ? ", " : "; ");
        lacks_hardware |= missing->reasons[i] == NO_HARDWARE;
    }
    if (lacks_hardware) append(text, "; software ones work: " EVERYWHERE);
    if (missing->count) fact("counters.missing", text);
}

void counters_start(struct ggtrace * log, void (*fact)(const char * key, const char * value)) {
    static struct missing missing;
    const char * names = environment(ENV_COUNTERS);
    if (!names || !*names) return;
    const int kept = errno;
    counters_log = log;
    is_hybrid = has_several_kinds();
    add_all(names, &missing);
    report_counted(fact);
    report_missing(&missing, fact);
    for (uint32_t i = 0; i < counters_count; i++) {
        const struct ggtrace_counted counted = {i, registry_name(counters[i].name), counters[i].unit};
        ggtrace_define_counted(log, &counted);
    }
    errno = kept;
}
