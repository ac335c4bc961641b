/*
 * Opens and closes a log, and assigns writers to threads.
 *
 * A log consists of two mappings. `shared` contains what threads change. The kernel fills it with zeros in a forked child,
 * which then has no log: the child does not write to its parent's file, even if it does not know that it is a child.
 * Neither mapping is ever unmapped: threads may hold writers and call functions with them after the log was closed.
 */
#include "ggtrace-inside.h"

#include <linux/membarrier.h>

#include "ggtrace-file.h"

#define GGTRACE_POISON
#include "ggtrace.h"

#define FORMAT_VERSION "0"
#define CLOSE_WAIT_NS 1000000000ull

static struct ggtrace_writer no_writer = {.worker = GGTRACE_NO_WORKER}; /* belongs to no log: drops records without counting them */

void ggtrace_flush(struct ggtrace * log) {
    if (!is_alive(log)) return;
    pthread_mutex_lock(&log->shared->lock);
    ggtrace_seal(&log->shared->writers[CONTROL]);
    pthread_mutex_unlock(&log->shared->lock);
}

/* Fails silently: what has no room later is counted then. */
void ggtrace_expect(struct ggtrace * log, uint32_t bytes) {
    if (!is_alive(log)) return;
    const int before = errno;
    struct shared * shared = log->shared;
    struct ggtrace_writer * control = &shared->writers[CONTROL];
    pthread_mutex_lock(&shared->lock);
    const uint64_t end = LOAD(shared->file_end) + 2ull * (bytes + log->segment_bytes);
    const bool may_take = is_alive(log) && (!log->bytes_max || end < log->bytes_max / 2) && ggtrace_may_reach(end) && !ggtrace_is_cut(log);
    if (may_take && control->segment_end - control->at < (ptrdiff_t) bytes) {
        ggtrace_seal(control);
        ggtrace_take_segment(control, bytes);
    }
    pthread_mutex_unlock(&shared->lock);
    errno = before;
}

/* ---- Writers of threads ---- */

__thread struct ggtrace_writer * ggtrace_thread_writers[2];

static uint32_t this_tid(void) {
    return (uint32_t) syscall(SYS_gettid);
}

static bool is_owned(const struct ggtrace_writer * writer) {
    return writer->log && writer->id != NOT_ONE;
}

/* Called by the writer's thread while another thread may be closing the log: see stop(). */
void ggtrace_writer_flush(struct ggtrace_writer * writer) {
    if (!is_owned(writer)) return;
    __atomic_store_n(&writer->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&writer->end, __ATOMIC_RELAXED)) ggtrace_seal(writer);
    STORE(writer->busy, 0);
}

static void pass_to(struct ggtrace_writer * writer, uint32_t tid, uint32_t worker) {
    if (writer->tid == tid && writer->worker == worker) return;
    ggtrace_writer_flush(writer);
    writer->tid = tid;
    writer->worker = worker;
    writer->call = GGTRACE_NO_CALL;
}

static struct ggtrace_writer * make_writer(struct ggtrace * log) {
    struct shared * shared = log->shared;
    if (shared->writer_count == NOT_ONE) return NULL;
    struct ggtrace_writer * writer = &shared->writers[shared->writer_count];
    writer->id = (uint16_t) shared->writer_count;
    writer->kind = GGTRACE_EVENTS;
    writer->worker = GGTRACE_NO_WORKER;
    writer->call = GGTRACE_NO_CALL;
    writer->log = log;
    STORE(shared->writer_count, shared->writer_count + 1);
    return writer;
}

/* The released writer that this thread and worker had before, with its open block; else the last one released; else a new one. */
static struct ggtrace_writer * take_writer(struct ggtrace * log, uint32_t tid, uint32_t worker) {
    struct shared * shared = log->shared;
    uint16_t * best = &shared->free_writer;
    for (uint16_t * link = best; *link; link = &shared->writers[*link].next_free) {
        if (shared->writers[*link].tid == tid && shared->writers[*link].worker == worker) best = link;
    }
    if (!*best) return make_writer(log);
    struct ggtrace_writer * writer = &shared->writers[*best];
    *best = writer->next_free;
    return writer;
}

struct ggtrace_writer * ggtrace_writer_acquire(struct ggtrace * log, uint32_t worker) {
    if (!is_alive(log)) return &no_writer;
    struct shared * shared = log->shared;
    const uint32_t tid = this_tid();
    pthread_mutex_lock(&shared->lock);
    struct ggtrace_writer * writer = shared->closing ? NULL : take_writer(log, tid, worker);
    if (writer) writer->holder = tid;
    pthread_mutex_unlock(&shared->lock);
    if (!writer) return &shared->writers[NOT_ONE];
    pass_to(writer, tid, worker);
    return writer;
}

void ggtrace_writer_release(struct ggtrace_writer * writer) {
    if (!is_owned(writer)) return;
    struct shared * shared = writer->log->shared;
    pthread_mutex_lock(&shared->lock);
    writer->holder = 0;
    writer->next_free = shared->free_writer;
    shared->free_writer = writer->id;
    pthread_mutex_unlock(&shared->lock);
}

static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static bool has_thread_key;

static void release_thread_writers(void * unused) {
    (void) unused;
    for (int i = 0; i < 2; i++) {
        if (ggtrace_thread_writers[i]) ggtrace_writer_release(ggtrace_thread_writers[i]);
        ggtrace_thread_writers[i] = NULL;
    }
}

static void make_thread_key(void) {
    has_thread_key = pthread_key_create(&thread_key, release_thread_writers) == 0;
}

struct ggtrace_writer * ggtrace_thread_writer_change(struct ggtrace * log, uint32_t worker) {
    struct ggtrace_writer ** own = &ggtrace_thread_writers[worker != GGTRACE_NO_WORKER];
    struct ggtrace_writer * writer = *own;
    if (log && writer && writer->log == log) {
        pass_to(writer, writer->tid, worker);
        return writer;
    }
    if (writer) ggtrace_writer_release(writer);
    writer = ggtrace_writer_acquire(log, worker);
    *own = is_owned(writer) ? writer : NULL;
    pthread_once(&thread_once, make_thread_key);
    /* Only for the destructor. libc allocates memory here if the process has more than 32 keys. */
    if (*own && has_thread_key) pthread_setspecific(thread_key, own);
    return writer;
}

/* ---- Open and close ---- */

static bool set_sizes(struct ggtrace * log, const struct ggtrace_options * options) {
    const uint32_t page = (uint32_t) sysconf(_SC_PAGESIZE);
    uint32_t segment = options && options->segment_bytes ? options->segment_bytes : GGTRACE_SEGMENT_BYTES;
    uint32_t block = options && options->block_bytes ? options->block_bytes : GGTRACE_BLOCK_BYTES;
    if (segment > 1u << 30) return errno = EINVAL, false;
    segment = (segment + page - 1) / page * page;
    log->bytes_max = options ? options->bytes_max : 0;
    log->is_ring = options && options->ring && log->bytes_max;
    log->slow_ns = log->is_ring ? options->slow_ns : 0;
    /* Segments in use cannot be removed from the file, so a small ring has small segments. */
    const uint32_t least = SEGMENT_FIRST_BYTES < page ? page : SEGMENT_FIRST_BYTES;
    while (log->is_ring && segment > least && segment > log->bytes_max / RING_SEGMENTS_MIN) segment /= 2;
    log->segment_bytes = segment;
    if (block > segment) block = segment;
    block = block < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : block > BLOCK_BYTES_MAX ? BLOCK_BYTES_MAX : block & ~7u;
    log->block_bytes = block;
    const uint32_t record = (block - BLOCK_OVERHEAD) & ~3u;
    log->record_max = record < GGTRACE_RECORD_BYTES_MAX ? record : GGTRACE_RECORD_BYTES_MAX;
    return true;
}

/* O_EXCL: another recorder may have mapped an existing file, and would get SIGBUS if we truncated it. */
static bool create_file(struct ggtrace * log, const char * path, const struct ggtrace_options * options) {
    struct stat file;
    mode_t mode = options && options->mode ? options->mode : 0666;
    if (options && options->replace && lstat(path, &file) == 0 && S_ISREG(file.st_mode)) {
        mode &= file.st_mode; /* the new file has no more permissions than the old one */
        unlink(path);
    }
    log->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (log->file < 0 || fstat(log->file, &file) != 0) return false;
    if (options && options->has_owner && fchown(log->file, options->user, options->group) != 0) { /* the owner stays the current user */ }
    log->device = file.st_dev;
    log->inode = file.st_ino;
    /* Written now, so that a process killed before the first block leaves a valid log. */
    const struct ggtrace_block first = {.magic = GGTRACE_MAGIC};
    if (ggtrace_write_at(log, &first, sizeof(first), 0)) return true;
    const int why = errno;
    unlink(path);
    errno = why;
    return false;
}

static void * zeroed(size_t bytes) {
    void * memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool register_barrier(void) {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void ggtrace_prepare(void) {
    const int before = errno;
    register_barrier();
    errno = before;
}

static bool start(struct ggtrace * log) {
    struct shared * shared = log->shared = zeroed(sizeof(*shared));
    if (!shared) return false;
    log->wiped_on_fork = madvise(shared, sizeof(*shared), MADV_WIPEONFORK) == 0;
    log->has_barrier = register_barrier();
    pthread_mutex_init(&shared->lock, NULL);
    struct ggtrace_writer * control = make_writer(log);
    control->tid = this_tid();
    shared->writers[NOT_ONE] = *control;
    shared->writers[NOT_ONE].id = NOT_ONE;
    const bool is_ring = log->is_ring;
    log->is_ring = false; /* the first segment is not part of the ring */
    if (!ggtrace_take_segment(control, BLOCK_BYTES_MIN + (log->slow_ns ? (uint32_t) sizeof(struct kept) : 0))) return false;
    log->is_ring = is_ring && ggtrace_ring_start(log, control);
    STORE(shared->alive, 1);
    return true;
}

static void fact_pid(struct ggtrace * log) {
    char digits[12] = "";
    char * at = digits + sizeof(digits) - 1;
    for (uint32_t pid = (uint32_t) getpid(); pid || !*at; pid /= 10) *--at = (char) ('0' + pid % 10);
    ggtrace_fact(log, "pid", at);
}

struct ggtrace * ggtrace_open(const char * path, const struct ggtrace_options * options) {
    struct ggtrace * log = zeroed(sizeof(*log));
    if (!log) return NULL;
    log->file = -1;
    if (set_sizes(log, options) && create_file(log, path, options)) {
        if (start(log)) {
            ggtrace_fact(log, "format.version", FORMAT_VERSION);
            fact_pid(log);
            ggtrace_clocks(log);
            return log;
        }
        const int why = errno;
        unlink(path);
        errno = why;
    }
    const int why = errno;
    if (log->file >= 0) close(log->file);
    if (log->shared) munmap(log->shared, sizeof(*log->shared));
    munmap(log, sizeof(*log));
    errno = why;
    return NULL;
}

bool ggtrace_is_ring(const struct ggtrace * log) {
    return log && log->is_ring;
}

enum ggtrace_full ggtrace_full(const struct ggtrace * log) {
    return log ? (enum ggtrace_full) LOAD(log->shared->full) : GGTRACE_FULL_NOT;
}

struct ggtrace_totals ggtrace_totals(const struct ggtrace * log) {
    struct ggtrace_totals totals = {0, 0};
    if (!log) return totals;
    const struct ggtrace_writer * writers = log->shared->writers;
    const uint32_t count = LOAD(log->shared->writer_count);
    for (uint32_t i = 1; i < count; i++) {
        totals.written += __atomic_load_n(&writers[i].records, __ATOMIC_RELAXED);
        totals.dropped += LOAD(writers[i].dropped);
    }
    totals.dropped += LOAD(writers[NOT_ONE].dropped);
    return totals;
}

/*
 * Stops another thread's writer: sets its end to 0, then waits until it is not busy. The thread works in the opposite
 * order: it sets busy, then reads the end. So one of them sees the other's store, provided that stores and loads are not
 * reordered. The thread has no fence, because its path is hot; membarrier(2) executes one on its behalf. If the thread is
 * opening a block at that moment, it sets the end once more, but not again, because the log is closing.
 */
static bool stop(const struct ggtrace * log, struct ggtrace_writer * writer) {
    const bool is_mine = !writer->holder || writer->holder == this_tid();
    const uint64_t deadline = ggtrace_now() + CLOSE_WAIT_NS;
    do {
        __atomic_store_n(&writer->end, 0, __ATOMIC_SEQ_CST);
        if (is_mine) return true;
        if (!log->has_barrier || syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) return false;
        while (LOAD(writer->busy) && ggtrace_now() < deadline) nanosleep(&(struct timespec){0, 50000}, NULL);
        if (!LOAD(writer->busy) && LOAD(writer->end) == 0) return true;
    } while (ggtrace_now() < deadline);
    return false;
}

/* First forgets the segment: what is mapped at its address next is none of the log's, see ggtrace_survive. */
static void unmap(struct ggtrace_writer * writer) {
    uint8_t * const segment = writer->segment, * const end = writer->segment_end;
    STORE(writer->segment_end, NULL);
    STORE(writer->segment, NULL);
    if (segment) munmap(segment, (size_t) (end - segment));
}

/* Under the lock. false: a thread could not be stopped; it may still take a segment and write to it. */
static bool close_writers(struct ggtrace * log, uint64_t * used) {
    struct shared * shared = log->shared;
    bool all = true;
    for (uint32_t i = 1; i < shared->writer_count; i++) {
        struct ggtrace_writer * writer = &shared->writers[i];
        if (!stop(log, writer)) {
            all = false;
            continue;
        }
        ggtrace_seal(writer);
        if (writer->used_end > *used) *used = writer->used_end;
        unmap(writer);
    }
    return all;
}

static void write_end(struct ggtrace * log) {
    const struct ggtrace_totals totals = ggtrace_totals(log);
    const uint64_t end[] = {ggtrace_now(), totals.written, totals.dropped};
    const uint32_t full = ggtrace_full(log);
    struct ggtrace_writer * control = &log->shared->writers[CONTROL];
    ggtrace_seal(control);
    ggtrace_put_locked(log, GGTRACE_RUN, GGTRACE_END, (struct part[]){{end, sizeof(end)}, {&full, sizeof(full)}}, 2);
    ggtrace_seal(control);
}

/* For the END of a log that was cut: gives CONTROL a segment behind what is left of the file. */
static bool begin_again(struct ggtrace * log) {
    struct shared * shared = log->shared;
    struct ggtrace_writer * control = &shared->writers[CONTROL];
    uint64_t end;
    ggtrace_seal(control);
    if (!ggtrace_find_rest(log, &end)) return false;
    log->is_ring = false;
    STORE(shared->file_end, end);
    STORE(shared->retry_at, 0);
    const bool has_room = ggtrace_take_segment(control, BLOCK_BYTES_MIN);
    STORE(shared->full, GGTRACE_FULL_CUT);
    return has_room;
}

static void close_locked(struct ggtrace * log) {
    struct shared * shared = log->shared;
    STORE(shared->closing, 1);
    uint64_t used = 0;
    const bool all_stopped = close_writers(log, &used);
    struct ggtrace_writer * control = &shared->writers[CONTROL];
    const bool is_ours = ggtrace_is_ours(log), is_cut = is_ours && ggtrace_is_cut(log), has_room = !is_cut || begin_again(log);
    if (is_cut) used = 0;
    write_end(log);
    if (control->used_end > used) used = control->used_end;
    STORE(shared->alive, 0);
    unmap(control);
    if (!all_stopped || !is_ours || !has_room) return; /* truncating or closing the file now could give that thread SIGBUS */
    if (log->is_ring) used = ggtrace_ring_settle(log, used);
    if (ftruncate(log->file, (off_t) used) != 0) { /* then the file ends in zeros, which the format allows */ }
    close(log->file);
}

void ggtrace_close(struct ggtrace * log) {
    if (!is_alive(log)) return;
    const int kept = errno;
    pthread_mutex_lock(&log->shared->lock);
    if (is_alive(log)) close_locked(log);
    pthread_mutex_unlock(&log->shared->lock);
    errno = kept;
}

void ggtrace_abandon(struct ggtrace * log) {
    if (!log) return;
    const int kept = errno;
    struct shared * shared = log->shared;
    STORE(shared->alive, 0);
    if (ggtrace_is_ours(log)) close(log->file);
    log->file = -1;
    for (uint32_t i = 0; i < shared->writer_count; i++) { /* if the kernel does not wipe; a child has no other thread */
        struct ggtrace_writer * writer = &shared->writers[i];
        if (writer->segment) munmap(writer->segment, ggtrace_segment_bytes(writer));
        memset(writer, 0, sizeof(*writer));
    }
    errno = kept;
}
