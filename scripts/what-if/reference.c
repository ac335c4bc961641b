/*
 * Work that is always the same: `reference CPU…`. A thread on each of these CPUs computes in registers, then reads memory that is in no cache. Prints what the
 * slowest took for each, in ns: `{"compute_ns": …, "memory_ns": …}`. What other guests of a host take from this one is in no figure of its kernel; it is in these.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CPUS_MAX = 1024, CHAINS = 16, ROUNDS = 12000000, PASSES = 8 };
#define BYTES ((size_t) 64 << 20)

struct worker {
    int cpu;
    uint64_t compute_ns, memory_ns;
    pthread_t thread;
};
static pthread_barrier_t together;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

static void * work(void * data) {
    struct worker * worker = data;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((size_t) worker->cpu, &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
    uint64_t * words = malloc(BYTES);
    if (!words) exit(1);
    memset(words, 1, BYTES);
    float sums[CHAINS] = {0};
    pthread_barrier_wait(&together);
    const uint64_t began = now();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * 0.75f + 1;
    worker->compute_ns = now() - began;
    /* All read at once, also where one was late: each alone would read faster. */
    pthread_barrier_wait(&together);
    const uint64_t computed = now();
    uint64_t sum = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        for (size_t i = 0; i < BYTES / sizeof *words; i++) sum += words[i];
        __asm__ volatile("" : "+r"(sum) : : "memory");
    }
    worker->memory_ns = now() - computed;
    __asm__ volatile("" : : "r"(sums) : "memory");
    free(words);
    return NULL;
}

int main(int count, char ** arguments) {
    static struct worker workers[CPUS_MAX];
    const int threads = count - 1;
    if (threads < 1 || threads > CPUS_MAX) return 2;
    pthread_barrier_init(&together, NULL, (unsigned) threads);
    for (int i = 0; i < threads; i++) {
        workers[i].cpu = atoi(arguments[i + 1]);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) return 1;
    }
    uint64_t compute = 0, memory = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].compute_ns > compute) compute = workers[i].compute_ns;
        if (workers[i].memory_ns > memory) memory = workers[i].memory_ns;
    }
    printf("{\"compute_ns\": %llu, \"memory_ns\": %llu}\n", (unsigned long long) compute, (unsigned long long) memory);
    return 0;
}
