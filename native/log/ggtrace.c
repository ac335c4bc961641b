/*
 * The slow half of the log writer. Segments of the file, blocks, and rare forms of events: called by the thread that owns
 * the writer. ggtrace.h contains the fast half and the rules.
 */
#include "ggtrace-inside.h"
#include "ggtrace-file.h"

#define GGTRACE_POISON
#include "ggtrace.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define RETRY_FIRST_NS 10000000ull /* first retry after a full disk; the interval doubles up to the maximum */
#define RETRY_LAST_NS 10000000000ull

enum { EINTR_MAX = 100 };

int (*ggtrace_clock)(clockid_t clock, struct timespec * time) = clock_gettime;

/* ---- Segments ---- */

/* A host that closes all file descriptors may have reused ours for its own file. */
bool ggtrace_is_ours(const struct ggtrace * log) {
    struct stat file;
    return fstat(log->file, &file) == 0 && file.st_dev == log->device && file.st_ino == log->inode;
}

/*
 * Brings the pages of a segment into the page cache. Page faults would do the same one page at a time, each with a query
 * to the file system: on ext4 an operator record would cost 24 ns instead of 8 ns. Also allocates the space if fallocate
 * is not supported.
 */
static bool write_zeros(const struct ggtrace * log, uint64_t offset, uint32_t bytes) {
    static uint8_t zeros[64 * 1024];
    for (uint32_t at = offset == 0 ? sizeof(ggtrace_word) : 0; at < bytes;) { /* does not overwrite the magic number */
        const size_t left = bytes - at, count = left < sizeof(zeros) ? left : sizeof(zeros);
        if (!ggtrace_write_at(log, zeros, count, offset + at)) return false;
        at += (uint32_t) count;
    }
    return true;
}

/*
 * Allocates disk space before the mapping: a store into a mapped hole on a full disk gives SIGBUS and kills the host.
 * The first segment that does not fit ends the log: a smaller one of another writer would hold events without their definitions.
 */
static bool allocate(const struct ggtrace * log, uint64_t offset, uint32_t bytes) {
    const bool has_ended = LOAD(log->shared->full) == GGTRACE_FULL_LIMIT;
    const bool is_limited = log->bytes_max && !log->is_ring && (has_ended || offset + bytes > log->bytes_max);
    if (is_limited) errno = EFBIG;
    if (is_limited || !ggtrace_may_reach(offset + bytes)) {
        if (errno == EFBIG) STORE(log->shared->full, is_limited ? GGTRACE_FULL_LIMIT : GGTRACE_FULL_PROCESS_LIMIT);
        return false;
    }
    if (!ggtrace_is_ours(log)) return errno = EBADF, false;
    for (int tries = 0; tries < EINTR_MAX; tries++) {
        const bool done = fallocate(log->file, 0, (off_t) offset, bytes) == 0;
        if (!done && errno != EOPNOTSUPP && !ggtrace_is_denied(errno)) {
            if (errno != EINTR) return false;
            continue;
        }
        if (!write_zeros(log, offset, bytes)) return false;
        ggtrace_note_allocated(log, offset + bytes);
        return true;
    }
    return false;
}

/* Makes all pages writable now, instead of with one page fault each in the middle of an operator. */
static void * map(const struct ggtrace * log, uint64_t offset, uint32_t bytes) {
    void * segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, log->file, (off_t) offset);
    if (segment == MAP_FAILED) return NULL;
    const bool usable = madvise(segment, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL || ggtrace_is_denied(errno);
    /* Without the wiped `shared`, a child would write to the segment's address, so the segment must stay mapped in it. */
    if (usable && log->wiped_on_fork) madvise(segment, bytes, MADV_DONTFORK); /* not mapped in a child */
    if (usable) return segment;
    munmap(segment, bytes);
    return NULL;
}

/* Starts small: most threads write little, and the unused part of a segment is zeros in the log. */
static uint32_t next_segment_bytes(const struct ggtrace_writer * writer, uint32_t needed) {
    const uint32_t page = (uint32_t) sysconf(_SC_PAGESIZE), most = writer->log->segment_bytes;
    const uint32_t before = writer->segment ? ggtrace_segment_bytes(writer) : 0;
    uint32_t bytes = before ? before + before / SEGMENT_GROWTH : SEGMENT_FIRST_BYTES;
    if (bytes < needed) bytes = needed;
    return bytes < most ? (bytes + page - 1) / page * page : most;
}

bool ggtrace_take_segment(struct ggtrace_writer * writer, uint32_t needed) {
    struct ggtrace * log = writer->log;
    struct shared * shared = log->shared;
    const uint32_t bytes = next_segment_bytes(writer, needed);
    const uint64_t retry_at = LOAD(shared->retry_at);
    if (retry_at && ggtrace_now() < retry_at) return errno = ENOSPC, false;
    uint32_t piece = 0;
    uint64_t offset = log->is_ring ? ggtrace_ring_take(writer, bytes, &piece) : ADD(shared->file_end, bytes);
    errno = 0;
    uint8_t * segment = allocate(log, offset, bytes) ? map(log, offset, bytes) : NULL;
    if (!segment && errno != EFBIG) STORE(shared->full, errno == ENOSPC || errno == EDQUOT ? GGTRACE_FULL_DISK : GGTRACE_FULL_OTHER);
    if (segment) ggtrace_seal(writer); /* while the ring does not remove the block */
    if (piece) ggtrace_ring_use(writer, piece, segment);
    if (!segment) {
        uint64_t end = offset + bytes; /* undo the reservation, unless another writer has taken the next segment */
        __atomic_compare_exchange_n(&shared->file_end, &end, offset, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        const uint64_t after = LOAD(shared->retry_after);
        STORE(shared->retry_at, ggtrace_now() + (after ? after : RETRY_FIRST_NS));
        STORE(shared->retry_after, !after ? RETRY_FIRST_NS * 2 : after * 2 < RETRY_LAST_NS ? after * 2 : RETRY_LAST_NS);
        return false;
    }
    STORE(shared->retry_at, 0);
    STORE(shared->retry_after, 0);
    uint8_t * const old = writer->segment;
    const uint32_t old_bytes = old ? ggtrace_segment_bytes(writer) : 0;
    STORE(writer->segment_end, NULL);
    STORE(writer->segment, segment);
    STORE(writer->segment_end, segment + bytes);
    __atomic_store_n(&writer->at, segment, __ATOMIC_RELAXED);
    writer->segment_offset = offset;
    if (old) munmap(old, old_bytes); /* only now: the old segment has room for the END */
    return true;
}

/* ---- Blocks ---- */

/* The padding is zero already. */
static uint32_t block_bytes(const struct ggtrace_writer * writer) {
    return ((uint32_t) (writer->at - writer->block) + 7) & ~7u;
}

void ggtrace_seal(struct ggtrace_writer * writer) {
    struct ggtrace_block * block = (struct ggtrace_block *) (void *) writer->block;
    if (!block) return;
    const uint32_t size = block_bytes(writer);
    if (writer->kind == GGTRACE_EVENTS && !writer->is_full) block->needs = LOAD(writer->log->shared->definitions);
    block->dropped = LOAD(writer->dropped);
    block->checksum = ggtrace_checksum(block, size);
    STORE(block->size, size);
    __atomic_store_n(&writer->at, writer->block + size, __ATOMIC_RELAXED);
    writer->used_end = writer->segment_offset + (uint64_t) (writer->at - writer->segment);
    writer->block = NULL;
    writer->is_full = false;
    __atomic_store_n(&writer->end, 0, __ATOMIC_RELAXED);
    writer->sequence++;
    STORE(writer->records_sealed, writer->records);
}

/* The end of the space in the segment that the writer may use. */
static uint8_t * room_end(const struct ggtrace_writer * writer) {
    const bool keep = writer->id == CONTROL && writer->segment && !LOAD(writer->log->shared->closing);
    return keep ? writer->segment_end - END_BYTES : writer->segment_end;
}

static void open_block(struct ggtrace_writer * writer, uint64_t time) {
    const struct ggtrace * log = writer->log;
    uint8_t * end = room_end(writer);
    if ((size_t) (end - writer->at) > log->block_bytes) end = writer->at + log->block_bytes;
    struct ggtrace_block * block = (struct ggtrace_block *) (void *) writer->at;
    block->kind = writer->kind;
    block->writer = writer->id;
    block->sequence = writer->sequence;
    block->tid = writer->tid;
    block->base = time;
    block->needs = writer->kind == GGTRACE_RUN ? 0 : LOAD(log->shared->definitions);
    block->dropped = LOAD(writer->dropped);
    block->worker = writer->worker;
    block->call = writer->call;
    STORE(block->magic, GGTRACE_MAGIC); /* stored last, so that a killed writer leaves no partial header with a magic number */
    writer->block = writer->at;
    writer->at += sizeof(*block);
    writer->cursor = time;
    __atomic_store_n(&writer->end, (uintptr_t) end, __ATOMIC_RELAXED);
}

/* Writes a LOSS record with the number of records dropped since the last block. Runs under `busy` of the next record. */
static void write_loss(struct ggtrace_writer * writer, uint64_t time) {
    struct ggtrace_loss_record * loss = (struct ggtrace_loss_record *) (void *) writer->at;
    loss->time = time;
    loss->records = writer->dropped_unreported;
    __atomic_store_n((ggtrace_word *) (void *) loss, GGTRACE_LOSS | (uint32_t) sizeof(*loss) << 16, __ATOMIC_RELEASE);
    writer->at += sizeof(*loss);
    __atomic_store_n(&writer->records, writer->records + 1, __ATOMIC_RELAXED);
    writer->dropped_unreported = 0;
}

/*
 * There is no room: the last block stays open, without further records. Its header counts what is dropped, so that the log contains the number
 * also if the program is killed.
 */
static void count_in_block(struct ggtrace_writer * writer) {
    struct ggtrace_block * block = (struct ggtrace_block *) (void *) writer->block;
    if (!block) return;
    if (!writer->is_full && writer->kind == GGTRACE_EVENTS) block->needs = LOAD(writer->log->shared->definitions);
    writer->is_full = true;
    __atomic_store_n(&writer->end, 0, __ATOMIC_RELAXED);
    STORE(block->dropped, LOAD(writer->dropped) + 1);
}

static bool next_block(struct ggtrace_writer * writer, uint32_t size, uint64_t time) {
    const struct ggtrace * log = writer->log;
    if (writer->id == NOT_ONE || (writer->id != CONTROL && LOAD(log->shared->closing))) return false;
    const uint32_t needed = sizeof(struct ggtrace_block) + sizeof(struct ggtrace_loss_record) + size;
    const uint8_t * at = writer->block ? writer->block + block_bytes(writer) : writer->at;
    if (writer->segment && room_end(writer) - at >= (ptrdiff_t) needed) ggtrace_seal(writer);
    else if (ggtrace_is_cut(log) || !ggtrace_take_segment(writer, needed + END_BYTES)) return count_in_block(writer), false;
    open_block(writer, time);
    if (writer->dropped_unreported && writer->kind == GGTRACE_EVENTS) write_loss(writer, time);
    return true;
}

void * ggtrace_begin_in_next_block(struct ggtrace_writer * writer, uint32_t size, uint64_t time) {
    const int kept = errno;
    const bool has_block = writer->log && next_block(writer, size, time);
    if (!has_block && writer->log) {
        ADD(writer->dropped, 1);
        ADD(writer->dropped_unreported, 1);
    }
    if (!has_block) STORE(writer->busy, 0);
    errno = kept;
    return has_block ? writer->at : NULL;
}

/* ---- Rare forms of events ---- */

static void set_cursor(struct ggtrace_writer * writer, uint64_t time) {
    struct ggtrace_cursor_record * record = ggtrace_begin(writer, sizeof(*record), time);
    if (!record) return;
    record->time = time;
    record->call = writer->call;
    writer->cursor = time;
    ggtrace_commit(writer, record, GGTRACE_CURSOR, sizeof(*record));
}

void ggtrace_call(struct ggtrace_writer * writer, uint64_t time, uint32_t call) {
    if (!writer->log || writer->id == NOT_ONE || writer->call == call) return;
    writer->call = call;
    if (__atomic_load_n(&writer->end, __ATOMIC_RELAXED)) set_cursor(writer, time); /* otherwise the next block header contains the time */
}

/* The times are a u32. Asks for room again after what did not fit: the writer was not busy, the log may be closed by then. */
static void write_operator(struct ggtrace_writer * writer, enum ggtrace_type type, uint32_t tensor, uint64_t start,
                           uint64_t compute_end, uint64_t end, uint64_t extra) {
    if (__atomic_load_n(&writer->end, __ATOMIC_RELAXED) && (start - writer->cursor) >> 32) set_cursor(writer, start);
    struct ggtrace_operator_extra_record * record = ggtrace_begin(writer, sizeof(*record), start); /* may open the next block */
    if (!record || ggtrace_operator_fits(writer, type, tensor, start, compute_end, end, extra)) return;
    if (!(record = ggtrace_begin(writer, sizeof(*record), start))) return;
    const bool is_fused = type == GGTRACE_OPERATOR_SMALL_FUSED;
    const uint32_t size = is_fused || extra ? sizeof(*record) : sizeof(struct ggtrace_operator_record);
    record->tensor = tensor;
    record->start = (uint32_t) (start - writer->cursor);
    record->compute = (uint32_t) (compute_end - start);
    record->wait = (uint32_t) (end - compute_end);
    record->extra = (uint32_t) extra;
    writer->cursor = end;
    ggtrace_commit(writer, record, is_fused ? GGTRACE_OPERATOR_FUSED : extra ? GGTRACE_OPERATOR_INNER : GGTRACE_OPERATOR, size);
}

/* extra: the inner wait, or of fused nodes the last one. */
void ggtrace_operator_any(struct ggtrace_writer * writer, enum ggtrace_type type, uint32_t tensor, uint64_t start,
                          uint64_t compute_end, uint64_t end, uint64_t extra) {
    const bool is_fused = type == GGTRACE_OPERATOR_SMALL_FUSED;
    if (compute_end < start) compute_end = start;
    if (end < compute_end) end = compute_end;
    if (!((compute_end - start) >> 32 | (end - compute_end) >> 32 | extra >> 32)) {
        write_operator(writer, type, tensor, start, compute_end, end, extra);
        return;
    }
    struct ggtrace_operator_long_record * record = ggtrace_begin(writer, sizeof(*record), start);
    if (!record) return;
    record->start = start;
    record->compute_end = compute_end;
    record->end = end;
    record->tensor = tensor;
    record->inner = is_fused ? 0 : extra >> 32 ? UINT32_MAX : (uint32_t) extra;
    record->last = is_fused ? (uint32_t) extra : 0;
    writer->cursor = end;
    ggtrace_commit(writer, record, GGTRACE_OPERATOR_LONG, sizeof(*record));
}

void ggtrace_experts(struct ggtrace_writer * writer, uint64_t time, uint32_t tensor, uint32_t tokens, uint32_t k,
                     uint32_t call, const int32_t * ids) {
    if (!writer->log || k == 0) return;
    const uint32_t head = sizeof(struct ggtrace_experts_record);
    const uint32_t at_once = (writer->log->record_max - head) / 4 / k;
    if (at_once == 0) { /* one token has thousands of experts: no such model exists */
        ggtrace_loss(writer, time, 1, 0);
        return;
    }
    for (uint32_t first = 0; first < tokens; first += at_once) {
        const uint32_t count = tokens - first < at_once ? tokens - first : at_once;
        const uint32_t ids_bytes = 4 * count * k;
        struct ggtrace_experts_record * record = ggtrace_begin(writer, head + ids_bytes, time);
        if (!record) continue;
        *record = (struct ggtrace_experts_record){
            .time = time, .tensor = tensor, .tokens = count, .k = k, .call = call};
        memcpy(record + 1, ids + (size_t) first * k, ids_bytes);
        ggtrace_commit(writer, record, GGTRACE_EXPERTS, head + ids_bytes);
    }
}
