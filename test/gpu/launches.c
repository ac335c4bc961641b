/* What the recorder costs for a launch: each launch is made by the program's own function, and by the library's, in turns. Prints ns of each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "ggml-backend.h"
#include "ggml-cuda.h"
#include "llama.h"

enum { LAUNCHES = 2000, TURNS = 200 };

int cudaMemsetAsync(void * to, int value, size_t size, void * stream);

int cudaGetDeviceCount(int * count);

/* As a program that ggml-cuda is linked into: what other libraries launch is not recorded. */
ggml_backend_reg_t ggml_backend_cuda_reg(void) {
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec * 1e9 + (double) time.tv_nsec;
}

int main(void) {
    int devices;
    const struct ggml_tensor empty = {.ne = {0}};
    if (cudaGetDeviceCount(&devices) != 0 || !ggml_is_empty(&empty)) return 1; /* the recorder begins with CUDA here, and its log with the next */
    llama_model_load_from_file("/nonexistent", llama_model_default_params());
    int (*direct)(void *, int, size_t, void *);
    *(void **) &direct = dlsym(dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD), "cudaMemsetAsync");
    double hooked = 1e18, plain = 1e18;
    char byte;
    for (int turn = 0; turn < TURNS; turn++) {
        const double begin = now();
        for (int i = 0; i < LAUNCHES; i++) cudaMemsetAsync(&byte, 0, 0, NULL);
        const double middle = now();
        for (int i = 0; i < LAUNCHES; i++) direct(&byte, 0, 0, NULL);
        const double end = now();
        if (middle - begin < hooked) hooked = middle - begin;
        if (end - middle < plain) plain = end - middle;
    }
    printf("%.1f %.1f\n", hooked / LAUNCHES, plain / LAUNCHES);
    return 0;
}
