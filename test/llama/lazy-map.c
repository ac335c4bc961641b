/*
 * LD_PRELOAD: files are mapped without reading them, as llama.cpp maps them on NUMA machines, and their pages are read one by one when
 * they are first used: a slow disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/mman.h>

void * mmap(void * address, size_t size, int protection, int flags, int file, off_t offset) {
    void * (*real)(void *, size_t, int, int, int, off_t);
    *(void **) &real = dlsym(RTLD_NEXT, "mmap");
    void * mapped = real(address, size, protection, flags & ~MAP_POPULATE, file, offset);
    if (file >= 0 && mapped != MAP_FAILED) madvise(mapped, size, MADV_RANDOM);
    return mapped;
}

int posix_madvise(void * address, size_t size, int advice) {
    (void) address, (void) size, (void) advice;
    return 0;
}
