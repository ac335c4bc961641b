/*
 * CLOCK_MONOTONIC in nanoseconds, computed from the processor's own counter where the kernel itself takes its time from
 * it: a third of the cost of clock_gettime. Workers read the clock some hundred times a token.
 */
#ifndef GGML2PERFETTO_CLOCK_H
#define GGML2PERFETTO_CLOCK_H

#include <stdint.h>

#include "log/ggtrace.h"

#if defined(CLOCK_TEST)
#define CLOCK_SOURCE ""
uint64_t clock_ticks(void);
#elif defined(__x86_64__)
#define CLOCK_SOURCE "tsc"
static inline uint64_t clock_ticks(void) {
    return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define CLOCK_SOURCE "arch_sys_counter"
static inline uint64_t clock_ticks(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
#define CLOCK_SOURCE ""
static inline uint64_t clock_ticks(void) {
    return 0;
}
#endif

__extension__ typedef unsigned __int128 clock_product;

/* Time as a function of ticks, in force from `ticks` on. `version` is odd while the rest is being changed. */
struct clock_line {
    uint32_t version;
    uint64_t ticks;
    uint64_t ns;
    uint64_t slope; /* ns a tick, times 2^32; 0: the counter is not used */
} __attribute__((aligned(64)));

extern struct clock_line clock_line;

static inline uint64_t clock_on_line(const struct clock_line * line, uint64_t ticks) {
    /* Another CPU's counter may be a few ticks behind. */
    const uint64_t since = ticks > line->ticks ? ticks - line->ticks : 0;
    return line->ns + (uint64_t) ((clock_product) since * line->slope >> 32);
}

/* Never waits: who meets a line that is being changed asks the kernel. */
static inline uint64_t clock_now(void) {
    const uint32_t version = __atomic_load_n(&clock_line.version, __ATOMIC_ACQUIRE);
    const struct clock_line line = {
        .ticks = __atomic_load_n(&clock_line.ticks, __ATOMIC_ACQUIRE),
        .ns = __atomic_load_n(&clock_line.ns, __ATOMIC_ACQUIRE),
        .slope = __atomic_load_n(&clock_line.slope, __ATOMIC_ACQUIRE),
    };
    const bool whole = __atomic_load_n(&clock_line.version, __ATOMIC_RELAXED) == version && !(version & 1);
    return __builtin_expect(whole && line.slope, 1) ? clock_on_line(&line, clock_ticks()) : ggtrace_now();
}

/* The first look at both clocks; the longer ago it is when clock_start is called, the better. */
void clock_prepare(void);

/* Uses the counter from soon on, if it can be trusted. */
void clock_start(void);

/* Brings the clock back to CLOCK_MONOTONIC, if it is time to: before every graph, by whichever thread. Cheap. */
void clock_correct(void);

/* The largest distance from CLOCK_MONOTONIC that was met and corrected, in ns; UINT64_MAX: the counter was not used. */
uint64_t clock_largest_error(void);

#endif
