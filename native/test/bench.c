/*
 * Measures the cost of a record: nanoseconds, without and with two clock reads, and bytes. `bench [FILE]`; the file is
 * removed.
 */
#include "common/system.h"
#include "log/ggtrace.h"

#include <stdio.h>

enum { ROUNDS = 5, GRAPHS = 4000, NODES = 1000 };

static double best_of(double best, uint64_t begin, uint64_t end, double records) {
    const double now = (double) (end - begin) / records;
    return now < best ? now : best;
}

static void plain(struct ggtrace * log, uint32_t round) {
    uint64_t time = ggtrace_now();
    for (uint32_t graph = 0; graph < GRAPHS; graph++) {
        struct ggtrace_writer * writer = ggtrace_writer_of_thread(log, 0);
        ggtrace_call(writer, time, round * GRAPHS + graph);
        for (uint32_t node = 1; node <= NODES; node++, time += 1000) {
            ggtrace_operator(writer, node, time, time + 700, time + 1000, 0); /* starts where the one before ends */
        }
    }
}

static void with_clocks(struct ggtrace * log, uint32_t round) {
    for (uint32_t graph = 0; graph < GRAPHS; graph++) {
        struct ggtrace_writer * writer = ggtrace_writer_of_thread(log, 0);
        ggtrace_call(writer, ggtrace_now(), round * GRAPHS + graph);
        uint64_t start = ggtrace_now();
        for (uint32_t node = 1; node <= NODES; node++) {
            const uint64_t computed = ggtrace_now(), end = ggtrace_now();
            ggtrace_operator(writer, node, start, computed, end, 0);
            start = end;
        }
    }
}

static void fused(struct ggtrace * log, uint32_t round) {
    uint64_t time = ggtrace_now() + round;
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log, 0);
    for (uint32_t i = 1; i <= GRAPHS * NODES; i++, time += 1000) {
        ggtrace_operator_fused(writer, i % (1 << 20), time, time + 700, time + 1000, i + 1);
    }
}

static void counters(struct ggtrace * log, uint32_t round) {
    const uint64_t time = ggtrace_now() + round;
    for (uint32_t i = 0; i < GRAPHS * NODES; i++) {
        ggtrace_counter(ggtrace_writer_of_thread(log, 0), time + i, 1, i);
    }
}

extern uint64_t last_read;
uint64_t last_read; /* external, so that the reads are not optimized away */

static void clocks_alone(struct ggtrace * log, uint32_t round) {
    for (uint32_t i = 0; i < 2 * GRAPHS * NODES; i++) last_read = ggtrace_now();
    (void) log;
    (void) round;
}

static void measure(const char * what, const char * path, void (*write)(struct ggtrace *, uint32_t)) {
    double best = 1e9, bytes = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct ggtrace * log = ggtrace_open(path, &(struct ggtrace_options){.replace = true});
        if (!log) {
            perror(path);
            exit(1);
        }
        const uint64_t begin = ggtrace_now();
        write(log, round);
        best = best_of(best, begin, ggtrace_now(), (double) GRAPHS * NODES);
        const struct ggtrace_totals totals = ggtrace_totals(log);
        ggtrace_close(log);
        struct stat file = {0};
        stat(path, &file);
        if (totals.written) bytes = (double) file.st_size / (double) totals.written;
        if (totals.dropped) printf("%llu dropped\n", (unsigned long long) totals.dropped);
    }
    unlink(path);
    printf("%-34s %6.1f ns %6.2f bytes a record\n", what, best, bytes);
}

int main(int count, char ** args) {
    const char * path = count > 1 ? args[1] : "bench.ggtrace";
    measure("operator", path, plain);
    measure("operator, fused", path, fused);
    measure("operator and its two clock reads", path, with_clocks);
    measure("two clock reads alone", path, clocks_alone);
    measure("counter, writer_of_thread each", path, counters);
    return 0;
}
