#include "recorder/openmp.h"

#include "recorder/libraries.h"
#include "recorder/operators.h"
#include "recorder/recording.h"
#include "recorder/redirect.h"

static void (*real_barrier)(void);
static bool (*real_single_start)(void);

/* The next barrier of this thread ends `omp single`, with which a graph begins: ggml_barrier is not called there. */
static __thread bool is_single __attribute__((tls_model("initial-exec")));

static bool single_start(void) {
    is_single = true;
    return real_single_start();
}

static void wait(void * threadpool) {
    (void) threadpool;
    real_barrier();
}

static void barrier(void) {
    const bool is_of_ggml = !is_single;
    is_single = false;
    if (!is_of_ggml || recording_level() < LEVEL_OPERATOR) real_barrier();
    else if (!operators_barrier_plain(NULL)) operators_barrier(wait, NULL);
}

static bool is_redirected;

/* Libraries of one that dlopen has loaded are found by that one only. */
static void * find(const void * program, const char * name) {
    const char * path;
    void * found = dlsym(RTLD_NEXT, name), * library = found ? NULL : library_of(program, &path);
    return library ? dlsym(library, name) : found;
}

bool openmp_redirect(const void * program) {
    *(void **) &real_barrier = find(program, "GOMP_barrier");
    *(void **) &real_single_start = find(program, "GOMP_single_start");
    if (!real_barrier || !real_single_start) return false;
    if (!redirect(program, "GOMP_single_start", (void *) (uintptr_t) single_start)) return false;
    is_redirected = redirect(program, "GOMP_barrier", (void *) (uintptr_t) barrier);
    if (is_redirected) worker_alone_is_open = true;
    return is_redirected;
}

bool openmp_is_redirected(void) {
    return is_redirected;
}
