#include "common/clock.h"

#define CORRECT_EVERY_NS 10000000u
#define BASELINE_MIN_NS 20000000u /* the error of a reading is about 30 ns: 1.5 ppm of this interval, and less of a longer one */
#define BASELINE_NS 200000000u
#define BASELINE_RENEW_NS 2000000000u
#define BEND_OVER_NS 1000000000u
/* A larger error is not drift: the counter stopped (suspend) or jumped. */
#define ERROR_MAX_NS 50000
#define ERROR_ODD_NS 1000 /* after a larger error, the slope is measured again */
#define ERROR_MAX_PART 10000 /* plus 1/10000 of the time since the last correction */

__extension__ typedef __int128 signed_product;

struct reading {
    uint64_t ticks;
    uint64_t ns;
};

struct clock_line clock_line;

/* `base` is the start of the interval that measures the slope; `younger` becomes the next base. */
static struct reading base, younger;
static atomic_bool usable;
static atomic_flag correcting = ATOMIC_FLAG_INIT;
static uint64_t steady; /* the measured slope; 0: not measured yet */
static uint64_t largest_error;

/* Reads both clocks: the closest pair of three attempts. */
static struct reading read_both(void) {
    struct reading best = {0, 0};
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        const uint64_t before = clock_ticks(), ns = ggtrace_now(), after = clock_ticks();
        if (after - before >= closest) continue;
        closest = after - before;
        best = (struct reading){before + closest / 2, ns};
    }
    return best;
}

static void set_line(struct reading at, uint64_t slope) {
    const uint32_t version = clock_line.version;
    __atomic_store_n(&clock_line.version, version + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&clock_line.ticks, at.ticks, __ATOMIC_RELEASE);
    __atomic_store_n(&clock_line.ns, at.ns, __ATOMIC_RELEASE);
    __atomic_store_n(&clock_line.slope, slope, __ATOMIC_RELEASE);
    __atomic_store_n(&clock_line.version, version + 2, __ATOMIC_RELEASE);
}

/* Measures the slope if the interval since `base` is long enough. */
static void measure(struct reading now) {
    const uint64_t ticks = now.ticks - base.ticks;
    if (now.ns - base.ns < (steady ? BASELINE_NS : BASELINE_MIN_NS) || !ticks) return;
    steady = (uint64_t) (((clock_product) (now.ns - base.ns) << 32) / ticks);
    if (now.ns - younger.ns < BASELINE_RENEW_NS) return;
    base = younger;
    younger = now;
}

/* The kernel uses this counter as its clock source only if it runs at a constant rate, equal on all CPUs. */
static bool kernel_trusts_counter(void) {
    char name[32];
    const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, name, sizeof(name) - 1);
    close(file);
    name[length < 0 ? 0 : length] = 0;
    return *CLOCK_SOURCE && strcmp(name, CLOCK_SOURCE "\n") == 0;
}

void clock_prepare(void) {
    base = younger = read_both();
}

void clock_start(void) {
    atomic_store(&usable, kernel_trusts_counter());
    clock_correct();
}

/*
 * The clock continues from its current value, without a step, at a slope that reaches CLOCK_MONOTONIC within a second, or
 * within the time since the last correction if that is longer. If the counter stopped, the clock steps forward. If the
 * counter ran ahead, it is not used any more.
 */
static void correct(void) {
    const struct reading now = read_both();
    if (clock_line.slope == 0) {
        measure(now);
        if (steady) set_line(now, steady);
        return;
    }
    const uint64_t on_line = clock_on_line(&clock_line, now.ticks);
    const int64_t error = (int64_t) (now.ns - on_line);
    const uint64_t since = now.ns - clock_line.ns;
    const int64_t odd = ERROR_ODD_NS + (int64_t) (since / ERROR_MAX_PART), limit = odd - ERROR_ODD_NS + ERROR_MAX_NS;
    if (error < -odd || error > odd) base = younger = now;
    measure(now);
    if (error < -limit) {
        atomic_store(&usable, false);
        set_line(now, 0);
    } else if (error > limit) {
        set_line(now, steady);
    } else {
        const uint64_t over = since > BEND_OVER_NS ? since : BEND_OVER_NS;
        const int64_t bend = (int64_t) ((signed_product) steady * error / (signed_product) over);
        set_line((struct reading){now.ticks, on_line}, steady + (uint64_t) bend);
    }
    const uint64_t distance = (uint64_t) (error < 0 ? -error : error);
    if (distance > largest_error) largest_error = distance;
}

void clock_correct(void) {
    if (!atomic_load_explicit(&usable, memory_order_relaxed)) return;
    /* Compared in ticks, so that a counter that was set back (live migration of a virtual machine) is corrected at once. */
    const uint64_t since = clock_ticks() - __atomic_load_n(&clock_line.ticks, __ATOMIC_RELAXED);
    const uint64_t slope = __atomic_load_n(&clock_line.slope, __ATOMIC_RELAXED);
    if (slope && (clock_product) since * slope >> 32 < CORRECT_EVERY_NS) return;
    if (atomic_flag_test_and_set_explicit(&correcting, memory_order_acquire)) return;
    correct();
    atomic_flag_clear_explicit(&correcting, memory_order_release);
}

uint64_t clock_largest_error(void) {
    return clock_line.slope ? largest_error : UINT64_MAX;
}
