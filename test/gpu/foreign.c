/* Loaded with LD_PRELOAD: a library that is not ggml's uses CUDA on the program's own thread, before each graph, as PyTorch in one process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "../llama/stand-in.h"

enum { BYTES = 12345 };

int cudaMemsetAsync(void * to, int value, size_t size, void * stream);

enum ggml_status ggml_backend_sched_graph_compute_async(struct ggml_backend_sched * sched, struct ggml_cgraph * graph) {
    static char memory[BYTES];
    static __typeof__(ggml_backend_sched_graph_compute_async) * real;
    if (!real) *(void **) &real = dlsym(RTLD_NEXT, "ggml_backend_sched_graph_compute_async");
    cudaMemsetAsync(memory, 0, BYTES, NULL);
    return real(sched, graph);
}
