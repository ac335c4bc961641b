/* Declarations that the files of the log writer share. No other file includes this one. */
#pragma once

/* Each of these files includes this first: GNU's extensions must be named before the first header of the system. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ggtrace.h"

enum {
    CONTROL = 0, /* the writer of run blocks and definitions blocks, used under the lock */
    NOT_ONE = GGTRACE_WRITERS_MAX - 1, /* for threads beyond GGTRACE_WRITERS_MAX: it drops and counts records */
    SEGMENT_FIRST_BYTES = 16 * 1024, /* of a writer; the next ones grow up to the log's segment_bytes */
    SEGMENT_GROWTH = 4, /* each has more bytes than the one before, by this part of them: so a small log has little unused space */
    RING_SEGMENTS_MIN = 64, /* number of segments in a ring, unless they would be smaller than the first */
    BLOCK_BYTES_MIN = 4096,
    BLOCK_BYTES_MAX = 1 << 20,
    END_BYTES = 128, /* reserved in each segment of CONTROL, so that a log on a full disk still gets its END */
    BLOCK_OVERHEAD = sizeof(struct ggtrace_block) + sizeof(struct ggtrace_loss_record) + END_BYTES,
};

_Static_assert(END_BYTES >= BLOCK_OVERHEAD - END_BYTES + sizeof(struct ggtrace_end_record) + 4, "the END fits");
_Static_assert(GGTRACE_KEY_BYTES_MAX + GGTRACE_TEXT_BYTES_MAX + 16 + BLOCK_OVERHEAD <= BLOCK_BYTES_MIN, "a FACT fits");
_Static_assert(4 + sizeof(struct ggtrace_token) + 12 * GGTRACE_SPANS_MAX + BLOCK_OVERHEAD <= BLOCK_BYTES_MIN, "a TOKEN fits");
_Static_assert(4 + sizeof(struct ggtrace_tensor) + 4 * GGTRACE_SOURCES_MAX + BLOCK_OVERHEAD <= BLOCK_BYTES_MIN,
               "a TENSOR fits");
_Static_assert(BLOCK_BYTES_MAX <= UINT32_MAX / 2, "sizes of blocks are added as u32");

/* A segment of a ring log. */
struct piece {
    uint64_t offset, since, until; /* offset: in the file; since: when it was taken; until: no record in the piece starts later */
    uint32_t bytes, is_permanent;
    uint32_t before, next; /* neighbours in file order */
    uint32_t next_released; /* the piece released after it; for a removed piece: the next free number */
};

/* A call that ended. */
struct call_span {
    uint64_t start, end;
};

enum { RECENT_CALLS = 1024 };

/* The pieces of a ring log: in file order, and among them the released ones, oldest first. Has its own lock. */
struct ring {
    pthread_mutex_t lock;
    struct piece * pieces;
    uint32_t most, count, unused;
    uint32_t first, last, first_released, last_released;
    uint64_t permanent, removable; /* bytes of pieces that are never removed, and of the others */
    uint64_t * from; /* mapped from the file: the time from which the log is complete */
    size_t mapped; /* bytes of that mapping, from the begin of its page on */
    struct kept * kept; /* behind it in the file: the calls that are kept; NULL: the last part is */
    uint64_t kept_bytes; /* of pieces that would have been removed */
    struct call_span recent[RECENT_CALLS]; /* the latest calls: some of them may precede a slow one */
    uint64_t recent_count, slow_end; /* slow_end: of the latest slow call */
    uint32_t current[GGTRACE_WRITERS_MAX];
};

/* A time whose records are kept, and what was left out before it since the log began. In the file, see docs/reference/ggtrace-format.md. */
struct kept_range {
    uint64_t from, until, left_out, left_out_ns;
};

enum { KEPT_MAX = 500 };

struct kept {
    uint64_t limit_ns, left_out, left_out_ns, no_room, count;
    struct kept_range ranges[KEPT_MAX];
};

/* State that threads change. A forked child finds zeros here: no log. */
struct shared {
    pthread_mutex_t lock;  /* protects the list of writers, CONTROL, closing */
    uint32_t alive;        /* 0 in a forked child and after close */
    uint32_t closing;      /* no more events are accepted */
    uint32_t definitions;  /* number of definition serials so far */
    uint32_t writer_count; /* all writers ever made, CONTROL included */
    uint16_t free_writer;  /* 0: none; a list through next_free */
    uint64_t file_end;     /* offset of the next segment */
    uint64_t retry_at, retry_after;
    uint32_t full;         /* enum ggtrace_full */
    uint32_t is_cut;       /* another program truncated the file: the log has ended */
    uint64_t allocated;    /* the file had at least this size */
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
    uint64_t slow_ns;
    bool wiped_on_fork, has_barrier, is_ring;
};

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)
#define ADD(field, value) __atomic_fetch_add(&(field), (value), __ATOMIC_ACQ_REL)

/* Is the file descriptor still the log file that was opened? */
bool ggtrace_is_ours(const struct ggtrace * log);

/* Writes all bytes at an offset of the file, also in a sandbox that denies pwrite; false and errno on failure. */
bool ggtrace_write_at(const struct ggtrace * log, const void * bytes, size_t count, uint64_t offset);

/* Is this the errno of a system call that a sandbox denies or the kernel does not have? */
static inline bool ggtrace_is_denied(int error) {
    return error == ENOSYS || error == EPERM || error == EACCES;
}

/* Did another program truncate the file? Then the log has ended. */
bool ggtrace_is_cut(const struct ggtrace * log);

/* Notes that the file reaches up to this offset. */
void ggtrace_note_allocated(const struct ggtrace * log, uint64_t end);

/* Of a log that was cut, when no thread writes any more: the first page behind what is left of the file; false on failure. */
bool ggtrace_find_rest(const struct ggtrace * log, uint64_t * end);

/* Gives the writer a new segment of at least that size; false and errno on failure. */
bool ggtrace_take_segment(struct ggtrace_writer * writer, uint32_t needed);

static inline uint32_t ggtrace_segment_bytes(const struct ggtrace_writer * writer) {
    return (uint32_t) (writer->segment_end - writer->segment);
}

/* The checksum of a block with that size. */
uint32_t ggtrace_checksum(const struct ggtrace_block * block, uint32_t size);

/* Turns a log into a ring log, before anything is written to it. false: this file system does not support it. */
bool ggtrace_ring_start(struct ggtrace * log, struct ggtrace_writer * control);

/* Returns the offset of a new segment, and its number; removes older pieces if needed. The second marks it as in use. */
uint64_t ggtrace_ring_take(struct ggtrace_writer * writer, uint32_t bytes, uint32_t * number);
void ggtrace_ring_use(struct ggtrace_writer * writer, uint32_t number, bool is_used);

/* After the last write: moves the remaining pieces together. `used` is the end of the file so far; returns the new end. */
uint64_t ggtrace_ring_settle(struct ggtrace * log, uint64_t used);

/* Under the ring's lock: is a piece part of what is kept? */
bool ggtrace_is_kept(const struct ring * ring, const struct piece * piece);

/* Callers: the writer's thread, under `busy`; for CONTROL, under the lock; ggtrace_close. */
void ggtrace_seal(struct ggtrace_writer * writer);

/* One part of a record in a run or definitions block, padded to a multiple of 4. Under the lock. */
struct part {
    const void * bytes;
    size_t count;
};

bool ggtrace_put_locked(struct ggtrace * log, enum ggtrace_kind kind, enum ggtrace_type type, const struct part parts[],
                        int count);

static inline bool is_alive(const struct ggtrace * log) {
    return log && LOAD(log->shared->alive);
}
