/*
 * CLOCK_MONOTONIC in nanoseconds, computed from the CPU's own counter if the kernel uses that counter as its clock source.
 * This costs a third of clock_gettime. A worker reads the clock hundreds of times per llama_decode.
 */
#pragma once

#include "common/system.h"
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

/* Time as a function of ticks, valid from `ticks` on. `version` is odd while the other fields change. */
struct clock_line {
    uint32_t version;
    uint64_t ticks;
    uint64_t ns;
    uint64_t slope; /* ns per tick, times 2^32; 0: the counter is not used */
} __attribute__((aligned(64)));

extern HIDDEN struct clock_line clock_line;

static inline uint64_t clock_on_line(const struct clock_line * line, uint64_t ticks) {
    /* Another CPU's counter may be a few ticks behind. */
    const uint64_t since = ticks > line->ticks ? ticks - line->ticks : 0;
    return line->ns + (uint64_t) ((clock_product) since * line->slope >> 32);
}

/* Never waits: while another thread changes the line, it calls clock_gettime. */
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

/* The line at some time, for many readings of one thread: ns = ticks * slope >> 32, plus offset. */
struct clock_scale {
    uint64_t slope; /* 0: the counter is not used */
    uint64_t offset;
};

static inline struct clock_scale clock_scale(void) {
    const uint32_t version = __atomic_load_n(&clock_line.version, __ATOMIC_ACQUIRE);
    const uint64_t ticks = __atomic_load_n(&clock_line.ticks, __ATOMIC_ACQUIRE);
    const uint64_t ns = __atomic_load_n(&clock_line.ns, __ATOMIC_ACQUIRE);
    const uint64_t slope = __atomic_load_n(&clock_line.slope, __ATOMIC_ACQUIRE);
    const bool whole = __atomic_load_n(&clock_line.version, __ATOMIC_RELAXED) == version && !(version & 1);
    return (struct clock_scale){whole ? slope : 0, ns - (uint64_t) ((clock_product) ticks * slope >> 32)};
}

static inline uint64_t clock_scaled(const struct clock_scale * scale) {
    if (__builtin_expect(!scale->slope, 0)) return ggtrace_now();
    return (uint64_t) ((clock_product) clock_ticks() * scale->slope >> 32) + scale->offset;
}

/* Reads both clocks for the first time. The longer this is before clock_start, the more exact the slope. */
void clock_prepare(void);

/* Starts to use the counter, if it can be trusted. */
void clock_start(void);

/* Corrects the clock to CLOCK_MONOTONIC if a correction is due. Any thread calls it before each graph run. Cheap. */
void clock_correct(void);

/* The largest corrected error in ns; UINT64_MAX: the counter was not used. */
uint64_t clock_largest_error(void);
