#include "recorder/vulkan-clock.h"

/* The slope is measured over at least this long; else the error of the readings is too large a part of it. */
#define SLOPE_NS_MIN 1e6
/* Oscillators are more exact than this. A larger difference is an error of a reading. */
#define SLOPE_ERROR_MAX 1e-3

/* From `clock->ticks`; negative: earlier. The clock may have wrapped around in between. */
static int64_t since(const struct vulkan_clock * clock, uint64_t ticks, uint32_t bits) {
    const uint32_t above = bits < 64 ? 64 - bits : 0;
    return (int64_t) ((ticks - clock->ticks) << above) >> above;
}

uint64_t vulkan_clock_host(const struct vulkan_clock * clock, uint64_t ticks, uint32_t bits) {
    return clock->host + (uint64_t) (int64_t) ((double) since(clock, ticks, bits) * clock->slope);
}

int64_t vulkan_clock_set(struct vulkan_clock * clock, uint64_t ticks, uint64_t host, double period, uint32_t bits) {
    const struct vulkan_clock before = *clock;
    *clock = (struct vulkan_clock){.is_set = true, .slope = period, .ticks = ticks, .host = host};
    if (!before.is_set) return 0;
    const double elapsed = (double) (host - before.host), round = bits < 64 ? (double) ((uint64_t) 1 << bits) : 0x1p64;
    double counted = (double) since(&before, ticks, bits);
    counted += round * __builtin_rint((elapsed / period - counted) / round); /* it may have wrapped around more often */
    const double slope = counted > 0 ? elapsed / counted : period;
    const bool is_credible = elapsed >= SLOPE_NS_MIN && slope > period * (1 - SLOPE_ERROR_MAX) && slope < period * (1 + SLOPE_ERROR_MAX);
    clock->slope = is_credible ? slope : before.slope;
    return (int64_t) (counted * before.slope - elapsed);
}
