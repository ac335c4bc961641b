/*
 * A log that keeps its last part. When it would grow beyond its size, the pieces of events that were left first are given back to the
 * file system: holes, which read as the zeros that may lie between blocks. So the log stays in order, and is one at any
 * moment; at the end what is left is moved together. Run and definitions blocks are kept.
 *
 * So the log is whole only from the time on that the last record of a piece that is gone may have. Its first block says
 * when that was.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ggtrace-inside.h"

#define GGTRACE_POISON
#include "ggtrace.h"

enum { NO_PIECE = 0, PAGE_BYTES_MIN = 4096, COPY_BYTES = 64 * 1024 };

static bool can_give_back(const struct ggtrace * log) {
    return fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, PAGE_BYTES_MIN) == 0;
}

/* The pieces' number is bounded by their size, so there is always one; NO_PIECE is not tracked, and stays. */
static uint32_t new_piece(struct ring * ring) {
    uint32_t number = ring->unused;
    if (number) ring->unused = ring->pieces[number].next_left;
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

/* The block that says since when the log is whole. What follows its header changes, and is not under its checksum. */
static bool write_ring_block(struct ggtrace * log, struct ggtrace_writer * control) {
    struct ring * ring = &log->shared->ring;
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    uint8_t * start = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, log->file, 0);
    if (start == MAP_FAILED) return false;
    madvise(start, page, MADV_DONTFORK);
    struct ggtrace_block * block = (struct ggtrace_block *) (void *) start;
    block->kind = GGTRACE_RING;
    block->writer = NOT_ONE;
    block->base = ggtrace_now();
    block->checksum = ggtrace_checksum(block, sizeof(*block));
    block->size = sizeof(*block) + sizeof(*ring->from);
    ring->from = (uint64_t *) (void *) (block + 1);
    control->at += block->size;
    return true;
}

bool ggtrace_ring_start(struct ggtrace * log, struct ggtrace_writer * control) {
    struct ring * ring = &log->shared->ring;
    const uint64_t most = log->bytes_max / PAGE_BYTES_MIN + 2 * GGTRACE_WRITERS_MAX;
    if (most > UINT32_MAX || !can_give_back(log)) return false;
    void * memory = mmap(NULL, most * sizeof(struct piece), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    ring->pieces = memory;
    ring->most = (uint32_t) most;
    ring->count = 1; /* number 0 is none */
    pthread_mutex_init(&ring->lock, NULL);
    if (!write_ring_block(log, control)) return false;
    /* What CONTROL has had so far is kept. */
    ring->kept = LOAD(log->shared->file_end);
    append(ring, new_piece(ring), &(struct piece){.bytes = (uint32_t) ring->kept});
    return true;
}

static void give_back(const struct ggtrace * log, struct ring * ring, const struct piece * piece) {
    ring->held -= piece->bytes;
    if (piece->until > *ring->from) STORE(*ring->from, piece->until);
    fallocate(log->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) piece->offset, piece->bytes);
}

static void unlink_piece(struct ring * ring, uint32_t number) {
    const struct piece * piece = &ring->pieces[number];
    if (piece->before) ring->pieces[piece->before].next = piece->next;
    else ring->first = piece->next;
    if (piece->next) ring->pieces[piece->next].before = piece->before;
    else ring->last = piece->before;
    ring->pieces[number] = (struct piece){.next_left = ring->unused};
    ring->unused = number;
}

/* Nobody writes to the piece any more. */
static void leave(struct ring * ring, uint32_t number, uint64_t time) {
    ring->pieces[number].until = time;
    if (ring->last_left) ring->pieces[ring->last_left].next_left = number;
    else ring->first_left = number;
    ring->last_left = number;
}

/*
 * Gives pieces back, those that were left first, until there are `bytes` more to be had. Not the oldest of the file: one
 * that a thread wrote to now and then reaches up to when it was left, and what lies before that is whole no longer.
 */
static void make_room(const struct ggtrace * log, struct ring * ring, uint64_t bytes) {
    const uint64_t half = log->bytes_max / 2; /* definitions take what they need, up to here */
    const uint64_t most = ring->kept < half ? log->bytes_max - ring->kept : half;
    while (ring->first_left && ring->held + bytes > most) {
        const uint32_t number = ring->first_left;
        const struct piece * piece = &ring->pieces[number];
        ring->first_left = piece->next_left;
        if (!ring->first_left) ring->last_left = NO_PIECE;
        give_back(log, ring, piece);
        unlink_piece(ring, number);
    }
}

uint64_t ggtrace_ring_take(struct ggtrace_writer * writer, uint32_t bytes, uint32_t * number) {
    const struct ggtrace * log = writer->log;
    struct ring * ring = &log->shared->ring;
    const bool is_kept = writer->id == CONTROL;
    pthread_mutex_lock(&ring->lock);
    if (is_kept) ring->kept += bytes;
    make_room(log, ring, is_kept ? 0 : bytes);
    if (!is_kept) ring->held += bytes;
    const uint64_t offset = ADD(log->shared->file_end, bytes);
    *number = new_piece(ring);
    if (*number) append(ring, *number, &(struct piece){.offset = offset, .bytes = bytes});
    pthread_mutex_unlock(&ring->lock);
    return offset;
}

void ggtrace_ring_use(struct ggtrace_writer * writer, uint32_t number, bool has_got_it) {
    struct ring * ring = &writer->log->shared->ring;
    pthread_mutex_lock(&ring->lock);
    if (!has_got_it) {
        leave(ring, number, 0);
    } else if (writer->id != CONTROL) {
        uint32_t * own = &ring->current[writer->id];
        if (*own) leave(ring, *own, ggtrace_now());
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
        const uint64_t bytes = piece->offset + piece->bytes < used ? piece->bytes
                             : piece->offset < used ? used - piece->offset : 0;
        if (end != piece->offset && !move(log, piece->offset, end, bytes)) return used;
        end += bytes;
    }
    return end;
}
