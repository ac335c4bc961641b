/*
 * A log file that another program truncates while it is written, as logrotate does with `copytruncate`. Its mapped pages are gone then: a
 * store into them gives SIGBUS. The log ends there, and threads write into memory that belongs to no file.
 */
#include "ggtrace-inside.h"
#include "ggtrace-file.h"

#define GGTRACE_POISON
#include "ggtrace.h"

static uintptr_t page_bytes(void) {
    return (uintptr_t) sysconf(_SC_PAGESIZE);
}

static bool is_mapped(const struct shared * shared, uintptr_t page) {
    for (uint32_t i = 0; i < LOAD(shared->writer_count); i++) {
        const struct ggtrace_writer * writer = &shared->writers[i];
        if (page >= (uintptr_t) LOAD(writer->segment) && page < (uintptr_t) LOAD(writer->segment_end)) return true;
    }
    const uintptr_t first = (uintptr_t) LOAD(shared->ring.from) & ~(page_bytes() - 1);
    return first && page >= first && page < first + shared->ring.mapped;
}

bool ggtrace_survive(struct ggtrace * log, const void * address) {
    const uintptr_t page = (uintptr_t) address & ~(page_bytes() - 1);
    if (!log || !page || !is_mapped(log->shared, page)) return false;
    STORE(log->shared->is_cut, 1);
    void * there = (void *) page;
    return mmap(there, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == there;
}

/* Is the first word of the file another one than when the log was opened? */
static bool has_other_begin(const struct ggtrace * log) {
    ggtrace_word first;
    const ssize_t got = pread(log->file, &first, sizeof(first), 0);
    return got >= 0 && (got != sizeof(first) || first != GGTRACE_MAGIC);
}

bool ggtrace_is_cut(const struct ggtrace * log) {
    struct shared * shared = log->shared;
    struct stat file;
    if (LOAD(shared->is_cut)) return true;
    const uint64_t allocated = LOAD(shared->allocated); /* before the size: other threads make the file longer meanwhile */
    const bool is_short = fstat(log->file, &file) == 0 && (uint64_t) file.st_size < allocated;
    if (!is_short && !has_other_begin(log)) return false;
    STORE(shared->is_cut, 1);
    return true;
}

void ggtrace_note_allocated(const struct ggtrace * log, uint64_t end) {
    uint64_t * allocated = &log->shared->allocated, before = LOAD(*allocated);
    while (before < end && !__atomic_compare_exchange_n(allocated, &before, end, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {}
}

bool ggtrace_find_rest(const struct ggtrace * log, uint64_t * end) {
    struct stat file;
    if (has_other_begin(log) && ftruncate(log->file, 0) != 0) return false;
    if (fstat(log->file, &file) != 0) return false;
    *end = ((uint64_t) file.st_size + page_bytes() - 1) / page_bytes() * page_bytes();
    return true;
}
