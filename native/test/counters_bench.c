/* Measures the cost of reading counters, in ns, on this machine: `counters_bench [NAMES …]`; and the cost per thread to begin. */
#include "recorder/counter-names.c"
#include "recorder/perf-event.c"
#include "recorder/counters.c"

#include <stdio.h>

enum { ROUNDS = 5, READS = 100000 };

uint32_t registry_name(const char * text) {
    (void) text;
    return 1;
}

static void fact(const char * key, const char * value) {
    if (strcmp(key, "counters") != 0) printf("    not %s\n", value);
}

static void measure(const char * names) {
    struct counts counts;
    uint64_t least = UINT64_MAX;
    counters_leave();
    counters_count = 0;
    event_count = 0;
    reads_usage = excludes_kernel = false;
    setenv("GGML2PERFETTO_COUNTERS", names, 1);
    counters_start(NULL, fact);
    counters_leave();
    const uint64_t before = ggtrace_now();
    counters_join();
    const uint64_t joined = ggtrace_now() - before;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin = ggtrace_now();
        for (int i = 0; i < READS; i++) counters_read(&counts);
        const uint64_t took = ggtrace_now() - begin;
        if (took < least) least = took;
    }
    printf("%-52s %6.0f ns a reading, %6.1f us to begin\n", names, (double) least / READS, (double) joined / 1e3);
}

int main(int count, char ** args) {
    static char * const usual[] = {"page-faults", "page-faults,context-switches", "task-clock", "task-clock,page-faults",
                                   "cpu-migrations", "software/config=2/,software/config=4/", "cycles,instructions"};
    if (count > 1) for (int i = 1; i < count; i++) measure(args[i]);
    else for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) measure(usual[i]);
    return 0;
}
