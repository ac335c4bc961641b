/*
 * Release builds run with an older glibc than that of the build machine. Functions that moved from libdl and libpthread to libc (2.34)
 * are linked by their earlier versions, which newer versions of glibc provide too. `make release` includes this before every source
 * file, so it includes nothing itself: a file's _GNU_SOURCE must come first. stat.c and start.c do the rest.
 */
#pragma once

#if defined(__x86_64__)
#define GLIBC_OLDEST "GLIBC_2.2.5"
#define GLIBC_CONDATTR "GLIBC_2.3.3"
#define GLIBC_DLINFO "GLIBC_2.3.3"
#define GLIBC_SCANF "GLIBC_2.7"
#elif defined(__aarch64__)
#define GLIBC_OLDEST "GLIBC_2.17"
#define GLIBC_CONDATTR GLIBC_OLDEST
#define GLIBC_DLINFO GLIBC_OLDEST
#define GLIBC_SCANF GLIBC_OLDEST
#else
#error "which versions glibc began with here is not known"
#endif

#define GLIBC_AS(name, old, version) __asm__(".symver " name ", " old "@" version)
#define GLIBC_OLD(name) GLIBC_AS(#name, #name, GLIBC_OLDEST)

GLIBC_OLD(dladdr);
GLIBC_OLD(dlclose);
GLIBC_OLD(dlerror);
#ifndef DEFINES_DLOPEN /* a file that defines it gives it no version */
GLIBC_OLD(dlopen);
#endif
GLIBC_OLD(dlsym);
GLIBC_OLD(dlvsym);
GLIBC_OLD(pthread_barrier_destroy);
GLIBC_OLD(pthread_barrier_init);
GLIBC_OLD(pthread_barrier_wait);
GLIBC_OLD(pthread_create);
GLIBC_OLD(pthread_detach);
GLIBC_OLD(pthread_join);
GLIBC_OLD(pthread_key_create);
GLIBC_OLD(pthread_mutex_timedlock);
GLIBC_OLD(pthread_mutex_trylock);
GLIBC_OLD(pthread_once);
GLIBC_OLD(pthread_setspecific);
GLIBC_OLD(pthread_sigmask);
GLIBC_AS("dlinfo", "dlinfo", GLIBC_DLINFO);
GLIBC_AS("pthread_condattr_setclock", "pthread_condattr_setclock", GLIBC_CONDATTR);

/* Headers since glibc 2.38 use these names for functions that accept C23 numbers, such as 0b101. */
GLIBC_AS("__isoc23_strtol", "strtol", GLIBC_OLDEST);
GLIBC_AS("__isoc23_strtoul", "strtoul", GLIBC_OLDEST);
GLIBC_AS("__isoc23_strtoll", "strtoll", GLIBC_OLDEST);
GLIBC_AS("__isoc23_strtoull", "strtoull", GLIBC_OLDEST);
GLIBC_AS("__isoc23_sscanf", "__isoc99_sscanf", GLIBC_SCANF);
