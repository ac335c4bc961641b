/*
 * A ring log that keeps slow calls, each with what preceded it. The pieces that contain them are not removed, and the first block contains
 * their times: readers leave out all other records. It contains the number and the total time of the calls that are left out, too.
 */
#include "ggtrace-inside.h"

#define GGTRACE_POISON
#include "ggtrace.h"
#include "ggtrace-kept.h"

enum { KEPT_PART = 2 }; /* the part of the size that kept pieces may take */

#define BEFORE_NS 1000000000ull
/* Records of a call may be written after its end: of the other workers, and of a GPU. */
#define AFTER_NS 1000000000ull

bool ggtrace_is_kept(const struct ring * ring, const struct piece * piece) {
    if (piece->is_permanent) return true;
    const struct kept * kept = ring->kept;
    const uint64_t until = piece->until ? piece->until : UINT64_MAX;
    for (uint64_t i = kept ? kept->count : 0; i-- > 0;) {
        if (piece->since <= kept->ranges[i].until + AFTER_NS && until >= kept->ranges[i].from) return true;
    }
    return false;
}

static struct kept_range * last_range(struct kept * kept) {
    return kept->count ? &kept->ranges[kept->count - 1] : NULL;
}

static bool is_inside(const struct call_span * call, uint64_t from, uint64_t until) {
    return call->start >= from && call->end <= until;
}

/* Makes a range longer: calls that are inside it now are left out no more. */
static void extend(struct ring * ring, struct kept_range * range, uint64_t until) {
    struct kept * kept = ring->kept;
    for (uint64_t i = ring->recent_count; i-- > 0 && ring->recent_count - i <= RECENT_CALLS;) {
        const struct call_span * call = &ring->recent[i % RECENT_CALLS];
        if (is_inside(call, range->from, range->until) || !is_inside(call, range->from, until)) continue;
        kept->left_out--;
        kept->left_out_ns -= call->end - call->start;
    }
    STORE(range->until, until);
}

/* The start of the first of the latest calls that began at most a second before this time. */
static uint64_t first_before(const struct ring * ring, uint64_t start) {
    const uint64_t complete_from = *ring->from;
    const uint64_t earliest = start > BEFORE_NS + complete_from ? start - BEFORE_NS : complete_from;
    uint64_t first = start;
    for (uint64_t i = ring->recent_count; i-- > 0 && ring->recent_count - i <= RECENT_CALLS;) {
        const struct call_span * call = &ring->recent[i % RECENT_CALLS];
        if (call->start >= earliest && call->start < first) first = call->start;
    }
    return first;
}

static bool keep(const struct ggtrace * log, struct ring * ring, uint64_t start, uint64_t end) {
    struct kept * kept = ring->kept;
    struct kept_range * last = last_range(kept);
    if (ring->kept_bytes > log->bytes_max / KEPT_PART || start < *ring->from) return false;
    const uint64_t from = first_before(ring, start);
    if (last && from <= last->until) {
        extend(ring, last, end);
        return true;
    }
    if (kept->count == KEPT_MAX) return false;
    struct kept_range * range = &kept->ranges[kept->count];
    *range = (struct kept_range){.from = from, .until = from - 1};
    extend(ring, range, end);
    range->left_out = kept->left_out;
    range->left_out_ns = kept->left_out_ns;
    STORE(kept->count, kept->count + 1);
    return true;
}

void ggtrace_note_call(struct ggtrace * log, uint64_t start, uint64_t end) {
    if (!is_alive(log) || !log->shared->ring.kept) return;
    struct ring * ring = &log->shared->ring;
    pthread_mutex_lock(&ring->lock);
    struct kept * kept = ring->kept;
    struct kept_range * last = last_range(kept);
    const struct call_span call = {start, end};
    const bool is_slow = end - start >= kept->limit_ns;
    if (!last || !is_inside(&call, last->from, last->until)) {
        ring->recent[ring->recent_count++ % RECENT_CALLS] = call;
        kept->left_out++;
        kept->left_out_ns += end - start;
        /* What another thread began before the end of the slow call stays whole. */
        if (last && start >= last->from && start < ring->slow_end) extend(ring, last, end);
        else if (is_slow && !keep(log, ring, start, end)) kept->no_room++;
    }
    if (is_slow && end > ring->slow_end) ring->slow_end = end;
    pthread_mutex_unlock(&ring->lock);
}
