/*
 * LD_PRELOAD behind the recorder: threads other than the first get no CPU for 20 ms when a barrier of ggml's has let them go.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int find(struct dl_phdr_info * library, size_t size, void * real) {
    (void) size;
    if (!strstr(library->dlpi_name, "libggml-cpu-")) return 0;
    *(void **) real = dlsym(dlopen(library->dlpi_name, RTLD_NOW | RTLD_NOLOAD), "ggml_barrier");
    return 0; /* several are tried out, the last one is used */
}

/* Declared by no header of llama.cpp's that is installed. */
struct ggml_threadpool;
void ggml_barrier(struct ggml_threadpool * threadpool);

void ggml_barrier(struct ggml_threadpool * threadpool) {
    __typeof__(ggml_barrier) * real = NULL;
    dl_iterate_phdr(find, &real);
    real(threadpool);
    if (gettid() == getpid()) return;
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}
