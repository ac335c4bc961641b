/* Writes bytes at an offset of a file, and computes the checksum of a block. */
#include "ggtrace-inside.h"
#include "ggtrace-file.h"

#define GGTRACE_POISON
#include "ggtrace.h"

bool ggtrace_may_reach(uint64_t end) {
    struct rlimit limit;
    bool is_known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
#ifdef SYS_getrlimit /* libc calls prlimit64, which a sandbox may deny */
    if (!is_known && sizeof(limit.rlim_cur) == sizeof(long)) is_known = syscall(SYS_getrlimit, RLIMIT_FSIZE, &limit) == 0;
#endif
    if (is_known && end > limit.rlim_cur) errno = EFBIG;
    return is_known && end <= limit.rlim_cur;
}

static ssize_t seek_and_write(int file, const void * bytes, size_t count, off_t offset) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the file position */
    pthread_mutex_lock(&lock);
    const ssize_t written = lseek(file, offset, SEEK_SET) == offset ? write(file, bytes, count) : -1;
    pthread_mutex_unlock(&lock);
    return written;
}

bool ggtrace_write_at(const struct ggtrace * log, const void * bytes, size_t count, uint64_t offset) {
    if (!ggtrace_may_reach(offset + count)) return false;
    while (count > 0) {
        ssize_t written = pwrite(log->file, bytes, count, (off_t) offset);
        if (written < 0 && ggtrace_is_denied(errno)) written = seek_and_write(log->file, bytes, count, (off_t) offset);
        if (written <= 0) return false;
        bytes = (const uint8_t *) bytes + written;
        count -= (size_t) written;
        offset += (uint64_t) written;
    }
    return true;
}

uint32_t ggtrace_checksum(const struct ggtrace_block * block, uint32_t size) {
    const uint32_t start = offsetof(struct ggtrace_block, kind), count = (size - start) / 4;
    const ggtrace_word * words = (const ggtrace_word *) (const void *) &block->kind;
    uint32_t lanes[8], sum = 0, i = 0;
    for (uint32_t lane = 0; lane < 8; lane++) lanes[lane] = 0x811c9dc5u + lane;
    for (; i + 8 <= count; i += 8) {
#pragma GCC unroll 8 /* without this, gcc -O2 keeps the lanes in memory: three times slower */
        for (uint32_t lane = 0; lane < 8; lane++) lanes[lane] = (lanes[lane] ^ words[i + lane]) * 0x01000193u;
    }
    for (uint32_t lane = 0; i < count; i++, lane++) lanes[lane] = (lanes[lane] ^ words[i]) * 0x01000193u;
    sum = lanes[0];
    for (uint32_t lane = 1; lane < 8; lane++) sum ^= lanes[lane] << 4 * lane | lanes[lane] >> (32 - 4 * lane);
    return sum;
}
