/* LD_PRELOAD: a disk that takes SLOW_DISK_MS to have room for more, or to give it back. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

int fallocate(int file, int mode, off_t offset, off_t bytes) {
    int (*real)(int, int, off_t, off_t);
    *(void **) &real = dlsym(RTLD_NEXT, "fallocate");
    const char * wait = getenv("SLOW_DISK_MS");
    nanosleep(&(struct timespec){0, (wait ? atoi(wait) : 0) * 1000000L}, NULL);
    return real(file, mode, offset, bytes);
}
