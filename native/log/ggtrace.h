/*
 * Writes a .ggtrace log (docs/ggtrace-format.md) from inside a running program. Linux, libc only, C11 with GNU
 * builtins.
 *
 *     struct ggtrace * log = ggtrace_open("run.ggtrace", NULL);        // NULL and errno: run on without a log
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
 *   - an event function makes no system call, takes no lock, allocates nothing, and reads no clock: a bounds check,
 *     stores, and the record's first word last, so that what a killed program leaves behind holds whole records only;
 *   - every function may be called at any time and with what any other returned: on a log that was closed, in the child
 *     of a fork, on a full disk it drops records and counts them. Only ggtrace_open can fail, and NULL is a valid log;
 *   - a writer is used by one thread at a time, and not from a signal handler that may interrupt its own thread;
 *   - errno is left as it was (except by ggtrace_open).
 * A file that calls it may define GGTRACE_POISON before the include (after all other includes) to be kept from malloc
 * and stdio itself.
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
#error "the log is little-endian, and records are stored as they lie in memory"
#endif

/* ---- Sizes ---- */

#define GGTRACE_SEGMENT_BYTES (256u * 1024) /* of the file, taken by a writer at a time; its first ones are smaller */
#define GGTRACE_BLOCK_BYTES (64u * 1024)    /* a block at most; 4096 … 1 MiB, a multiple of 8, not above the segment */
#define GGTRACE_CACHE_LINE 64
#define GGTRACE_RECORD_BYTES_MAX 65532u     /* the largest u16 that is a multiple of 4; small blocks allow less */
#define GGTRACE_TEXT_BYTES_MAX 3072u        /* longer texts are cut, between characters; fits the smallest block */
#define GGTRACE_KEY_BYTES_MAX 256u
#define GGTRACE_NODES_MAX 16000u            /* of a graph, in one record; larger ones are cut */
#define GGTRACE_SPANS_MAX 256u              /* of a batch */
#define GGTRACE_SOURCES_MAX 256u            /* of a tensor; ggml's own limit is 10 */
#define GGTRACE_COUNTS_MAX 16u              /* of an operator */
#define GGTRACE_WRITERS_MAX 4096u           /* at the same time; the threads above get one that drops and counts */

/* ---- The log ---- */

struct ggtrace;
struct ggtrace_writer;

struct ggtrace_options {
    uint32_t segment_bytes; /* 0: as above */
    uint32_t block_bytes;
    uint64_t bytes_max; /* of the file; 0: any. Records that would go beyond are dropped */
    bool ring; /* the oldest ones are, where the file system can give back space: see ggtrace_is_ring */
    bool replace; /* remove a file of that name first; otherwise it is left alone, and open fails with EEXIST */
    uint32_t mode; /* rights of the file, less the umask; 0: 0666, or those of a file that is replaced */
    bool has_owner; /* the file belongs to this user and group, if we may say so */
    uint32_t user, group;
};

struct ggtrace_totals {
    uint64_t written; /* event records; exact when nobody is writing */
    uint64_t dropped; /* event records that found no room */
};

/*
 * Creates the file; writes the facts `format.version` and `pid` and a first reading of the clocks. NULL and errno
 * where the file cannot be made or its first segment not be had. The file is never one that another process may have
 * mapped.
 */
struct ggtrace * ggtrace_open(const char * path, const struct ggtrace_options * options);

/* Optional, while the process has one thread: ggtrace_open takes some 5 to 15 ms less then (the kernel's membarrier(2) waits). */
void ggtrace_prepare(void);

/*
 * Seals what all writers hold, writes the totals, cuts the file to what was used. Writers stay valid and drop. A
 * thread that is in the middle of a record gets a second to finish it; else its block stays open, which readers can
 * read, and the file is not cut. So it is, with threads that still hold writers, where there is no membarrier(2).
 */
void ggtrace_close(struct ggtrace * log);

/*
 * In the child of a fork: closes the file without writing to it; the parent's log is not touched. Where the kernel
 * can wipe memory on fork (Linux 4.14) a child that does not call it is safe too; otherwise call it before anything
 * is recorded.
 */
void ggtrace_abandon(struct ggtrace * log);

/* Seals the open run or definitions block, so that its checksum covers it. Events: ggtrace_writer_flush. */
void ggtrace_flush(struct ggtrace * log);

struct ggtrace_totals ggtrace_totals(const struct ggtrace * log);

/*
 * Does the log keep its last part? Its size may be above bytes_max by what threads are writing just now, 16 to 256 KiB
 * each, and by definitions where they need more than half of it. Until ggtrace_close the file has holes.
 */
bool ggtrace_is_ring(const struct ggtrace * log);

/* Run blocks. Any time, any thread. Texts end at their NUL. */
bool ggtrace_fact(struct ggtrace * log, const char * key, const char * value);
bool ggtrace_clocks(struct ggtrace * log); /* reads the three clocks itself */

/*
 * Definitions: any thread, one lock. The caller chooses ids and sees to it that each is defined once, and before an
 * event that uses it is written. false: there was no room, the definition is lost (and counted); it may be made again
 * later.
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
 * First the fields that every record touches. Whole cache lines, two of them (processors fetch pairs), so that
 * threads do not slow each other down.
 */
struct ggtrace_writer {
    uint8_t * at;     /* where the next record goes. Atomic, as the next, for ggtrace_close */
    uintptr_t end;    /* of the open block; 0: none */
    uint64_t cursor;  /* what the reader's cursor will be */
    uint64_t records; /* event records written */
    uint32_t busy;    /* atomic; 1 while a record is being written, so that ggtrace_close can wait for it */
    uint32_t worker;
    struct ggtrace * log; /* NULL: drops everything (no log, or the child of a fork, where this memory is wiped) */
    uint8_t * block, * segment, * segment_end;
    uint64_t segment_offset, used_end; /* in the file */
    uint64_t records_sealed;           /* event records in sealed blocks */
    uint32_t sequence, tid, dropped, dropped_untold;
    uint32_t call;   /* of llama_decode, that operators belong to */
    uint32_t holder; /* thread id; 0: nobody. Under the lock */
    uint16_t kind, id, next_free;
} __attribute__((aligned(128)));

GGTRACE_SIZE(ggtrace_writer, 128);

/*
 * A writer for the calling thread until it is released; never NULL. `worker` is ggml's ith or GGTRACE_NO_WORKER.
 * Takes a short lock. A released writer keeps its block open, and goes on with it if the same thread and worker come
 * back.
 */
struct ggtrace_writer * ggtrace_writer_acquire(struct ggtrace * log, uint32_t worker);
void ggtrace_writer_release(struct ggtrace_writer * writer);

/* Seals the open block. Only by the thread that holds the writer. */
void ggtrace_writer_flush(struct ggtrace_writer * writer);

/* ---- For the inline functions only ---- */

/*
 * initial-exec: one load instead of a call to __tls_get_addr, which may allocate. Such a library has to be there when
 * the program starts (LD_PRELOAD), or find 16 bytes in the surplus that libc keeps for dlopen.
 */
extern __thread struct ggtrace_writer * ggtrace_thread_writers[2]
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct ggtrace_writer * ggtrace_thread_writer_change(struct ggtrace * log, uint32_t worker);
void * ggtrace_begin_in_next_block(struct ggtrace_writer * writer, uint32_t size, uint64_t time);
void ggtrace_operator_unusual(struct ggtrace_writer * writer, uint32_t tensor, uint64_t start, uint64_t compute_end,
                              uint64_t end, uint64_t inner, uint32_t last);

typedef uint32_t ggtrace_word __attribute__((may_alias));

#define GGTRACE_INLINE static inline __attribute__((always_inline, unused))
#define GGTRACE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * Room for a record; NULL: dropped. The fence is for the compiler only: the processor's part of it is paid by
 * ggtrace_close, with membarrier(2).
 */
GGTRACE_INLINE void * ggtrace_begin(struct ggtrace_writer * writer, uint32_t size, uint64_t time) {
    __atomic_store_n(&writer->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const uintptr_t end = __atomic_load_n(&writer->end, __ATOMIC_RELAXED);
    uint8_t * at = __atomic_load_n(&writer->at, __ATOMIC_RELAXED);
    if (GGTRACE_UNLIKELY((uintptr_t) at + size > end)) return ggtrace_begin_in_next_block(writer, size, time);
    return at;
}

/* The first word last: it is what makes the record exist. */
GGTRACE_INLINE void ggtrace_commit(struct ggtrace_writer * writer, void * record, enum ggtrace_type type,
                                   uint32_t size) {
    __atomic_store_n((ggtrace_word *) record, (uint32_t) type | size << 16, __ATOMIC_RELEASE);
    writer->at = (uint8_t *) record + size;
    __atomic_store_n(&writer->records, writer->records + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&writer->busy, 0, __ATOMIC_RELEASE);
}

/* ---- What threads call ---- */

GGTRACE_INLINE uint64_t ggtrace_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/*
 * The calling thread's own writer, released when the thread ends. It has two of them: a thread that calls
 * llama_decode is worker 0 as well, and shall not have to begin another block each time it changes its hat.
 */
GGTRACE_INLINE struct ggtrace_writer * ggtrace_writer_of_thread(struct ggtrace * log, uint32_t worker) {
    struct ggtrace_writer * writer = ggtrace_thread_writers[worker != GGTRACE_NO_WORKER];
    const bool fits = writer && log && writer->log == log && writer->worker == worker;
    return fits ? writer : ggtrace_thread_writer_change(log, worker);
}

/* All three kinds of OPERATOR. Their u32 times hold 4.29 s; what does not fit them goes another way. */
GGTRACE_INLINE void ggtrace_operator_any(struct ggtrace_writer * writer, enum ggtrace_type type, uint32_t tensor,
                                         uint64_t start, uint64_t compute_end, uint64_t end, uint64_t inner,
                                         uint32_t last) {
    const uint32_t size = type == GGTRACE_OPERATOR ? sizeof(struct ggtrace_operator_record)
                                                   : sizeof(struct ggtrace_operator_extra_record);
    struct ggtrace_operator_extra_record * record = ggtrace_begin(writer, size, start);
    if (GGTRACE_UNLIKELY(!record)) return;
    const uint64_t delta = start - writer->cursor, compute = compute_end - start, wait = end - compute_end;
    if (GGTRACE_UNLIKELY((delta | compute | wait | inner) >> 32)) {
        ggtrace_operator_unusual(writer, tensor, start, compute_end, end, inner, last);
        return;
    }
    record->tensor = tensor;
    record->start = (uint32_t) delta;
    record->compute = (uint32_t) compute;
    record->wait = (uint32_t) wait;
    if (type == GGTRACE_OPERATOR_INNER) record->extra = (uint32_t) inner;
    if (type == GGTRACE_OPERATOR_FUSED) record->extra = last;
    writer->cursor = end;
    ggtrace_commit(writer, record, type, size);
    /* For the next one: a barrier waits until all that was stored before it has reached the cache. */
    __builtin_prefetch((const uint8_t *) record + size + GGTRACE_CACHE_LINE, 1);
}

/*
 * Computed from start to compute_end, then waited at the barrier until end (compute_end again: did not wait).
 * inner_wait: nanoseconds of [start, compute_end) spent in barriers inside the op; such a record is 4 bytes longer.
 */
GGTRACE_INLINE void ggtrace_operator(struct ggtrace_writer * writer, uint32_t tensor, uint64_t start,
                                     uint64_t compute_end, uint64_t end, uint64_t inner_wait) {
    if (GGTRACE_UNLIKELY(inner_wait)) {
        ggtrace_operator_any(writer, GGTRACE_OPERATOR_INNER, tensor, start, compute_end, end, inner_wait, 0);
    } else {
        ggtrace_operator_any(writer, GGTRACE_OPERATOR, tensor, start, compute_end, end, 0, 0);
    }
}

/* Nodes that were computed in one go; first and last are one where the hook missed a node without fusion. */
GGTRACE_INLINE void ggtrace_operator_fused(struct ggtrace_writer * writer, uint32_t first, uint64_t start,
                                           uint64_t compute_end, uint64_t end, uint32_t last) {
    ggtrace_operator_any(writer, GGTRACE_OPERATOR_FUSED, first, start, compute_end, end, 0, last);
}

/*
 * Operators of this writer belong to this call from now on (GGTRACE_NO_CALL: to none). Costs a record only where the
 * call is another than before.
 */
void ggtrace_call(struct ggtrace_writer * writer, uint64_t time, uint32_t call);

/* The spans of the batch, in its order; those above GGTRACE_SPANS_MAX are left out. */
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

/* A record of fixed size; the rest of the arguments are its fields. Its first word stays 0, as it was, to the end. */
#define GGTRACE_WRITE(writer, at_time, type, structure, ...)                                      \
    do {                                                                                          \
        struct structure * room_ = ggtrace_begin((writer), sizeof(*room_), (at_time));            \
        if (GGTRACE_UNLIKELY(!room_)) return;                                                     \
        *room_ = (struct structure){__VA_ARGS__};                                                 \
        ggtrace_commit((writer), room_, (type), sizeof(*room_));                                  \
    } while (0)

/*
 * One graph compute, on one backend. graph is the id of a definition, call that of the token; split counts the graph
 * computes of one run of a scheduler, or is GGTRACE_NO_SPLIT.
 */
GGTRACE_INLINE void ggtrace_graph(struct ggtrace_writer * writer, uint64_t start, uint64_t end, uint32_t graph,
                                  uint32_t call, int32_t status, uint32_t backend, uint32_t split) {
    GGTRACE_WRITE(writer, start, GGTRACE_GRAPH, ggtrace_graph_record, .start = start, .end = end, .graph = graph,
                  .call = call, .status = status, .backend = backend, .split = split);
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

/* What a thread is doing from now on; cpu: where it runs, or ran last. */
GGTRACE_INLINE void ggtrace_state(struct ggtrace_writer * writer, uint64_t time, uint32_t tid, uint32_t cpu,
                                  enum ggtrace_state state) {
    GGTRACE_WRITE(writer, time, GGTRACE_STATE, ggtrace_state_record, .time = time, .tid = tid, .cpu = cpu,
                  .state = (uint32_t) state);
}

/*
 * What was counted of the operator that is written next: values[i] is of the counter defined with index i; zeros take no
 * room. is_scaled: the processor counted some of it for a part of the time only, and the values were extrapolated.
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
    /* The operator goes into the same block. */
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
 * From now on less is recorded, as decode took that long (ns a call) when recorded and when not: over the guard's per
 * cent. level: 1 calls, 2 graphs.
 */
GGTRACE_INLINE void ggtrace_level(struct ggtrace_writer * writer, uint64_t time, uint32_t level, uint32_t percent,
                                  uint64_t with, uint64_t without) {
    GGTRACE_WRITE(writer, time, GGTRACE_LEVEL, ggtrace_level_record, .time = time, .level = level, .percent = percent,
                  .with = with, .without = without);
}

/* Records that the caller could not make. What found no room in the file is told without this, with why 0. */
GGTRACE_INLINE void ggtrace_loss(struct ggtrace_writer * writer, uint64_t time, uint32_t records, uint32_t why) {
    GGTRACE_WRITE(writer, time, GGTRACE_LOSS, ggtrace_loss_record, .time = time, .records = records, .why = why);
}

/*
 * ids: tokens × k of them, token by token. More than fit one record are cut into several, between tokens. Not inline:
 * it copies kilobytes.
 */
void ggtrace_experts(struct ggtrace_writer * writer, uint64_t time, uint32_t tensor, uint32_t tokens, uint32_t k,
                     uint32_t call, const int32_t * ids);

#endif

/* Outside the guard, so that a file can have the header early and the poison after its last include. */
#if defined(GGTRACE_POISON) && !defined(GGTRACE_POISONED)
#define GGTRACE_POISONED
#pragma GCC poison malloc calloc realloc reallocarray free strdup strndup aligned_alloc posix_memalign memalign
#pragma GCC poison printf fprintf vfprintf dprintf asprintf sprintf puts fputs fputc putchar perror fopen fwrite fread
#pragma GCC poison fflush fclose setvbuf stdout stderr stdin
#endif
