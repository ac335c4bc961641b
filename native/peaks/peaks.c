/*
 * peaks: measures the peak rates of this machine and prints them as JSON: bytes read from memory, FP32 and INT8 operations
 * per second, with one thread, with 2, 4 …, and with one thread on each usable CPU. Takes about two seconds on two CPUs.
 *
 * All threads start at the same time and work for the same time, in small pieces; the pieces completed in that window are
 * added up. So a slow core does not hold up fast ones, and an interrupted thread delays nobody. The best of many windows counts.
 */
#define _GNU_SOURCE
#include "peaks/peaks.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t) 1 << 20)
/* Short and many: if other programs compute too, some windows fall between their turns. */
#define WINDOW_NS 3000000
/* By then, all threads have woken up. */
#define START_AFTER_NS 200000
#define START_AFTER_EACH_NS 5000
#define CPUS_MAX 65536

/* Under load, windows wait for their threads: no more of them after this time. */
#define WINDOWS_NS_MAX 1000000000

enum { WINDOWS = 80, LONG_BITS = 8 * sizeof(long) };

/* Size of the buffers, as a multiple of the last-level caches. */
#define CACHES 8
#define CACHES_MIN 2 /* with less, the caches would be measured */
#define BUFFERS_MIN (64 * MIB)
#define BUFFERS_MAX (8192 * MIB)
#define AVAILABLE_PART 4 /* use no more than a quarter of the free memory */
#define CACHE_UNKNOWN (32 * MIB)
#define HUGE_PAGE (2 * MIB)
#define READ_PIECE MIB
#define COMPUTE_PIECE 4096 /* rounds; some 10 µs */

struct cpu {
    int number;
    int cache; /* the first CPU that shares its last-level cache */
    size_t cache_bytes;
    long capacity; /* relative speed: cores of one processor may differ */
};

struct team;

struct member {
    struct team * team;
    int cpu;
    char * buffer;
    size_t position;
    double rate; /* work per second in the last window */
};

struct team {
    const struct peaks_kernel * kernel;
    size_t buffer_bytes; /* of each member; 0: no buffers */
    size_t count;
    struct member * members;
    pthread_barrier_t barrier;
    uint64_t start;
    bool is_done;
    atomic_int error;
    double best;
    double median; /* of the windows */
};

static void fail(const char * what, int error) {
    fprintf(stderr, "peaks: %s: %s\n", what, strerror(error));
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

/* ---- The machine ---- */

/* The first line of a file, without its end. */
static bool read_line(const char * path, char * line, int size) {
    FILE * file = fopen(path, "re");
    if (!file) return false;
    const bool is_read = fgets(line, size, file);
    fclose(file);
    if (is_read) line[strcspn(line, "\n")] = 0;
    return is_read;
}

/* The number in a file, such as `32768K`; -1 if there is none. */
static long long read_number(const char * path) {
    char line[64], * end;
    if (!read_line(path, line, sizeof line)) return -1;
    const long long value = strtoll(line, &end, 10);
    if (end == line) return -1;
    return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

static void describe_cpu(struct cpu * cpu) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu->number);
    cpu->capacity = (long) read_number(path);
    cpu->cache = cpu->number;
    long long last_level = 0;
    for (int index = 0; index < 8; index++) {
        const int stem = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/", cpu->number, index);
        const size_t room = sizeof path - (size_t) stem;
        snprintf(path + stem, room, "level");
        const long long level = read_number(path);
        snprintf(path + stem, room, "size");
        const long long bytes = read_number(path);
        if (level <= last_level || bytes <= 0) continue;
        last_level = level;
        cpu->cache_bytes = (size_t) bytes;
        snprintf(path + stem, room, "shared_cpu_list");
        const long long first = read_number(path);
        cpu->cache = first < 0 ? cpu->number : (int) first;
    }
    if (cpu->cache_bytes) return;
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    cpu->cache = 0;
    cpu->cache_bytes = bytes > 0 ? (size_t) bytes : CACHE_UNKNOWN;
}

/* The CPUs that this process may use, the fastest kind first. */
static size_t find_cpus(struct cpu ** cpus) {
    const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t * set = CPU_ALLOC(CPUS_MAX);
    if (!set || sched_getaffinity(0, size, set)) fail("sched_getaffinity", errno);
    *cpus = calloc((size_t) CPU_COUNT_S(size, set), sizeof **cpus);
    if (!*cpus) fail("memory", errno);
    size_t count = 0, fastest = 0;
    for (int number = 0; number < CPUS_MAX; number++) {
        if (!CPU_ISSET_S((size_t) number, size, set)) continue;
        (*cpus)[count].number = number;
        describe_cpu(&(*cpus)[count]);
        if ((*cpus)[count].capacity > (*cpus)[fastest].capacity) fastest = count;
        count++;
    }
    CPU_FREE(set);
    const struct cpu first = (*cpus)[0];
    (*cpus)[0] = (*cpus)[fastest];
    (*cpus)[fastest] = first;
    return count;
}

/* The total size of the last-level caches of these CPUs, each cache counted once. */
static size_t cache_bytes(const struct cpu * cpus, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (same < i && cpus[same].cache != cpus[i].cache) same++;
        if (same == i) bytes += cpus[i].cache_bytes;
    }
    return bytes;
}

/* Memory that the control group may still use; LLONG_MAX: no limit. */
static long long left_in_group(void) {
    char path[PATH_MAX + 64], line[PATH_MAX] = "";
    FILE * file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file) && strncmp(line, "0::", 3)) line[0] = 0;
    if (file) fclose(file);
    line[strcspn(line, "\n")] = 0;
    const char * group = strncmp(line, "0::", 3) ? "" : line + 3;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
    long long limit = read_number(path);
    if (limit >= 0) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", group);
    } else {
        limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        snprintf(path, sizeof path, "/sys/fs/cgroup/memory/memory.usage_in_bytes");
    }
    const long long used = read_number(path);
    return limit < 0 || used < 0 ? LLONG_MAX : limit > used ? limit - used : 0;
}

/* Memory that can be allocated without swapping and without the OOM killer. */
static size_t available_bytes(void) {
    long long available = -1, value;
    char line[128];
    FILE * file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %lld kB", &value) == 1) available = value << 10;
    }
    if (file) fclose(file);
    if (available < 0) available = (long long) sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
    const long long left = left_in_group();
    return (size_t) (left < available ? left : available);
}

/* The size of each member's buffer. */
static size_t buffer_bytes(const struct cpu * cpus, size_t count) {
    size_t total = CACHES * cache_bytes(cpus, count);
    const size_t most = available_bytes() / AVAILABLE_PART;
    if (total < BUFFERS_MIN) total = BUFFERS_MIN;
    if (total > BUFFERS_MAX) total = BUFFERS_MAX;
    if (total > most) total = most;
    const size_t share = total / count / HUGE_PAGE * HUGE_PAGE;
    return share ? share : HUGE_PAGE;
}

/* CPU time of this process, in seconds. */
static double own_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Time in which these CPUs, since the system started, were not idle, in seconds; below 0: not known. */
static double busy_seconds(const struct cpu * cpus, size_t count) {
    FILE * file = fopen("/proc/stat", "re");
    if (!file) return -1;
    char line[512];
    size_t found = 0;
    unsigned long long busy = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned number;
        unsigned long long user, nice, system, idle, io, irq, softirq, steal = 0;
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &number, &user, &nice, &system, &idle, &io, &irq,
                   &softirq, &steal) < 8) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if ((unsigned) cpus[i].number != number) continue;
            busy += user + nice + system + irq + softirq + steal;
            found++;
        }
    }
    fclose(file);
    return found == count ? (double) busy / (double) sysconf(_SC_CLK_TCK) : -1;
}

/* ---- Measuring ---- */

static int pin(int number) {
    /* On the stack: the first malloc of a thread reserves address space, which may be limited. */
    unsigned long bits[CPUS_MAX / LONG_BITS] = {0};
    bits[number / LONG_BITS] = 1ul << number % LONG_BITS;
    return sched_setaffinity(0, sizeof bits, (const cpu_set_t *) bits) ? errno : 0;
}

/* The reader touches its buffer first, so that the memory is local to its CPU. */
static int take_buffer(struct member * member) {
    const size_t size = member->team->buffer_bytes;
    if (!size) return 0;
    char * mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return errno;
    madvise(mapped, size, MADV_HUGEPAGE);
    memset(mapped, 1, size);
    member->buffer = mapped;
    return 0;
}

static void work_in_window(struct member * member) {
    const struct team * team = member->team;
    const struct peaks_kernel * kernel = team->kernel;
    const uint64_t rounds = team->buffer_bytes ? READ_PIECE / kernel->work : COMPUTE_PIECE;
    uint64_t time, pieces = 0;
    while ((time = now()) < team->start) {}
    while (time < team->start + WINDOW_NS) {
        kernel->run(member->buffer ? member->buffer + member->position : NULL, rounds);
        /* The next window continues from here: what was read last may be in a cache. */
        member->position += READ_PIECE;
        if (member->position >= team->buffer_bytes) member->position = 0;
        pieces++;
        time = now();
    }
    member->rate = (double) pieces * (double) rounds * kernel->work * 1e9 / (double) (time - team->start);
}

static int by_value(const void * a, const void * b) {
    const double left = *(const double *) a, right = *(const double *) b;
    return (left > right) - (left < right);
}

static void * work(void * argument) {
    struct member * member = argument;
    struct team * team = member->team;
    const bool leads = member == team->members;
    double sums[WINDOWS] = {0};
    int error = pin(member->cpu);
    if (!error) error = take_buffer(member);
    if (error) atomic_store(&team->error, error);
    int windows = 0;
    uint64_t began = 0;
    for (int window = 0;; window++) {
        pthread_barrier_wait(&team->barrier);
        if (atomic_load(&team->error)) break;
        if (leads) {
            double sum = 0;
            for (size_t i = 0; i < team->count; i++) sum += team->members[i].rate;
            if (window == 0) began = now();
            else sums[windows++] = sum;
            team->is_done = windows == WINDOWS || (windows > 0 && now() - began > WINDOWS_NS_MAX);
            team->start = now() + START_AFTER_NS + START_AFTER_EACH_NS * team->count;
        }
        pthread_barrier_wait(&team->barrier);
        if (team->is_done) break;
        work_in_window(member);
    }
    if (windows > 0) {
        qsort(sums, (size_t) windows, sizeof *sums, by_value);
        team->best = sums[windows - 1];
        team->median = sums[windows / 2];
    }
    if (member->buffer) munmap(member->buffer, team->buffer_bytes);
    return NULL;
}

struct rate {
    double best, median;
};

/* The rates of all CPUs together; each reads its own buffer. */
static struct rate measure(const struct peaks_kernel * kernel, const struct cpu * cpus, size_t count, size_t buffer) {
    if (buffer && buffer * count < CACHES_MIN * cache_bytes(cpus, count)) {
        fail("reading memory, and not caches, needs more free memory", ENOMEM);
    }
    struct team team = {.kernel = kernel, .buffer_bytes = buffer, .count = count};
    pthread_t * threads = calloc(count, sizeof *threads);
    team.members = calloc(count, sizeof *team.members);
    if (!threads || !team.members) fail("memory", ENOMEM);
    int error = pthread_barrier_init(&team.barrier, NULL, (unsigned) count);
    for (size_t i = 0; i < count && !error; i++) {
        team.members[i] = (struct member){.team = &team, .cpu = cpus[i].number};
        error = pthread_create(&threads[i], NULL, work, &team.members[i]);
    }
    if (error) fail("cannot start a thread on each CPU", error);
    for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&team.barrier);
    free(team.members);
    free(threads);
    error = atomic_load(&team.error);
    if (error == ENOMEM && buffer > HUGE_PAGE) return measure(kernel, cpus, count, buffer / 2 / HUGE_PAGE * HUGE_PAGE);
    if (error) fail("cannot bind a thread to its CPU, or give it memory", error);
    return (struct rate){team.best, team.median};
}

static const struct peaks_kernel * best_of(const struct peaks_kernel * kernels) {
    while (!kernels->usable()) kernels++;
    return kernels;
}

static void report(const char * name, const struct peaks_kernel * kernels, const struct cpu * cpus, size_t count) {
    const bool reads = kernels == peaks_read;
    const struct peaks_kernel * kernel = best_of(kernels);
    struct rate one = {0, 0}, all = {0, 0};
    printf(", \"%s\": {\"instruction_set\": \"%s\", \"by_threads\": [", name, kernel->name);
    /* 1, 2, 4 … and all: a program with fewer threads cannot reach what all do. */
    for (size_t threads = 1; threads; threads = threads == count ? 0 : threads * 2 < count ? threads * 2 : count) {
        all = measure(kernel, cpus, threads, reads ? buffer_bytes(cpus, threads) : 0);
        if (threads == 1) one = all;
        printf("%s{\"threads\": %zu, \"rate\": %.0f, \"median\": %.0f}", threads == 1 ? "" : ", ", threads, all.best,
               all.median);
    }
    printf("], \"one\": %.0f, \"all\": %.0f}", one.best, all.best);
}

int main(int count, char ** arguments) {
    if (count == 3 && strcmp(arguments[1], "--ggml") == 0) return measure_ggml(arguments[2]);
    if (count > 1) {
        puts("usage: peaks; prints what this machine can do at most, a second, as JSON\n"
             "       peaks --ggml FOLDER; times matrix products of ggml, by jobs on stdin");
        return strcmp(arguments[1], "--help") ? 2 : 0;
    }
    struct cpu * cpus;
    const size_t threads = find_cpus(&cpus);
    const uint64_t began = now();
    const double busy_before = busy_seconds(cpus, threads), own_before = own_seconds();
    printf("{\"threads\": %zu", threads);
    report("read_bytes", peaks_read, cpus, threads);
    report("fp32_flops", peaks_fp32, cpus, threads);
    report("int8_ops", peaks_int8, cpus, threads);
    const double busy = busy_seconds(cpus, threads) - busy_before, others = busy - (own_seconds() - own_before);
    const double seconds = (double) (now() - began) / 1e9;
    if (busy_before < 0) puts(", \"load_share\": null}");
    else printf(", \"load_share\": %.4f}\n", others > 0 ? others / seconds / (double) threads : 0);
    free(cpus);
    return 0;
}
