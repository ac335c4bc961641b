/* A clock that runs SPEED times as fast, and is AHEAD seconds ahead, as libfaketime's: for LD_PRELOAD. ONLY=0 or 1: of CLOCK_REALTIME or CLOCK_MONOTONIC alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

enum { CLOCKS = 2 };
static int (*real)(clockid_t, struct timespec *);
static struct timespec first[CLOCKS];
static double speed = 1, ahead;
static int only = -1;

static double number(const char * name, double otherwise) {
    const char * text = getenv(name);
    return text ? atof(text) : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    if (real) return;
    *(void **) &real = dlsym(RTLD_NEXT, "clock_gettime");
    speed = number("FAKE_SPEED", 1);
    ahead = number("FAKE_AHEAD", 0);
    only = (int) number("FAKE_ONLY", -1);
    for (int i = 0; i < CLOCKS; i++) real(i, &first[i]);
}

int clock_gettime(clockid_t clock, struct timespec * time) {
    begin();
    const int result = real(clock, time);
    if (result != 0 || clock < 0 || clock >= CLOCKS || (only >= 0 && clock != only)) return result;
    const double since = (double) (time->tv_sec - first[clock].tv_sec) * 1e9 + (double) (time->tv_nsec - first[clock].tv_nsec);
    const long long ns = first[clock].tv_nsec + (long long) (since * speed + ahead * 1e9);
    const long long second = 1000000000;
    time->tv_nsec = (long) (((ns % second) + second) % second);
    time->tv_sec = first[clock].tv_sec + (time_t) ((ns - time->tv_nsec) / second);
    return 0;
}
