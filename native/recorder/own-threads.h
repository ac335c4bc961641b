/*
 * Threads of the recorder's own. They handle no signals of the program, and must not keep the process alive: each ends when the program has
 * no threads any more.
 */
#pragma once

#include "common/system.h"

/* Starts a thread; false: there is none. */
bool own_thread_start(pthread_t * thread, void * (*run)(void *));

/* Which threads the process has but the recorder's. UNKNOWN: /proc cannot be read, such as after chroot. */
enum company { WITH_OTHERS, ALONE, UNKNOWN };
enum company own_thread_company(void);

/*
 * The last that such a thread calls before it returns, with what it found. If it is the last one of all, libc then calls exit(0) on it, as it
 * would have done on the program's last thread.
 */
void own_thread_leaves(enum company others);

/* In the child of a fork, which has none of them. */
void own_threads_forked(void);
