#include "recorder/counter-names.h"

#include <linux/perf_event.h>

#define HARDWARE(name, number) {name, COUNTER_EVENT, GGTRACE_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##number, false}
#define SOFTWARE(name, number) {name, COUNTER_EVENT, GGTRACE_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##number, true}

/* lib/node/record/counters.ts contains the same names, for help texts. */
static const struct counter known[] = {
    HARDWARE("cycles", CPU_CYCLES),
    HARDWARE("instructions", INSTRUCTIONS),
    HARDWARE("cache-references", CACHE_REFERENCES),
    HARDWARE("cache-misses", CACHE_MISSES),
    HARDWARE("branches", BRANCH_INSTRUCTIONS),
    HARDWARE("branch-misses", BRANCH_MISSES),
    HARDWARE("bus-cycles", BUS_CYCLES),
    HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND),
    HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND),
    HARDWARE("ref-cycles", REF_CPU_CYCLES),
    SOFTWARE("cpu-migrations", CPU_MIGRATIONS),
    {.name = "task-clock", .source = COUNTER_CPU_TIME, .unit = GGTRACE_NANOSECONDS},
    {.name = "page-faults", .source = COUNTER_PAGE_FAULTS},
    {.name = "minor-faults", .source = COUNTER_MINOR_FAULTS},
    {.name = "major-faults", .source = COUNTER_MAJOR_FAULTS},
    {.name = "context-switches", .source = COUNTER_SWITCHES},
    {.name = "bytes-read", .source = COUNTER_BYTES_READ, .unit = GGTRACE_BYTES},
};

/* Parses a text that consists of one number; false for anything else. */
static bool number_of(const char * text, int base, uint64_t * number) {
    char * end = NULL;
    if (strchr("+- ", *text)) return false; /* also true at the end of the text */
    *number = strtoull(text, &end, base);
    return *end == 0;
}

/* The kernel's number of a PMU, such as `cpu`, or on arm64 that of the big cores. */
static bool unit_type(const char * name, uint32_t * type) {
    char path[160] = "/sys/bus/event_source/devices/", text[16];
    if (strchr(name, '.')) return false;
    strcat(strcat(path, name), "/type");
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    *type = (uint32_t) strtoul(text, NULL, 10);
    return length > 0;
}

/* <unit>/config=<number>/ */
static const char * find_of_unit(struct counter * counter, const char * slash) {
    char text[COUNTER_NAME_BYTES];
    strcpy(text, counter->name);
    char * const config = text + (slash - counter->name);
    *config = 0;
    const size_t length = strlen(config + 1);
    const bool is_closed = length > 0 && config[length] == '/';
    if (is_closed) config[length] = 0;
    if (!is_closed || strncmp(config + 1, "config=", 7) != 0 || !number_of(config + 8, 0, &counter->config)) {
        return "expected <unit>/config=<number>/";
    }
    return unit_type(text, &counter->type) ? NULL : "this machine has no such unit (/sys/bus/event_source/devices)";
}

const char * counter_find(struct counter * counter, const char * name, size_t length) {
    *counter = (struct counter){.source = COUNTER_EVENT};
    const size_t kept = length < COUNTER_NAME_BYTES - 1 ? length : COUNTER_NAME_BYTES - 1;
    memcpy(counter->name, name, kept);
    if (kept < length) return "the name is too long";
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (strcmp(known[i].name, counter->name) != 0) continue;
        *counter = known[i];
        return NULL;
    }
    const char * slash = strchr(counter->name, '/');
    if (slash) return find_of_unit(counter, slash);
    counter->type = PERF_TYPE_RAW;
    const bool is_raw = *counter->name == 'r' && number_of(counter->name + 1, 16, &counter->config);
    return is_raw ? NULL : "there is no counter of that name";
}
