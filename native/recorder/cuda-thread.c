#define _GNU_SOURCE
#include "recorder/cuda-thread.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { ASK_MS = 100, END_MS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wakes, ends;
static enum { RUNS, LAST, OVER } state;
static void (*ask)(bool is_last);

static struct timespec after(uint32_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t ns = (uint64_t) until.tv_nsec + (uint64_t) ms * 1000000;
    until.tv_sec += (time_t) (ns / 1000000000);
    until.tv_nsec = (long) (ns % 1000000000);
    return until;
}

/* Does not hold the lock while it asks: the end of the program waits only so long. */
static void * loop(void * unused) {
    (void) unused;
    bool is_last = false;
    while (!is_last) {
        const struct timespec until = after(ASK_MS);
        pthread_mutex_lock(&lock);
        if (state == RUNS) pthread_cond_timedwait(&wakes, &lock, &until);
        is_last = state == LAST;
        pthread_mutex_unlock(&lock);
        ask(is_last);
    }
    pthread_mutex_lock(&lock);
    state = OVER;
    pthread_cond_signal(&ends);
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool cuda_thread_start(void (*asks)(bool is_last)) {
    sigset_t all, before;
    pthread_t thread;
    pthread_condattr_t attributes;
    ask = asks;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wakes, &attributes);
    pthread_cond_init(&ends, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* blocked, a fault in a page of a truncated log would kill the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_there = pthread_create(&thread, NULL, loop, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (is_there) pthread_detach(thread);
    return is_there;
}

void cuda_thread_wake(void) {
    pthread_cond_signal(&wakes);
}

bool cuda_thread_finish(void) {
    const struct timespec until = after(END_MS);
    int error = 0;
    pthread_mutex_lock(&lock);
    state = LAST;
    pthread_cond_signal(&wakes);
    while (state != OVER && !error) error = pthread_cond_timedwait(&ends, &lock, &until);
    pthread_mutex_unlock(&lock);
    return !error;
}
