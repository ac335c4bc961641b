/*
 * Measures what facts about the machine and the threads cost: in ms when the log is opened, and in ns for each worker in a call.
 * `facts_bench [FILE]`; the file is removed.
 */
#include "common/system.h"
#include "log/ggtrace.h"
#include "recorder/affinity.h"
#include "recorder/numa.h"
#include "recorder/registry.h"
#include "recorder/surroundings.h"

#include <stdio.h>

enum { ROUNDS = 20, CALLS = 20000, GRAPHS = 10 };

static int count;

uint32_t registry_name(const char * text) {
    (void) text;
    return 1;
}

static void fact(const char * key, const char * value) {
    (void) key, (void) value;
    count++;
}

/* Of memory, not of this: a machine with one node has none. */
void numa_facts(void (*take)(const char * key, const char * value)) {
    (void) take;
}

static uint64_t cpu_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t) time.tv_sec * 1000000000 + (uint64_t) time.tv_nsec;
}

static void measure_start(void) {
    uint64_t first = 0, least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        count = 0;
        const uint64_t begin = cpu_time();
        surroundings_open(fact);
        const uint64_t took = cpu_time() - begin;
        if (round == 0) first = took;
        if (took < least) least = took;
    }
    printf("%d facts when a log is opened: %.2f ms the first time, %.2f ms at least (CPU time)\n", count, (double) first / 1e6, (double) least / 1e6);
}

/* A call of so many graphs: splits of a scheduler. */
static double call_ns(struct ggtrace * log, int graphs) {
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log, 0);
    static uint32_t call;
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t begin = cpu_time();
        for (int i = 0; i < CALLS; i++, call++)
            for (int graph = 0; graph < graphs; graph++) affinity_look(writer, begin, call);
        const double ns = (double) (cpu_time() - begin) / CALLS;
        if (ns < least) least = ns;
    }
    return least;
}

int main(int argc, char ** argv) {
    const char * path = argc > 1 ? argv[1] : "facts_bench.ggtrace";
    struct ggtrace * log = ggtrace_open(path, NULL);
    if (!log) return 1;
    measure_start();
    const double one = call_ns(log, 1), several = call_ns(log, GRAPHS);
    printf("where a worker runs: %.0f ns in a call of one graph, %.0f ns more for each further graph\n", one, (several - one) / (GRAPHS - 1));
    ggtrace_close(log);
    return unlink(path);
}
