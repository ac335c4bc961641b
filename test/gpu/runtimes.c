/*
 * Two libraries, each with a CUDA runtime of its own, in one process: -DLIBRARY makes one of them, the program calls each and prints the errors
 * that the runtimes remember. An error is remembered by the runtime that was called.
 */
#define _GNU_SOURCE
#ifdef LIBRARY
int cudaSetDevice(int device);
int cudaGetLastError(void);

int fail(void);
int fail(void) {
    return cudaSetDevice(99);
}

int last_error(void);
int last_error(void) {
    return cudaGetLastError();
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Arguments: whether all libraries see those that are loaded ("global"), then paths. */
int main(int count, char ** arguments) {
    int (*fail[2])(void), (*last_error[2])(void);
    const int mode = RTLD_NOW | (count > 1 && strcmp(arguments[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
    for (int i = 0; i < 2; i++) {
        void * library = dlopen(arguments[2 + i], mode);
        if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
        *(void **) &fail[i] = dlsym(library, "fail");
        *(void **) &last_error[i] = dlsym(library, "last_error");
    }
    for (int turn = 0; turn < 4; turn++) {
        const int result = fail[turn % 2]();
        printf("%d: %d, %d\n", result, last_error[0](), last_error[1]());
    }
    return 0;
}
#endif
