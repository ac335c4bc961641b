#include "recorder/own-threads.h"

static _Atomic unsigned count;
static sigset_t mask_of_program; /* of the thread that started the latest one */

bool own_thread_start(pthread_t * thread, void * (*run)(void *)) {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* blocked, a fault in a page of a truncated log would kill the program */
    pthread_sigmask(SIG_SETMASK, &all, &mask_of_program);
    atomic_fetch_add(&count, 1);
    const bool is_started = pthread_create(thread, NULL, run, NULL) == 0;
    if (!is_started) atomic_fetch_sub(&count, 1);
    pthread_sigmask(SIG_SETMASK, &mask_of_program, NULL);
    return is_started;
}

void own_threads_forked(void) {
    atomic_store(&count, 0);
}

/*
 * A main thread that called pthread_exit stays a zombie until the process ends: it counts as a thread, but has no executable. This opens no
 * file, because the program may close all descriptors at any moment.
 */
enum company own_thread_company(void) {
    enum { LINKS_OF_FOLDER = 2, MAIN = 1 };
    struct stat tasks;
    char byte;
    if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink < LINKS_OF_FOLDER + MAIN) return UNKNOWN;
    if (tasks.st_nlink > LINKS_OF_FOLDER + MAIN + atomic_load(&count)) return WITH_OTHERS;
    if (readlink("/proc/self/exe", &byte, 1) >= 0) return WITH_OTHERS;
    return errno == ENOENT ? ALONE : UNKNOWN;
}

/* The exit status of the main thread, from its zombie: not 0 if it made the system call itself. */
static int status_of_main(void) {
    char text[1024];
    const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
    if (file >= 0) close(file);
    text[length < 0 ? 0 : length] = 0;
    const char * last = strrchr(text, ' ');
    return last ? atoi(last) >> 8 & 0xff : 0;
}

void own_thread_leaves(enum company others) {
    atomic_fetch_sub(&count, 1);
    if (others != ALONE) return;
    const int status = status_of_main(); /* Linux uses that of the last thread (from 5.17 on), and libc does not handle this case */
    if (status != 0) syscall(SYS_exit, status);
    pthread_sigmask(SIG_SETMASK, &mask_of_program, NULL); /* for the program's exit handlers, which run on this thread */
}
