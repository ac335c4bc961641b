/* What the files of the log's writer share. Nobody else includes this. */
#ifndef GGTRACE_INSIDE_H
#define GGTRACE_INSIDE_H

#include <errno.h>
#include <pthread.h>
#include <sys/types.h>

#include "ggtrace.h"

enum {
    CONTROL = 0, /* the writer of run and definitions blocks, under the lock */
    NOT_ONE = GGTRACE_WRITERS_MAX - 1, /* the writer of threads that there is no writer for: it drops and counts */
    SEGMENT_FIRST_BYTES = 16 * 1024, /* then larger by this factor each time, up to the log's segment_bytes */
    SEGMENT_GROWTH = 2,
    RING_SEGMENTS_MIN = 64, /* that a ring is cut into, if they are not smaller than the first */
    BLOCK_BYTES_MIN = 4096,
    BLOCK_BYTES_MAX = 1 << 20,
    END_BYTES = 128, /* kept in each segment of CONTROL, so that a log on a full disk still ends as it should */
    BLOCK_OVERHEAD = sizeof(struct ggtrace_block) + sizeof(struct ggtrace_loss_record) + END_BYTES,
};

_Static_assert(END_BYTES >= BLOCK_OVERHEAD - END_BYTES + sizeof(struct ggtrace_end_record) + 4, "the END fits");
_Static_assert(GGTRACE_KEY_BYTES_MAX + GGTRACE_TEXT_BYTES_MAX + 16 + BLOCK_OVERHEAD <= BLOCK_BYTES_MIN, "a FACT fits");
_Static_assert(4 + sizeof(struct ggtrace_token) + 12 * GGTRACE_SPANS_MAX + BLOCK_OVERHEAD <= BLOCK_BYTES_MIN, "a TOKEN fits");
_Static_assert(4 + sizeof(struct ggtrace_tensor) + 4 * GGTRACE_SOURCES_MAX + BLOCK_OVERHEAD <= BLOCK_BYTES_MIN,
               "a TENSOR fits");
_Static_assert(BLOCK_BYTES_MAX <= UINT32_MAX / 2, "sizes of blocks are added as u32");

/* A segment of a log that keeps its last part. */
struct piece {
    uint64_t offset, until; /* in the file; no record in it has a later start */
    uint32_t bytes;
    uint32_t before, next; /* in the file */
    uint32_t next_left;    /* the one that was left after it; of one that is gone: another such */
};

/* What there is of such a log, in the order of the file, and of that what threads have left. Under its own lock. */
struct ring {
    pthread_mutex_t lock;
    struct piece * pieces;
    uint32_t most, count, unused;
    uint32_t first, last, first_left, last_left;
    uint64_t kept, held; /* bytes of pieces that are kept, and of the others */
    uint64_t * from;     /* in the file: since when the log is whole */
    uint32_t current[GGTRACE_WRITERS_MAX];
};

/* What threads change. A forked child finds zeros here: no log. */
struct shared {
    pthread_mutex_t lock;  /* writers given and taken back, CONTROL, closing */
    uint32_t alive;        /* 0 in a forked child, and after close */
    uint32_t closing;      /* no more events */
    uint32_t definitions;  /* serials given so far */
    uint32_t writer_count; /* ever made, CONTROL included */
    uint16_t free_writer;  /* 0: none; a list through next_free */
    uint64_t file_end;     /* where the next segment goes */
    uint64_t retry_at, retry_after;
    struct ring ring;
    struct ggtrace_writer writers[GGTRACE_WRITERS_MAX];
};

struct ggtrace {
    struct shared * shared;
    dev_t device;
    ino_t inode;
    int file;
    uint32_t segment_bytes, block_bytes, record_max;
    uint64_t bytes_max;
    bool wiped_on_fork, has_barrier, is_ring;
};

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)
#define ADD(field, value) __atomic_fetch_add(&(field), (value), __ATOMIC_ACQ_REL)

/* Whether the log's file still is the one that it opened. */
bool ggtrace_is_ours(const struct ggtrace * log);

/* Writes all bytes at that place of the file, also where a sandbox denies pwrite; false and errno where it cannot. */
bool ggtrace_write_at(const struct ggtrace * log, const void * bytes, size_t count, uint64_t offset);

/* What a sandbox answers to a system call that it denies, or a kernel that has none of it. */
static inline bool ggtrace_is_denied(int error) {
    return error == ENOSYS || error == EPERM || error == EACCES;
}

/* The next piece of the file for this writer, of at least that size; false and errno where there is none to be had. */
bool ggtrace_take_segment(struct ggtrace_writer * writer, uint32_t needed);

static inline uint32_t ggtrace_segment_bytes(const struct ggtrace_writer * writer) {
    return (uint32_t) (writer->segment_end - writer->segment);
}

/* The checksum of a block of that size. */
uint32_t ggtrace_checksum(const struct ggtrace_block * block, uint32_t size);

/* Makes a log one that keeps its last part, before anything is written to it. false: this file system cannot. */
bool ggtrace_ring_start(struct ggtrace * log, struct ggtrace_writer * control);

/* Place for a segment, older ones having been given back, and its number; then whether it is in use from now on. */
uint64_t ggtrace_ring_take(struct ggtrace_writer * writer, uint32_t bytes, uint32_t * number);
void ggtrace_ring_use(struct ggtrace_writer * writer, uint32_t number, bool has_got_it);

/* When nobody writes any more: moves together what is left of a file that was used so far. Returns its new end. */
uint64_t ggtrace_ring_settle(struct ggtrace * log, uint64_t used);

/* By who may write to it: the thread that has it, under `busy`; CONTROL under the lock; ggtrace_close. */
void ggtrace_seal(struct ggtrace_writer * writer);

/* A record of run or definitions blocks, as its parts: each is padded to a multiple of 4. Under the lock. */
struct part {
    const void * bytes;
    size_t count;
};

bool ggtrace_put_locked(struct ggtrace * log, enum ggtrace_kind kind, enum ggtrace_type type, const struct part parts[],
                        int count);

static inline bool is_alive(const struct ggtrace * log) {
    return log && LOAD(log->shared->alive);
}

#endif
