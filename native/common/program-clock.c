#include "common/program-clock.h"

#include <sys/auxv.h>

#include "common/process.h"
#include "log/ggtrace.h"

enum { TRIES = 5, LEAST_AHEAD_NS = 1000000, LEAST_PART = 10000, MILLION = 1000000 };

typedef int clock_function(clockid_t clock, struct timespec * time);

static clock_function * replaced; /* what the program calls; NULL: the C library's own */

static const struct { clockid_t id; const char * name; } clocks[] = {{CLOCK_MONOTONIC, "MONOTONIC"}, {CLOCK_REALTIME, "REALTIME"}};
enum { CLOCKS = sizeof(clocks) / sizeof(*clocks) };

/* Both clocks at the same time, but for `apart`. */
struct readings {
    int64_t program, system, apart;
};
static struct readings first[CLOCKS];

static int64_t read_ns(clock_function * read, clockid_t id) {
    struct timespec now = {0};
    read(id, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct readings read_both(clockid_t id) {
    struct readings best = {.apart = INT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        const int64_t before = read_ns(ggtrace_clock, id), program = read_ns(replaced, id), apart = read_ns(ggtrace_clock, id) - before;
        if (apart < best.apart) best = (struct readings){program, before, apart};
    }
    return best;
}

/* In the C library: no other library replaces the function by which that is found. */
static clock_function * find_own(void) {
    Dl_info libc;
    clock_function * own = NULL;
    const void * inside = dlsym(RTLD_NEXT, "getauxval");
    void * library = inside && dladdr(inside, &libc) ? dlopen(libc.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library) *(void **) &own = dlsym(library, "clock_gettime");
    return own;
}

void program_clock_prepare(void) {
    clock_function * const own = find_own();
    *(void **) &replaced = dlsym(RTLD_DEFAULT, "clock_gettime");
    dlerror();
    if (!own || replaced == own) replaced = NULL;
    if (!replaced) return;
    ggtrace_clock = own;
    for (int i = 0; i < CLOCKS; i++) first[i] = read_both(clocks[i].id);
}

static void fact_number(void (*fact)(const char * key, const char * value), const char * key, int64_t number) {
    char text[NUMBER_BYTES + 1] = "-";
    number_text(text + (number < 0), number < 0 ? -(uint64_t) number : (uint64_t) number);
    fact(key, text);
}

static void fact_library(void (*fact)(const char * key, const char * value)) {
    static bool is_written;
    Dl_info library;
    if (is_written) return;
    is_written = true;
    fact("clock.program", dladdr(*(void **) &replaced, &library) && library.dli_fname ? library.dli_fname : "another clock_gettime");
}

static bool is_ahead(const struct readings * now) {
    return llabs(now->program - now->system) > LEAST_AHEAD_NS + now->apart;
}

static bool has_speed(const struct readings * now, const struct readings * before) {
    const int64_t since = now->system - before->system, gained = now->program - before->program - since;
    return llabs(gained) > since / LEAST_PART + now->apart + before->apart;
}

void program_clock_open(void (*fact)(const char * key, const char * value)) {
    for (int i = 0; replaced && i < CLOCKS; i++) {
        const struct readings now = read_both(clocks[i].id);
        if (is_ahead(&now)) fact_library(fact);
    }
}

/* Of the first clock that differs. */
void program_clock_finish(void (*fact)(const char * key, const char * value)) {
    for (int i = 0; replaced && i < CLOCKS; i++) {
        const struct readings now = read_both(clocks[i].id);
        const bool is_other_speed = has_speed(&now, &first[i]);
        if (!is_ahead(&now) && !is_other_speed) continue;
        fact_library(fact);
        fact("clock.program_of", clocks[i].name);
        fact_number(fact, "clock.program_ahead_ns", now.program - now.system);
        const double passed = (double) (now.program - first[i].program) / (double) (now.system - first[i].system);
        if (is_other_speed) fact_number(fact, "clock.program_speed_ppm", (int64_t) (passed * MILLION));
        return;
    }
}
