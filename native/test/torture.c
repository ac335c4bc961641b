/*
 * Tests what can happen to a log while it is written: torture TEST OUT [MORE]. Each test exits with 0, or prints what was wrong.
 * test/native/writer.test.ts reads the logs: the operators of a writer count up in `tensor`, so that missing ones show.
 *
 *   hammer OUT [THREADS]   many threads, many more segments, all of them at their smallest
 *   endless OUT            threads that write until they are killed, and print how much they have sealed
 *   full OUT [FILLER]      writes 8 MB to a disk with less room; then removes FILLER, and continues
 *   limit OUT              the same, with RLIMIT_FSIZE instead of the disk
 *   fork OUT               children that write, with and without ggtrace_abandon
 *   close OUT              closes while threads write, and lets them continue
 *   ring OUT               the same as hammer, in a log that keeps the last MiB
 *   edges OUT              odd times, odd sizes, no log, a closed log, paths that cannot be opened
 */
#include "common/system.h"
#include "log/ggtrace.h"

#include <stdio.h>
#include <sys/wait.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

enum { THREADS_MAX = 64 };
static const struct ggtrace_options smallest = {.segment_bytes = 4096, .block_bytes = 4096, .replace = true};
static const struct ggtrace_options usual = {.replace = true};
static struct ggtrace * log_file;
static uint32_t thread_count = THREADS_MAX;

static void start(void * (*work)(void *), pthread_t threads[], uint32_t count) {
    for (uintptr_t i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, work, (void *) i) == 0);
}

static void finish(pthread_t threads[], uint32_t count) {
    for (uint32_t i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Operators whose tensors count up from `from`; every other one starts where the one before ends. */
static void write_some(struct ggtrace_writer * writer, uint32_t from, uint32_t count) {
    uint64_t time = ggtrace_now();
    for (uint32_t i = from; i < from + count; i++, time += 100) {
        ggtrace_operator(writer, i, i % 2 ? time + 1 : time - 10, time + 60, time + 90, 0);
    }
}

/* ---- hammer ---- */

static void * hammer_thread(void * argument) {
    const uint32_t ith = (uint32_t) (uintptr_t) argument;
    for (uint32_t round = 0; round < 20; round++) {
        struct ggtrace_writer * writer = ggtrace_writer_acquire(log_file, ith);
        const uint32_t name = 1 + ith * 20 + round;
        CHECK(ggtrace_define_name(log_file, name, "a name of some length", 5 + round % 16));
        if (round % 8 == 0) ggtrace_expect(log_file, 1000 * round);
        ggtrace_call(writer, ggtrace_now(), round);
        write_some(writer, (uint32_t) writer->records_sealed, 100 + ith);
        ggtrace_counter(writer, ggtrace_now(), name, ith);
        ggtrace_writer_release(writer);
        writer = ggtrace_writer_of_thread(log_file, ith % 3 ? ith : GGTRACE_NO_WORKER);
        ggtrace_counter(writer, ggtrace_now(), name, round);
    }
    return NULL;
}

static void hammer(const char * path) {
    CHECK((log_file = ggtrace_open(path, &smallest)));
    pthread_t threads[THREADS_MAX];
    start(hammer_thread, threads, thread_count);
    finish(threads, thread_count);
    CHECK(ggtrace_totals(log_file).dropped == 0);
    ggtrace_close(log_file);
}

/* ---- ring ---- */

enum { RING_THREADS = 8 };
static pthread_barrier_t ring_end;

/* Some write much and some little, and some make definitions: these are the conflicting uses. */
static void * ring_thread(void * argument) {
    const uint32_t ith = (uint32_t) (uintptr_t) argument;
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, ith);
    for (uint32_t round = 0; round < 2000; round++) {
        const uint32_t count = ith % 2 ? 1 : 40;
        write_some(writer, round * count, count);
        if (round % 20 == 0) CHECK(ggtrace_define_name(log_file, 1 + ith * 100 + round / 20, "a name", 6));
    }
    pthread_barrier_wait(&ring_end); /* a thread that begins after another has ended reuses its writer and its place */
    return NULL;
}

static void ring(const char * path) {
    const struct ggtrace_options last_part = {.bytes_max = 1 << 20, .ring = true, .replace = true};
    CHECK((log_file = ggtrace_open(path, &last_part)));
    CHECK(ggtrace_is_ring(log_file));
    pthread_t threads[RING_THREADS];
    CHECK(pthread_barrier_init(&ring_end, NULL, RING_THREADS) == 0);
    start(ring_thread, threads, RING_THREADS);
    finish(threads, RING_THREADS);
    CHECK(ggtrace_totals(log_file).dropped == 0);
    ggtrace_close(log_file);
}

/* ---- endless ---- */

static void * endless_thread(void * argument) {
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, (uint32_t) (uintptr_t) argument);
    uint32_t names = 0;
    for (uint32_t i = 1;; i += 50) {
        write_some(writer, i, 50);
        if (i % 1000 == 1) ggtrace_define_name(log_file, ++names, "name", 4);
        char line[64];
        const int length = snprintf(line, sizeof(line), "%u %llu\n", (unsigned) writer->id,
                                    (unsigned long long) __atomic_load_n(&writer->records_sealed, __ATOMIC_RELAXED));
        CHECK(write(1, line, (size_t) length) == length);
        if (i > 40000000) i = 1;
    }
    return NULL;
}

static void endless(const char * path) {
    CHECK((log_file = ggtrace_open(path, &(struct ggtrace_options){.segment_bytes = 16384, .replace = true})));
    pthread_t threads[4];
    start(endless_thread, threads, 4);
    finish(threads, 4);
}

/* ---- full, limit ---- */

static void fill(const char * path, const char * filler) {
    enum { RECORDS = 400000 };
    CHECK((log_file = ggtrace_open(path, &usual)));
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, 0);
    errno = 77;
    ggtrace_expect(log_file, 3u << 19); /* more than the limit; on the disk without room, all that is left */
    const uint64_t began = ggtrace_now();
    write_some(writer, 1, RECORDS);
    CHECK(errno == 77);
    const uint64_t took = ggtrace_now() - began;
    struct ggtrace_totals totals = ggtrace_totals(log_file);
    CHECK(totals.written > 1000 && totals.dropped > 1000 && totals.written + totals.dropped == RECORDS);
    if (filler) {
        CHECK(unlink(filler) == 0);
        usleep(30000 + (useconds_t) (took / 1000)); /* the retry interval doubles, so the next one is not longer than all before */
        write_some(writer, RECORDS + 1, 1000);
        const struct ggtrace_totals later = ggtrace_totals(log_file);
        CHECK(later.written == totals.written + 1001 && later.dropped == totals.dropped); /* plus the LOSS */
    } else {
        uint32_t lost = 0;
        for (uint32_t id = 1; id < 100000; id++) lost += !ggtrace_define_name(log_file, id, "a name", 6);
        CHECK(lost > 1000);
    }
    ggtrace_close(log_file);
}

static void limit(const char * path) {
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20}) == 0);
    fill(path, NULL);
}

/* ---- fork ---- */

static void child(const char * path, bool abandons) {
    struct stat before = {0}, after = {0};
    CHECK(stat(path, &before) == 0);
    if (abandons) ggtrace_abandon(log_file);
    write_some(ggtrace_writer_of_thread(log_file, 0), 1, 50000);
    CHECK(!ggtrace_define_name(log_file, 99, "child", 5));
    CHECK(!ggtrace_fact(log_file, "child", "yes"));
    ggtrace_writer_release(ggtrace_writer_acquire(log_file, 5));
    ggtrace_flush(log_file);
    CHECK(ggtrace_totals(log_file).written == 0);
    ggtrace_close(log_file);
    CHECK(stat(path, &after) == 0 && before.st_size == after.st_size);
}

static void fork_test(const char * path) {
    CHECK((log_file = ggtrace_open(path, &usual)));
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, 0);
    write_some(writer, 1, 100);
    for (int abandons = 0; abandons < 2; abandons++) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            child(path, abandons);
            _exit(0);
        }
        int status = 0;
        write_some(writer, 101 + 100 * (uint32_t) abandons, 100);
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(ggtrace_totals(log_file).written == 300);
    ggtrace_close(log_file);
}

/* ---- close ---- */

static uint32_t stop_writing;

static void * close_thread(void * argument) {
    struct ggtrace_writer * writer = ggtrace_writer_of_thread(log_file, (uint32_t) (uintptr_t) argument);
    for (uint32_t i = 1; !__atomic_load_n(&stop_writing, __ATOMIC_RELAXED); i++) write_some(writer, i, 1);
    ggtrace_writer_flush(writer);
    return NULL;
}

static void close_test(const char * path) {
    for (int round = 0; round < 20; round++) {
        CHECK((log_file = ggtrace_open(path, round % 2 ? &usual : &smallest)));
        pthread_t threads[8];
        stop_writing = 0;
        start(close_thread, threads, 8);
        while (ggtrace_totals(log_file).written < 5000) usleep(100);
        ggtrace_close(log_file);
        usleep(1000); /* they continue to write, without effect */
        __atomic_store_n(&stop_writing, 1, __ATOMIC_RELAXED);
        finish(threads, 8);
    }
}

/* ---- edges ---- */

static void closed(struct ggtrace * log) {
    struct ggtrace_writer * writer = ggtrace_writer_acquire(log, 1);
    CHECK(writer && writer == ggtrace_writer_of_thread(log, 1));
    write_some(writer, 1, 100);
    ggtrace_call(writer, 1, 7);
    ggtrace_experts(writer, 1, 1, 1, 1, 0, (const int32_t[]){1});
    ggtrace_counter(writer, 1, 1, 1);
    ggtrace_writer_flush(writer);
    ggtrace_writer_release(writer);
    CHECK(!ggtrace_define_op(log, 1, 1) && !ggtrace_clocks(log));
    CHECK(!ggtrace_define_graph(log, 1, 1, (const uint32_t[]){1}, 1));
    ggtrace_expect(log, 10000);
    ggtrace_flush(log);
    ggtrace_close(log);
}

static void fails(const char * path, const struct ggtrace_options * options, int why) {
    errno = 0;
    CHECK(ggtrace_open(path, options) == NULL);
    CHECK(errno == why);
}

static void paths(const char * path) {
    char text[4096];
    fails(path, NULL, EEXIST);
    fails("/dev/full", NULL, EEXIST);
    fails("/dev/full", &usual, EEXIST);
    fails("/dev", &usual, EEXIST);
    snprintf(text, sizeof(text), "%s.d/log", path);
    fails(text, &usual, ENOENT);
    snprintf(text, sizeof(text), "%s.d", path);
    CHECK(mkdir(text, 0500) == 0);
    const uid_t me = geteuid();
    if (me == 0) CHECK(seteuid(65534) == 0);
    snprintf(text, sizeof(text), "%s.d/log", path);
    fails(text, NULL, EACCES);
    if (me == 0) CHECK(seteuid(me) == 0);
    snprintf(text, sizeof(text), "%s.d", path);
    CHECK(rmdir(text) == 0);
}

static void odd_records(void) {
    struct ggtrace_writer * writer = ggtrace_writer_acquire(log_file, 0);
    const uint64_t second = 1000000000;
    ggtrace_operator(writer, 1, 10 * second, 10 * second + 5, 10 * second + 9, 0);
    ggtrace_operator(writer, 2, 9 * second, 9 * second + 5, 9 * second + 9, 0);             /* earlier: CURSOR */
    ggtrace_operator_fused(writer, 3, 20 * second, 20 * second + 5, 20 * second + 9, 4);    /* a long pause: CURSOR */
    ggtrace_operator(writer, 4, 20 * second + 9, 30 * second, 31 * second, 8 * second);     /* LONG, and so is inner */
    ggtrace_operator(writer, 5, 31 * second, 31 * second + 0xffffffff, 31 * second + 0x1fffffffeull, 0); /* just fits */
    ggtrace_operator(writer, 6, 50 * second, 49 * second, 48 * second, 0);                  /* backwards: 0 long */
    ggtrace_operator(writer, (1 << 20) - 1, 50 * second, 50 * second + 0xffffff, 50 * second + 0x10ffffe, 0); /* just small */
    ggtrace_operator(writer, 1 << 20, 50 * second + 0x10ffffe, 50 * second + 0x10fffff, 50 * second + 0x10fffff, 0);
    ggtrace_operator(writer, 7, 50 * second + 0x10fffff, 50 * second + 0x20fffff, 50 * second + 0x20fffff, 0);
    ggtrace_operator(writer, 8, 50 * second + 0x20fffff, 50 * second + 0x20fffff, 50 * second + 0x21fffff, 0);
    ggtrace_call(writer, 51 * second, 1);
    ggtrace_call(writer, 52 * second, 1); /* no record */
    static int32_t ids[100000];
    for (int i = 0; i < 100000; i++) ids[i] = i;
    ggtrace_experts(writer, 52 * second, 1, 1000, 100, 1, ids); /* split into several records */
    ggtrace_experts(writer, 52 * second, 1, 1, 100000, 1, ids); /* does not fit at all: LOSS */
    ggtrace_writer_release(writer);
}

static void odd_definitions(void) {
    static char text[5000];
    for (int i = 0; i < 4998; i += 3) memcpy(text + i, "\xe2\x9c\x93", 3);
    CHECK(ggtrace_define_name(log_file, 1, text, 4998));
    CHECK(ggtrace_define_name(log_file, 2, "", 0));
    CHECK(ggtrace_fact(log_file, text, text));
    static uint32_t nodes[50000];
    for (uint32_t i = 0; i < 50000; i++) nodes[i] = i + 1;
    CHECK(ggtrace_define_graph(log_file, 1, 1, nodes, 50000));
    CHECK(ggtrace_define_graph(log_file, 2, 1, nodes, 0));
    CHECK(ggtrace_define_tensor(log_file, &(struct ggtrace_tensor){.id = 1, .source_count = 60000}, nodes));
    ggtrace_flush(log_file);
    CHECK(ggtrace_define_type(log_file, 1, 2));
}

static void edges(const char * path) {
    closed(NULL);
    CHECK((log_file = ggtrace_open(path, &smallest)));
    paths(path);
    odd_records();
    odd_definitions();
    ggtrace_close(log_file);
    closed(log_file);
    CHECK((log_file = ggtrace_open(path, &usual)));
    odd_records();
    odd_definitions();
    ggtrace_close(log_file);
}

int main(int count, char ** args) {
    CHECK(count >= 3);
    const char * test = args[1], * more = count > 3 ? args[3] : NULL;
    if (strcmp(test, "hammer") == 0 && more) thread_count = (uint32_t) atoi(more);
    if (strcmp(test, "hammer") == 0) hammer(args[2]);
    if (strcmp(test, "ring") == 0) ring(args[2]);
    if (strcmp(test, "endless") == 0) endless(args[2]);
    if (strcmp(test, "full") == 0) fill(args[2], more);
    if (strcmp(test, "limit") == 0) limit(args[2]);
    if (strcmp(test, "fork") == 0) fork_test(args[2]);
    if (strcmp(test, "close") == 0) close_test(args[2]);
    if (strcmp(test, "edges") == 0) edges(args[2]);
    return 0;
}
