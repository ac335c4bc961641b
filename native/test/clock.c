/*
 * Tests the recorder's clock against CLOCK_MONOTONIC: with a counter that drifts, stops or jumps, and on two threads at once.
 * Prints nothing and returns 0 on success. The test itself advances the time, so the load of the machine makes no
 * difference.
 */
#include "common/system.h"
#define CLOCK_TEST
#include "log/ggtrace.h"
uint64_t simulated_now(void);
#define ggtrace_now simulated_now
#include "common/clock.c"

#include <stdio.h>

enum { TOLERANCE_NS = 2000 };

/* The counter under test: `rate` ticks per nanosecond, and the ticks it has lost or gained. */
static _Atomic int64_t gained;
static const double rate = 2.5;

enum { READING_NS = 20 };
static _Atomic uint64_t passed = 1000000000;

uint64_t simulated_now(void) {
    return atomic_fetch_add(&passed, READING_NS);
}

uint64_t clock_ticks(void) {
    return (uint64_t) ((double) simulated_now() * rate) + (uint64_t) atomic_load(&gained);
}

static void expect(bool holds, const char * what) {
    if (holds) return;
    printf("clock: %s\n", what);
    exit(1);
}

static int64_t distance(void) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < 20; i++) { /* use the reading that was disturbed least */
        const uint64_t before = ggtrace_now(), now = clock_now(), after = ggtrace_now();
        const int64_t off = now < before ? (int64_t) (now - before) : now > after ? (int64_t) (now - after) : 0;
        if (llabs(off) < llabs(best)) best = off;
    }
    return best;
}

static void * read_often(void * unused) {
    (void) unused;
    uint64_t last = 0;
    for (int i = 0; i < 300000; i++) {
        const uint64_t now = clock_now();
        expect(now + TOLERANCE_NS >= last, "went back");
        last = now;
        if (i % 16 == 0) clock_correct();
    }
    return NULL;
}

static void correct_for(int ms) {
    for (int i = 0; i < ms / 11; i++) {
        atomic_fetch_add(&passed, 11000000);
        clock_correct();
    }
}

int main(void) {
    clock_prepare();
    expect(clock_largest_error() == UINT64_MAX, "used before it was begun");
    clock_start();
    correct_for(44);
    expect(clock_line.slope == 0, "used a counter that the kernel does not name");

    atomic_store(&usable, true);
    clock_correct();
    expect(clock_line.slope != 0, "not used after 40 ms");
    expect(llabs(distance()) < TOLERANCE_NS, "is off");
    atomic_fetch_add(&gained, 40000); /* 16 us ahead: corrected within a second */
    correct_for(33);
    expect(llabs(distance()) > 5000, "stepped where it had to bend");
    correct_for(2500);
    expect(llabs(distance()) < 4000, "did not find back");

    pthread_t threads[2];
    for (int i = 0; i < 2; i++) expect(pthread_create(&threads[i], NULL, read_often, NULL) == 0, "no thread");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);

    atomic_fetch_sub(&gained, (int64_t) (1e9 * rate)); /* stopped for a second */
    correct_for(22);
    expect(clock_line.slope != 0 && llabs(distance()) < TOLERANCE_NS, "did not step forward");
    atomic_fetch_add(&gained, (int64_t) (1e9 * rate));
    correct_for(22);
    expect(clock_line.slope == 0 && distance() == 0, "still uses a counter that jumped");
    return 0;
}
