#include "recorder/guard.h"

#include "common/hold.h"
#include "recorder/recording.h"

enum { SPARE_EVERY = 8, WINDOW_CALLS = 64, OTHERS_MAX = 16, STANDARD_ERRORS = 3 };

/* The weight that older calls keep at each decision. */
#define DECAY (15. / 16)

/* The calls of one kind, and their times. */
struct sum {
    double calls, ns, squares;
};

static uint32_t percent_most;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t tokens_compared = 1, calls, others;
static struct sum recorded, spared;
/* Of this thread's call: it is one of those that are compared. */
static __thread bool is_compared __attribute__((tls_model("initial-exec")));
static __thread bool is_spared __attribute__((tls_model("initial-exec")));

void guard_set(uint32_t percent) {
    percent_most = percent;
}

static void restart(void) {
    recorded = spared = (struct sum){0, 0, 0};
    calls = others = 0;
}

static bool can_record_less(void) {
    return recording_level() > LEVEL_TOKEN;
}

bool guard_begin(uint32_t tokens) {
    is_spared = false;
    if (!percent_most || !can_record_less()) return false;
    HOLD(&lock);
    if (tokens == tokens_compared) {
        is_compared = true;
        is_spared = calls++ % SPARE_EVERY == SPARE_EVERY - 1;
        others = 0;
    } else if (++others == OTHERS_MAX) { /* not a single prompt: calls now have this number of tokens */
        restart();
        tokens_compared = tokens;
    }
    return is_spared;
}

static void add(struct sum * sum, double ns) {
    sum->calls++;
    sum->ns += ns;
    sum->squares += ns * ns;
}

static void decay(struct sum * sum) {
    *sum = (struct sum){sum->calls * DECAY, sum->ns * DECAY, sum->squares * DECAY};
}

/* Is the difference larger than chance? A few calls that were preempted or waited for the disk can make it large. */
static bool is_certain(double difference) {
    const double calls_all = recorded.calls + spared.calls, mean = (recorded.ns + spared.ns) / calls_all;
    const double variance = (recorded.squares + spared.squares) / calls_all - mean * mean;
    const double error_squared = variance * (1 / recorded.calls + 1 / spared.calls);
    return difference * difference > STANDARD_ERRORS * STANDARD_ERRORS * error_squared;
}

/* Under the lock, when there are calls of both kinds. */
static void decide(uint64_t now) {
    const double with = recorded.ns / recorded.calls, without = spared.ns / spared.calls;
    if (!can_record_less() || with <= without * (1 + percent_most / 100.) || !is_certain(with - without)) {
        decay(&recorded);
        decay(&spared);
        return;
    }
    const int level = atomic_fetch_sub(&recording.level, 1) - 1;
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    if (writer) ggtrace_level(writer, now, (uint32_t) level, percent_most, (uint64_t) with, (uint64_t) without);
    restart();
}

void guard_leave(void) {
    is_compared = false;
}

void guard_end(uint64_t start, uint64_t end) {
    if (!is_compared) return;
    is_compared = false;
    HOLD(&lock);
    add(is_spared ? &spared : &recorded, (double) (end - start));
    if (is_spared && calls % WINDOW_CALLS == 0) decide(end);
}
