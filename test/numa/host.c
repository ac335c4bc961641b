/*
 * A host of ggml for a machine with two NUMA nodes: binds pages of weights to nodes, computes products, and prints what the recorder must
 * have found: the node of each page, by move_pages(2) of its own, and which thread touched each page first, by faults of pages without access.
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

enum { PAGE = 4096, COLUMNS = PAGE / sizeof(float), ROWS = 256, WEIGHTS = 3, TIMES = 4 };

static char * memory; /* of all weights, a row on each page */
static struct touch { int tid, node; } touches[WEIGHTS * ROWS];

static void check(int is_done, const char * what) {
    if (is_done) return;
    perror(what);
    exit(1);
}

static void touched(int signal, siginfo_t * info, void * context) {
    (void) signal, (void) context;
    const size_t page = (size_t) ((char *) info->si_addr - memory) / PAGE;
    unsigned node = 0;
    if (page >= WEIGHTS * ROWS) abort();
    syscall(SYS_getcpu, NULL, &node, NULL);
    touches[page] = (struct touch){(int) syscall(SYS_gettid), (int) node};
    mprotect(memory + page * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void bind_pages(size_t from, size_t count, int mode, unsigned long nodes) {
    check(syscall(SYS_mbind, memory + from * PAGE, count * PAGE, mode, &nodes, 64, 0) == 0, "mbind");
}

/* The first weight: by turns on both nodes, in pieces of growing size. The second: interleaved. The third: all on node 1. */
static void place(void) {
    size_t at = 0;
    for (size_t size = 1, node = 0; at < ROWS; at += size++, node ^= 1) {
        bind_pages(at, size < ROWS - at ? size : ROWS - at, MPOL_BIND, 1ul << node);
    }
    bind_pages(ROWS, ROWS, MPOL_INTERLEAVE, 3);
    bind_pages(2 * ROWS, ROWS, MPOL_BIND, 2);
}

static void print_numbers(const char * name, int (*number)(size_t page)) {
    printf(",\"%s\":[", name);
    for (size_t page = 0; page < WEIGHTS * ROWS; page++) printf(page ? ",%d" : "%d", number(page));
    printf("]");
}

static int node_of(size_t page) {
    void * address = memory + page * PAGE;
    int node = -1;
    check(syscall(SYS_move_pages, 0, 1ul, &address, NULL, &node, 0) == 0, "move_pages");
    return node;
}

static int tid_of(size_t page) { return touches[page].tid; }
static int touched_from(size_t page) { return touches[page].node; }

int main(int argc, char ** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 4;
    if (argc > 2 && strcmp(argv[2], "distribute") == 0) ggml_numa_init(GGML_NUMA_STRATEGY_DISTRIBUTE);
    /* Longer than the weights: its last pages are never used. */
    memory = mmap(NULL, (WEIGHTS + 1) * ROWS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED, "mmap");
    madvise(memory, (WEIGHTS + 1) * ROWS * PAGE, MADV_NOHUGEPAGE);
    place();
    for (size_t i = 0; i < (size_t) WEIGHTS * ROWS * COLUMNS; i++) ((float *) (void *) memory)[i] = (float) (i % 7);

    ggml_backend_t backend = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(backend, threads);
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, (WEIGHTS + 1) * ROWS * PAGE);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    struct ggml_context * context = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    struct ggml_cgraph * graph = ggml_new_graph(context);
    struct ggml_tensor * input = ggml_new_tensor_1d(context, GGML_TYPE_F32, COLUMNS);
    ggml_set_input(input);
    for (int i = 0; i < WEIGHTS; i++) {
        struct ggml_tensor * weight = ggml_new_tensor_2d(context, GGML_TYPE_F32, COLUMNS, ROWS);
        char name[32];
        snprintf(name, sizeof(name), "blk.%d.ffn_up.weight", i);
        ggml_set_name(weight, name);
        ggml_backend_tensor_alloc(buffer, weight, memory + (size_t) i * ROWS * PAGE);
        ggml_build_forward_expand(graph, ggml_mul_mat(context, weight, input));
    }
    ggml_backend_sched_t scheduler = ggml_backend_sched_new(&backend, NULL, 1, 64, false, false);
    check(ggml_backend_sched_alloc_graph(scheduler, graph), "alloc");
    float zeros[COLUMNS] = {0};
    ggml_backend_tensor_set(input, zeros, 0, sizeof(zeros));

    struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    check(mprotect(memory, WEIGHTS * ROWS * PAGE, PROT_NONE) == 0, "mprotect");
    for (int i = 0; i < TIMES; i++) check(ggml_backend_sched_graph_compute(scheduler, graph) == GGML_STATUS_SUCCESS, "compute");
    printf("{\"address\":%llu,\"pid\":%d,\"is_numa\":%d", (unsigned long long) (uintptr_t) memory, getpid(), ggml_is_numa());
    print_numbers("nodes", node_of);
    print_numbers("tids", tid_of);
    print_numbers("from", touched_from);
    printf("}\n");
    ggml_backend_sched_free(scheduler);
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(backend);
    ggml_free(context);
    return 0;
}
