#include "recorder/cuda-thread.h"

#include "recorder/own-threads.h"

enum { ASK_MS = 100, END_MS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wakes, ends;
static enum { RUNS, LAST, OVER, NONE } state; /* NONE: the thread has ended before the last time */
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
    enum company others;
    bool is_last, is_none;
    do {
        const struct timespec until = after(ASK_MS);
        pthread_mutex_lock(&lock);
        if (state == RUNS) pthread_cond_timedwait(&wakes, &lock, &until);
        others = own_thread_company();
        is_last = state == LAST || others == ALONE;
        is_none = !is_last && others == UNKNOWN;
        if (is_none) state = NONE;
        pthread_mutex_unlock(&lock);
        ask(is_last);
    } while (!is_last && !is_none);
    pthread_mutex_lock(&lock);
    if (is_last) state = OVER;
    pthread_cond_signal(&ends);
    pthread_mutex_unlock(&lock);
    own_thread_leaves(others);
    return NULL;
}

bool cuda_thread_start(void (*asks)(bool is_last)) {
    pthread_t thread;
    pthread_condattr_t attributes;
    ask = asks;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wakes, &attributes);
    pthread_cond_init(&ends, &attributes);
    pthread_condattr_destroy(&attributes);
    const bool is_there = own_thread_start(&thread, loop);
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
    const bool is_none = state == NONE;
    if (state == RUNS) state = LAST;
    pthread_cond_signal(&wakes);
    while (state == LAST && !error) error = pthread_cond_timedwait(&ends, &lock, &until);
    pthread_mutex_unlock(&lock);
    if (is_none) ask(true); /* here: a thread that is made now might be taken for the program's last one */
    return !error;
}
