/* The clock of a Vulkan device, as a function from its ticks to CLOCK_MONOTONIC. */
#pragma once

#include "common/system.h"

/* A line through two readings of both clocks, the latest at `ticks` and `host`. Zero is a clock without a reading. */
struct vulkan_clock {
    bool is_set;
    double slope; /* ns per tick */
    uint64_t ticks, host;
};

/*
 * Takes a reading of both clocks; period: nominal ns per tick; bits: those of `ticks` that are valid (drivers may read the clock with all 64
 * bits, or as timestamps have it). Returns how many ns the time that the earlier readings give for these
 * ticks is later than `host`.
 */
int64_t vulkan_clock_set(struct vulkan_clock * clock, uint64_t ticks, uint64_t host, double period, uint32_t bits);

/* The time at which the device's clock had this value, of which the lowest `bits` bits are valid: the one that is nearest to the latest reading. */
uint64_t vulkan_clock_host(const struct vulkan_clock * clock, uint64_t ticks, uint32_t bits);
