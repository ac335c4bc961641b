/* Calls functions of CUDA and cuBLAS that it finds in the process, though no library of them is there: those that the recorder hooks. Prints results. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    static const char * const names[] = {"cudaGetDeviceCount", "cudaGetDeviceProperties_v2", "cudaMemset", "cudaDeviceSynchronize", "cublasSetStream_v2"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int (*function)(void *, int, size_t);
        *(void **) &function = dlsym(RTLD_DEFAULT, names[i]);
        printf("%d ", function ? function(NULL, 0, 0) : -1);
    }
    return 0;
}
