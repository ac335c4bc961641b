/*
 * The headers of the system that modules use, with GNU's extensions, which must be named before the first of them: each header of these
 * folders includes it first. Those of log/ do not, as other programs compile them. <stdio.h> is not among them: it cannot be included
 * before GGTRACE_POISON (log/ggtrace.h), and a module that prints names it.
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Of variables of other files: GCC takes one that is only declared for one of another object, and loads its address first, in each hook. */
#define HIDDEN __attribute__((visibility("hidden")))
