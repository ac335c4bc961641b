/*
 * A ring log keeps the last part of a recording. When the file would grow beyond its size limit, the event segments ("pieces") that
 * were released first become holes, which read as zeros; the format allows zeros between blocks. So the log stays in order and valid
 * at any moment. At the end, the remaining pieces are moved together. Run blocks and definitions blocks are never removed.
 *
 * The log is complete only from the end time of the latest removed piece on. Its first block contains that time.
 *
 * A log that keeps chosen calls (ggtrace-kept.c) is a ring whose removed pieces are those without such a call. A part of its size is for
 * the latest pieces, since whether they are kept is known only when the calls in them end.
 */
#include "ggtrace-inside.h"

#define GGTRACE_POISON
#include "ggtrace.h"

enum { NO_PIECE = 0, WINDOW_PART = 4, PAGE_BYTES_MIN = 4096, COPY_BYTES = 64 * 1024 };

static bool can_punch_holes(const struct ggtrace * log) {
    return fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, PAGE_BYTES_MIN) == 0;
}

/* The size of pieces limits their number, so there is always a free one. NO_PIECE is not tracked and is never removed. */
static uint32_t new_piece(struct ring * ring) {
    uint32_t number = ring->unused;
    if (number) ring->unused = ring->pieces[number].next_released;
    else if (ring->count < ring->most) number = ring->count++;
    return number;
}

static void append(struct ring * ring, uint32_t number, const struct piece * piece) {
    ring->pieces[number] = *piece;
    ring->pieces[number].before = ring->last;
    if (ring->last) ring->pieces[ring->last].next = number;
    else ring->first = number;
    ring->last = number;
}

/* Writes the block with the time from which the log is complete. The bytes after its header change, and its checksum does not cover them. */
static bool write_ring_block(struct ggtrace * log, struct ggtrace_writer * control) {
    struct ring * ring = &log->shared->ring;
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    const size_t contents = sizeof(*ring->from) + (log->slow_ns ? sizeof(*ring->kept) : 0);
    const size_t mapped = (sizeof(struct ggtrace_block) + contents + page - 1) / page * page;
    uint8_t * start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, log->file, 0);
    if (start == MAP_FAILED) return false;
    madvise(start, mapped, MADV_DONTFORK);
    struct ggtrace_block * block = (struct ggtrace_block *) (void *) start;
    block->kind = GGTRACE_RING;
    block->writer = NOT_ONE;
    block->base = ggtrace_now();
    block->checksum = ggtrace_checksum(block, sizeof(*block));
    block->size = (uint32_t) (sizeof(*block) + contents);
    ring->mapped = mapped;
    ring->from = (uint64_t *) (void *) (block + 1);
    if (log->slow_ns) {
        ring->kept = (struct kept *) (void *) (ring->from + 1);
        ring->kept->limit_ns = log->slow_ns;
    }
    control->at += block->size;
    return true;
}

bool ggtrace_ring_start(struct ggtrace * log, struct ggtrace_writer * control) {
    struct ring * ring = &log->shared->ring;
    const uint64_t most = log->bytes_max / PAGE_BYTES_MIN + 2 * GGTRACE_WRITERS_MAX;
    if (most > UINT32_MAX || !can_punch_holes(log)) return false;
    void * memory = mmap(NULL, most * sizeof(struct piece), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    ring->pieces = memory;
    ring->most = (uint32_t) most;
    ring->count = 1; /* number 0 means none */
    pthread_mutex_init(&ring->lock, NULL);
    if (!write_ring_block(log, control)) return false;
    /* The bytes that CONTROL has written so far are never removed. */
    ring->permanent = LOAD(log->shared->file_end);
    append(ring, new_piece(ring), &(struct piece){.bytes = (uint32_t) ring->permanent, .is_permanent = true});
    return true;
}

static void punch_hole(const struct ggtrace * log, struct ring * ring, const struct piece * piece) {
    if (piece->until > *ring->from) STORE(*ring->from, piece->until);
    fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) piece->offset, piece->bytes);
}

static void unlink_piece(struct ring * ring, uint32_t number) {
    const struct piece * piece = &ring->pieces[number];
    if (piece->before) ring->pieces[piece->before].next = piece->next;
    else ring->first = piece->next;
    if (piece->next) ring->pieces[piece->next].before = piece->before;
    else ring->last = piece->before;
    ring->pieces[number] = (struct piece){.next_released = ring->unused};
    ring->unused = number;
}

/* Releases a piece: no thread writes to it any more. */
static void release(struct ring * ring, uint32_t number, uint64_t time) {
    ring->pieces[number].until = time;
    if (ring->last_released) ring->pieces[ring->last_released].next_released = number;
    else ring->first_released = number;
    ring->last_released = number;
}

/*
 * Removes pieces, those that were released first, until `bytes` more bytes fit. The order in the file would be wrong: if a thread wrote
 * to a piece only now and then, the piece covers a long time, and all of that time would be incomplete.
 */
static void make_room(const struct ggtrace * log, struct ring * ring, uint64_t bytes) {
    const uint64_t half = log->bytes_max / 2; /* definitions take the space they need, up to this much */
    const uint64_t rest = ring->permanent < half ? log->bytes_max - ring->permanent : half;
    const uint64_t most = ring->kept ? log->bytes_max / WINDOW_PART : rest;
    while (ring->first_released && ring->removable + bytes > most) {
        const uint32_t number = ring->first_released;
        const struct piece * piece = &ring->pieces[number];
        ring->first_released = piece->next_released;
        if (!ring->first_released) ring->last_released = NO_PIECE;
        ring->removable -= piece->bytes;
        if (ggtrace_is_kept(ring, piece)) {
            ring->kept_bytes += piece->bytes;
            continue;
        }
        punch_hole(log, ring, piece);
        unlink_piece(ring, number);
    }
}

uint64_t ggtrace_ring_take(struct ggtrace_writer * writer, uint32_t bytes, uint32_t * number) {
    const struct ggtrace * log = writer->log;
    struct ring * ring = &log->shared->ring;
    const bool is_permanent = writer->id == CONTROL;
    pthread_mutex_lock(&ring->lock);
    if (is_permanent) ring->permanent += bytes;
    make_room(log, ring, is_permanent ? 0 : bytes);
    if (!is_permanent) ring->removable += bytes;
    const uint64_t offset = ADD(log->shared->file_end, bytes);
    *number = new_piece(ring);
    if (*number) append(ring, *number, &(struct piece){.offset = offset, .bytes = bytes, .since = ggtrace_now(), .is_permanent = is_permanent});
    pthread_mutex_unlock(&ring->lock);
    return offset;
}

void ggtrace_ring_use(struct ggtrace_writer * writer, uint32_t number, bool is_used) {
    struct ring * ring = &writer->log->shared->ring;
    pthread_mutex_lock(&ring->lock);
    if (!is_used) {
        release(ring, number, 0);
    } else if (writer->id != CONTROL) {
        uint32_t * own = &ring->current[writer->id];
        if (*own) release(ring, *own, ggtrace_now());
        *own = number;
    }
    pthread_mutex_unlock(&ring->lock);
}

static bool move(const struct ggtrace * log, uint64_t from, uint64_t to, uint64_t bytes) {
    static uint8_t buffer[COPY_BYTES];
    for (uint64_t at = 0; at < bytes;) {
        const size_t count = bytes - at < COPY_BYTES ? (size_t) (bytes - at) : COPY_BYTES;
        const ssize_t got = pread(log->file, buffer, count, (off_t) (from + at));
        if (got <= 0 || !ggtrace_write_at(log, buffer, (size_t) got, to + at)) return false;
        at += (uint64_t) got;
    }
    return true;
}

uint64_t ggtrace_ring_settle(struct ggtrace * log, uint64_t used) {
    const struct ring * ring = &log->shared->ring;
    uint64_t end = 0;
    for (uint32_t number = ring->first; number; number = ring->pieces[number].next) {
        const struct piece * piece = &ring->pieces[number];
        if (ring->kept && !ggtrace_is_kept(ring, piece)) continue;
        const uint64_t bytes = piece->offset + piece->bytes < used ? piece->bytes
                             : piece->offset < used ? used - piece->offset : 0;
        if (end != piece->offset && !move(log, piece->offset, end, bytes)) return used;
        end += bytes;
    }
    return end;
}
