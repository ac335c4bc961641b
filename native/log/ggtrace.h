/*
 * Writes a .ggtrace log (docs/reference/ggtrace-format.md) from inside a running program. Linux, libc only, C11 with GNU
 * builtins.
 *
 *     struct ggtrace * log = ggtrace_open("run.ggtrace", NULL);        // NULL and errno: continue without a log
 *     ggtrace_fact(log, "command", "llama-cli -m …");
 *     ggtrace_define_name(log, 1, "ffn_out-0", 9);
 *     …
 *     struct ggtrace_writer * writer = ggtrace_writer_of_thread(log, ith);
 *     uint64_t start = ggtrace_now(); … ; uint64_t computed = ggtrace_now(); … ; uint64_t end = ggtrace_now();
 *     ggtrace_operator(writer, tensor, start, computed, end, 0);
 *     …
 *     ggtrace_close(log);
 *
 * Rules of this file, because it runs inside other people's programs:
 *   - An event function makes no system call, takes no lock, allocates nothing, and reads no clock. It checks bounds and
 *     stores. It stores the record's first word last, so that a killed program leaves complete records only.
 *   - Every function may be called at any time, with whatever another function returned. With a closed log, in the child
 *     of a fork, or on a full disk, it drops records and counts them. Only ggtrace_open can fail, and NULL is a valid log.
 *   - One thread at a time uses a writer, and not from a signal handler that may interrupt the same thread.
 *   - No function except ggtrace_open changes errno.
 * A source file can define GGTRACE_POISON before this include, after all its other includes, to forbid malloc and stdio in
 * itself.
 */
#ifndef GGTRACE_H
#define GGTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "ggtrace-records.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the log is little-endian, and records are stored in memory layout"
#endif

/* ---- Sizes ---- */

#define GGTRACE_SEGMENT_BYTES (256u * 1024) /* the unit in which a writer takes space of the file; its first segments are smaller */
#define GGTRACE_BLOCK_BYTES (64u * 1024)    /* largest block; 4096 … 1 MiB, a multiple of 8, not larger than the segment */
#define GGTRACE_CACHE_LINE 64
#define GGTRACE_RECORD_BYTES_MAX 65532u     /* the largest u16 that is a multiple of 4; small blocks allow less */
#define GGTRACE_TEXT_BYTES_MAX 3072u        /* longer texts are cut, between characters; fits the smallest block */
#define GGTRACE_KEY_BYTES_MAX 256u
#define GGTRACE_NODES_MAX 16000u            /* of a graph in one record; larger graphs take several records */
#define GGTRACE_SPANS_MAX 256u              /* of a batch */
#define GGTRACE_SOURCES_MAX 256u            /* of a tensor; ggml's own limit is 10 */
#define GGTRACE_COUNTS_MAX 16u              /* of an operator */
#define GGTRACE_WRITERS_MAX 4096u           /* at the same time; further threads share a writer that drops and counts */

/* ---- The log ---- */

struct ggtrace;
struct ggtrace_writer;

struct ggtrace_options {
    uint32_t segment_bytes; /* 0: the default above */
    uint32_t block_bytes;
    uint64_t bytes_max; /* size limit of the file; 0: none. Records beyond it are dropped */
    bool ring; /* drop the oldest records instead, if the file system can punch holes: see ggtrace_is_ring */
    uint64_t slow_ns; /* with `ring`: keep only calls that last as long, see ggtrace-kept.h */
    bool replace; /* remove an existing file first; otherwise open fails with EEXIST */
    uint32_t mode; /* permissions of the file, less the umask; 0: 0666, or those of the replaced file */
    bool has_owner; /* change the owner of the file to this user and group, if permitted */
    uint32_t user, group;
};

struct ggtrace_totals {
    uint64_t written; /* event records; exact while no thread is writing */
    uint64_t dropped; /* event records without room in the file */
};

/*
 * Creates the file; writes the facts `format.version` and `pid` and a first reading of the clocks. Returns NULL and sets
 * errno if the file or its first segment cannot be created. It never opens an existing file, which another process may
 * have mapped.
 */
struct ggtrace * ggtrace_open(const char * path, const struct ggtrace_options * options);

/* Optional, while the process has one thread: saves 5 to 15 ms in ggtrace_open, which membarrier(2) takes with more threads. */
void ggtrace_prepare(void);

/*
 * Seals all open blocks, writes the totals, and cuts the file to the used length. Writers stay valid and drop records. A
 * thread in the middle of a record has a second to finish it; after that its block stays open, which readers can read,
 * and the file is not cut. The same applies to threads that hold writers if there is no membarrier(2).
 */
void ggtrace_close(struct ggtrace * log);

/*
 * In the child of a fork: closes the file without writing to it; the parent's log does not change. If the kernel can wipe
 * memory on fork (Linux 4.14), a child that does not call this is safe too; otherwise it must call this before it records
 * anything.
 */
void ggtrace_abandon(struct ggtrace * log);

void ggtrace_expect(struct ggtrace * log, uint32_t bytes); /* of definitions: takes the space for them now, if much is left of bytes_max */
/* Seals the open run block or definitions block, so that it gets its checksum. For events: ggtrace_writer_flush. */
void ggtrace_flush(struct ggtrace * log);

struct ggtrace_totals ggtrace_totals(const struct ggtrace * log);

/* Why the log last had no room for a record (it always had, bytes_max, RLIMIT_FSIZE, …, another program truncated it): END contains it. */
enum ggtrace_full { GGTRACE_FULL_NOT, GGTRACE_FULL_LIMIT, GGTRACE_FULL_PROCESS_LIMIT, GGTRACE_FULL_DISK, GGTRACE_FULL_OTHER, GGTRACE_FULL_CUT };
enum ggtrace_full ggtrace_full(const struct ggtrace * log);

/*
 * Does the log keep its last part? The file may exceed bytes_max by the segments that threads are writing, 16 to 256 KiB
 * each, and by definitions that need more than half of it. The file has holes until ggtrace_close.
 */
bool ggtrace_is_ring(const struct ggtrace * log);

/* Run blocks: at any time, from any thread. Texts end at their NUL. */
bool ggtrace_fact(struct ggtrace * log, const char * key, const char * value);
bool ggtrace_clocks(struct ggtrace * log); /* reads the three clocks itself */

/*
 * Definitions: from any thread, under one lock. The caller chooses ids, defines each of them once, and does so before it
 * writes an event with that id. false: there was no room, and the definition is lost (and counted). The caller may repeat
 * it later.
 */
bool ggtrace_define_name(struct ggtrace * log, uint32_t id, const char * text, size_t bytes);
bool ggtrace_define_op(struct ggtrace * log, uint32_t number, uint32_t name);
bool ggtrace_define_type(struct ggtrace * log, uint32_t number, uint32_t name);
bool ggtrace_define_buffer(struct ggtrace * log, const struct ggtrace_buffer * buffer);
bool ggtrace_define_mapping(struct ggtrace * log, const struct ggtrace_mapping * mapping);
bool ggtrace_define_tensor(struct ggtrace * log, const struct ggtrace_tensor * tensor, const uint32_t * sources);
bool ggtrace_define_counted(struct ggtrace * log, const struct ggtrace_counted * counted);
bool ggtrace_define_graph(struct ggtrace * log, uint32_t id, uint32_t backend, const uint32_t * nodes, uint32_t count);

/* ---- Writers ---- */

/*
 * The fields that every record touches come first. The size is two cache lines, because CPUs prefetch pairs of lines:
 * so threads do not slow each other down.
 */
struct ggtrace_writer {
    uint8_t * at;     /* address of the next record. Atomic, as is `end`, for ggtrace_close */
    uintptr_t end;    /* of the open block; 0: none */
    uint64_t cursor;  /* the value of the reader's time cursor at this record */
    uint64_t records; /* event records written */
    uint32_t busy;    /* atomic; 1 while a record is being written, so that ggtrace_close can wait for it */
    uint32_t worker;
    struct ggtrace * log; /* NULL: drop everything (no log, or the child of a fork, where this memory is wiped) */
    uint8_t * block, * segment, * segment_end;
    uint64_t segment_offset, used_end; /* in the file */
    uint64_t records_sealed;           /* event records in sealed blocks */
    uint32_t sequence, tid, dropped, dropped_unreported;
    uint32_t call;   /* the llama_decode call that operators belong to */
    uint32_t holder; /* thread id; 0: none. Under the lock */
    uint16_t kind, id, next_free, is_full; /* is_full: a record had no room after the open block's last one */
} __attribute__((aligned(128)));

GGTRACE_SIZE(ggtrace_writer, 128);

/*
 * A writer for the calling thread until it is released; never NULL. `worker` is ggml's ith or GGTRACE_NO_WORKER.
 * Takes a short lock. A released writer keeps its block open, and continues it if it is acquired again for the same thread
 * and worker.
 */
struct ggtrace_writer * ggtrace_writer_acquire(struct ggtrace * log, uint32_t worker);
void ggtrace_writer_release(struct ggtrace_writer * writer);

/* Seals the open block. Only for the thread that holds the writer. */
void ggtrace_writer_flush(struct ggtrace_writer * writer);

/* ---- For the inline functions only ---- */

/*
 * initial-exec: one load instead of a call to __tls_get_addr, which may allocate memory. Such a library must be loaded when
 * the program starts (LD_PRELOAD), or it needs 16 bytes of the static TLS that libc reserves for dlopen.
 */
extern __thread struct ggtrace_writer * ggtrace_thread_writers[2]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct ggtrace_writer * ggtrace_thread_writer_change(struct ggtrace * log, uint32_t worker);
void * ggtrace_begin_in_next_block(struct ggtrace_writer * writer, uint32_t size, uint64_t time);
void ggtrace_operator_any(struct ggtrace_writer * writer, enum ggtrace_type type, uint32_t tensor, uint64_t start,
                          uint64_t compute_end, uint64_t end, uint64_t extra);

typedef uint32_t ggtrace_word __attribute__((may_alias));

#define GGTRACE_INLINE static inline __attribute__((always_inline, unused))
#define GGTRACE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * Reserves room for a record; NULL: dropped. This fence stops only the compiler from reordering; ggtrace_close makes the
 * CPU's part of it happen, with membarrier(2).
 */
GGTRACE_INLINE void * ggtrace_begin(struct ggtrace_writer * writer, uint32_t size, uint64_t time) {
    __atomic_store_n(&writer->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const uintptr_t end = __atomic_load_n(&writer->end, __ATOMIC_RELAXED);
    uint8_t * at = __atomic_load_n(&writer->at, __ATOMIC_RELAXED);
    if (GGTRACE_UNLIKELY((uintptr_t) at + size > end)) return ggtrace_begin_in_next_block(writer, size, time);
    return at;
}

/* Stores the first word last: with it, the record becomes valid. */
GGTRACE_INLINE void ggtrace_commit(struct ggtrace_writer * writer, void * record, enum ggtrace_type type,
                                   uint32_t size) {
    __atomic_store_n((ggtrace_word *) record, (uint32_t) type | size << 16, __ATOMIC_RELEASE);
    writer->at = (uint8_t *) record + size;
    __atomic_store_n(&writer->records, writer->records + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&writer->busy, 0, __ATOMIC_RELEASE);
}

/* ---- What threads call ---- */

extern int (*ggtrace_clock)(clockid_t clock, struct timespec * time); /* reads all times: clock_gettime, unless set before a log is opened */

GGTRACE_INLINE uint64_t ggtrace_now(void) {
    struct timespec now;
    ggtrace_clock(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* The writer of the calling thread, released when it ends. A thread has two: one that calls llama_decode is worker 0 too, and begins no block at each change. */
GGTRACE_INLINE struct ggtrace_writer * ggtrace_writer_of_thread(struct ggtrace * log, uint32_t worker) {
    struct ggtrace_writer * writer = ggtrace_thread_writers[worker != GGTRACE_NO_WORKER];
    const bool fits = writer && log && writer->log == log && writer->worker == worker;
    return fits ? writer : ggtrace_thread_writer_change(log, worker);
}

/* A small operator in the open block; false: the block has no room, or another record is needed. Without a branch on `extra`. */
GGTRACE_INLINE bool ggtrace_operator_fits(struct ggtrace_writer * writer, enum ggtrace_type type, uint32_t tensor, uint64_t start,
                                          uint64_t compute_end, uint64_t end, uint64_t extra) {
    const uint64_t compute = compute_end - start, wait = end - compute_end;
    const uint64_t beyond = (start ^ writer->cursor) | tensor >> GGTRACE_SMALL_TENSOR_BITS | wait >> GGTRACE_SMALL_WAIT_BITS |
                            compute >> GGTRACE_SMALL_COMPUTE_BITS | extra >> 32;
    __atomic_store_n(&writer->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct ggtrace_operator_small_extra_record * record = (void *) __atomic_load_n(&writer->at, __ATOMIC_RELAXED);
    const bool has_room = (uintptr_t) (record + 1) <= __atomic_load_n(&writer->end, __ATOMIC_RELAXED);
    if (GGTRACE_UNLIKELY(!has_room || beyond)) {
        __atomic_store_n(&writer->busy, 0, __ATOMIC_RELEASE);
        return false;
    }
    const bool has_extra = type == GGTRACE_OPERATOR_SMALL_FUSED || extra;
    const uint32_t size = sizeof(struct ggtrace_operator_small_record) + 4u * has_extra;
    record->packed = tensor | wait << GGTRACE_SMALL_TENSOR_BITS | compute << (GGTRACE_SMALL_TENSOR_BITS + GGTRACE_SMALL_WAIT_BITS);
    record->extra = (uint32_t) extra; /* if 0: of the next record, where it is 0 already */
    writer->cursor = end;
    ggtrace_commit(writer, record, type == GGTRACE_OPERATOR_SMALL_FUSED ? type : (enum ggtrace_type) (type + has_extra), size);
    /* For the next record: a barrier waits until all earlier stores have reached the cache. */
    __builtin_prefetch((const uint8_t *) record + size + GGTRACE_CACHE_LINE, 1);
    return true;
}

/*
 * An operator that computed from start to compute_end, then waited at the barrier until end (equal to compute_end: did not
 * wait). inner_wait: nanoseconds of [start, compute_end) spent in barriers inside the op; the record is then 4 bytes longer.
 */
GGTRACE_INLINE void ggtrace_operator(struct ggtrace_writer * writer, uint32_t tensor, uint64_t start,
                                     uint64_t compute_end, uint64_t end, uint64_t inner_wait) {
    if (ggtrace_operator_fits(writer, GGTRACE_OPERATOR_SMALL, tensor, start, compute_end, end, inner_wait)) return;
    ggtrace_operator_any(writer, GGTRACE_OPERATOR_SMALL, tensor, start, compute_end, end, inner_wait);
}

/* Nodes computed in one step. first and last are equal if the hook missed a node that was not fused. */
GGTRACE_INLINE void ggtrace_operator_fused(struct ggtrace_writer * writer, uint32_t first, uint64_t start,
                                           uint64_t compute_end, uint64_t end, uint32_t last) {
    if (ggtrace_operator_fits(writer, GGTRACE_OPERATOR_SMALL_FUSED, first, start, compute_end, end, last)) return;
    ggtrace_operator_any(writer, GGTRACE_OPERATOR_SMALL_FUSED, first, start, compute_end, end, last);
}

/*
 * Sets the call that the next operators of this writer belong to (GGTRACE_NO_CALL: none). Writes a record only if the
 * call changes.
 */
void ggtrace_call(struct ggtrace_writer * writer, uint64_t time, uint32_t call);

/* A call, and the spans of its batch in their order; spans beyond GGTRACE_SPANS_MAX are left out. */
GGTRACE_INLINE void ggtrace_token(struct ggtrace_writer * writer, const struct ggtrace_token * token,
                                  const struct ggtrace_span * spans, uint32_t count) {
    if (count > GGTRACE_SPANS_MAX) count = GGTRACE_SPANS_MAX;
    const uint32_t spans_bytes = count * (uint32_t) sizeof(*spans), size = 4 + sizeof(*token) + spans_bytes;
    uint8_t * record = ggtrace_begin(writer, size, token->start);
    if (GGTRACE_UNLIKELY(!record)) return;
    memcpy(record + 4, token, sizeof(*token));
    if (count) memcpy(record + 4 + sizeof(*token), spans, spans_bytes);
    ggtrace_commit(writer, record, GGTRACE_TOKEN, size);
}

GGTRACE_INLINE void ggtrace_copy(struct ggtrace_writer * writer, const struct ggtrace_copy * copy) {
    uint8_t * record = ggtrace_begin(writer, 4 + sizeof(*copy), copy->start);
    if (GGTRACE_UNLIKELY(!record)) return;
    memcpy(record + 4, copy, sizeof(*copy));
    ggtrace_commit(writer, record, GGTRACE_COPY, 4 + sizeof(*copy));
}

/* Writes a record of fixed size; the remaining arguments are its fields. Its first word stays 0 until the commit. */
#define GGTRACE_WRITE(writer, at_time, type, structure, ...)                                      \
    do {                                                                                          \
        struct structure * room_ = ggtrace_begin((writer), sizeof(*room_), (at_time));            \
        if (GGTRACE_UNLIKELY(!room_)) return;                                                     \
        *room_ = (struct structure){__VA_ARGS__};                                                 \
        ggtrace_commit((writer), room_, (type), sizeof(*room_));                                  \
    } while (0)

/*
 * One graph run on one backend. graph: id of a definition; call: id of the call; split: number of the graph run within one
 * run of a scheduler, or GGTRACE_NO_SPLIT.
 */
GGTRACE_INLINE void ggtrace_graph(struct ggtrace_writer * writer, uint64_t start, uint64_t end, uint32_t graph,
                                  uint32_t call, int32_t status, uint32_t backend, uint32_t split) {
    GGTRACE_WRITE(writer, start, GGTRACE_GRAPH, ggtrace_graph_record, .start = start, .end = end, .graph = graph,
                  .call = call, .status = status, .backend = backend, .split = split);
}

/* A part of a call that is not a graph run. what: enum ggtrace_part. */
GGTRACE_INLINE void ggtrace_part(struct ggtrace_writer * writer, uint64_t start, uint64_t end, uint32_t call, uint32_t what) {
    GGTRACE_WRITE(writer, start, GGTRACE_PART, ggtrace_part_record, .start = start, .end = end, .call = call, .what = what);
}

GGTRACE_INLINE void ggtrace_free(struct ggtrace_writer * writer, uint64_t time, uint32_t buffer) {
    GGTRACE_WRITE(writer, time, GGTRACE_FREE, ggtrace_free_record, .time = time, .buffer = buffer);
}

GGTRACE_INLINE void ggtrace_counter(struct ggtrace_writer * writer, uint64_t time, uint32_t name, double value) {
    GGTRACE_WRITE(writer, time, GGTRACE_COUNTER, ggtrace_counter_record, .time = time, .value = value, .name = name);
}

GGTRACE_INLINE void ggtrace_range_begin(struct ggtrace_writer * writer, uint64_t time, uint32_t name) {
    GGTRACE_WRITE(writer, time, GGTRACE_RANGE_BEGIN, ggtrace_range_begin_record, .time = time, .name = name);
}

GGTRACE_INLINE void ggtrace_range_end(struct ggtrace_writer * writer, uint64_t time) {
    GGTRACE_WRITE(writer, time, GGTRACE_RANGE_END, ggtrace_range_end_record, .time = time);
}

/* The new state of a thread; cpu: where it runs, or ran last. */
GGTRACE_INLINE void ggtrace_state(struct ggtrace_writer * writer, uint64_t time, uint32_t tid, uint32_t cpu,
                                  enum ggtrace_state state) {
    GGTRACE_WRITE(writer, time, GGTRACE_STATE, ggtrace_state_record, .time = time, .tid = tid, .cpu = cpu, .state = (uint32_t) state);
}

/*
 * The counts of the operator that is written next: values[i] belongs to the counter defined with index i; zeros take no
 * room. is_scaled: an event was counted only part of the time, and its value was extrapolated.
 */
GGTRACE_INLINE void ggtrace_counts(struct ggtrace_writer * writer, uint64_t time, const uint64_t * values, uint32_t count,
                                   bool is_scaled) {
    uint32_t present = 0, wide = 0, size = 8;
    for (uint32_t i = 0; i < count && i < GGTRACE_COUNTS_MAX; i++) {
        if (!values[i]) continue;
        present |= 1u << i;
        if (values[i] >> 32) wide |= 1u << i;
        size += values[i] >> 32 ? 8 : 4;
    }
    if (!present && !is_scaled) return;
    /* The operator must follow in the same block. */
    const uint32_t room = size + sizeof(struct ggtrace_cursor_record) + sizeof(struct ggtrace_operator_long_record);
    uint8_t * record = ggtrace_begin(writer, room, time);
    if (GGTRACE_UNLIKELY(!record)) return;
    ggtrace_word * at = (ggtrace_word *) (void *) record + 1;
    *at++ = present | wide << 16;
    for (uint32_t i = 0; i < count && i < GGTRACE_COUNTS_MAX; i++) {
        if (!values[i]) continue;
        *at++ = (uint32_t) values[i];
        if (values[i] >> 32) *at++ = (uint32_t) (values[i] >> 32);
    }
    ggtrace_commit(writer, record, is_scaled ? GGTRACE_COUNTS_SCALED : GGTRACE_COUNTS, size);
}

/*
 * Less is recorded from now on, because recorded decode calls took too much longer than others, both in ns per call:
 * longer than the guard's percentage allows. level: 1 calls, 2 graphs.
 */
GGTRACE_INLINE void ggtrace_level(struct ggtrace_writer * writer, uint64_t time, uint32_t level, uint32_t percent,
                                  uint64_t with, uint64_t without) {
    GGTRACE_WRITE(writer, time, GGTRACE_LEVEL, ggtrace_level_record, .time = time, .level = level, .percent = percent,
                  .with = with, .without = without);
}

/* Records that the caller could not make. Records without room in the file are counted automatically, with why 0. */
GGTRACE_INLINE void ggtrace_loss(struct ggtrace_writer * writer, uint64_t time, uint32_t records, uint32_t why) {
    GGTRACE_WRITE(writer, time, GGTRACE_LOSS, ggtrace_loss_record, .time = time, .records = records, .why = why);
}

/*
 * ids: tokens × k of them, token by token. If they do not fit into one record, they are split between tokens. Not inline:
 * it copies kilobytes.
 */
void ggtrace_experts(struct ggtrace_writer * writer, uint64_t time, uint32_t tensor, uint32_t tokens, uint32_t k,
                     uint32_t call, const int32_t * ids);

#endif

/* Outside the include guard, so that a file can include the header early and poison after its last include. */
#if defined(GGTRACE_POISON) && !defined(GGTRACE_POISONED)
#define GGTRACE_POISONED
#pragma GCC poison malloc calloc realloc reallocarray free strdup strndup aligned_alloc posix_memalign memalign
#pragma GCC poison printf fprintf vfprintf dprintf asprintf sprintf puts fputs fputc putchar perror fopen fwrite fread
#pragma GCC poison fflush fclose setvbuf stdout stderr stdin
#endif
