/*
 * A library of a program with a second OpenMP runtime, for LD_PRELOAD: computes in a loop with SECOND_OPENMP, another copy of libgomp. As
 * in programs that load two wheels of Python, each with its own.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void nothing(void * data) {
    (void) data;
}

static void * compute(void * path) {
    void * library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    *(void **) &parallel = library ? dlsym(library, "GOMP_parallel") : NULL;
    while (parallel) parallel(nothing, NULL, 2, 0), usleep(500);
    return NULL;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    char * path = getenv("SECOND_OPENMP");
    if (path && pthread_create(&thread, NULL, compute, path) == 0) pthread_detach(thread);
}
