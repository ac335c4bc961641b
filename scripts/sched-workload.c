// The workload of scripts/capture-sched.mjs: threads with command names that are hard to parse, which wake each other in turn, two that
// compete for one CPU, a thread that forks a child, which runs another program. Prints its clocks first (only them: `clocks`; not at all: `quiet`).

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {
    "ggml-w 0",        "a=b c:d [001]",   "x-12 [000] d..",  "1234",           "a pid=1 prio=2", "y next_pid=7 n",
    "z prev_pid=1 p",  "a:1 [120] R ==>", "(77) -5",         "w\303\266rker \303\274", " lead",          "trail ",
    "a|b\"c\\d",       "comm=x pid=3",    "7/8 [002] 1.0:",
};
enum { THREADS = sizeof names / sizeof *names, ROUNDS = 2 };

static int pipes[THREADS][2];

static void spin(long us)
{
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000L + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

static void *turn(void *arg)
{
    long index = (long)arg;
    char byte;
    prctl(PR_SET_NAME, names[index]);
    for (int round = 0; round < ROUNDS && read(pipes[index][0], &byte, 1) == 1; round++) {
        spin(20);
        if (write(pipes[(index + 1) % THREADS][1], &byte, 1) != 1) break;
    }
    return NULL;
}

static void *fight(void *arg)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
    prctl(PR_SET_NAME, arg);
    for (int i = 0; i < 3; i++) {
        spin(1500);
        sched_yield();
    }
    return NULL;
}

static long long now(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS], fighters[2];
    const char *what = count > 1 ? arguments[1] : "";
    if (*what != 'q') printf("mono=%lld boot=%lld real=%lld\n", now(CLOCK_MONOTONIC), now(CLOCK_BOOTTIME), now(CLOCK_REALTIME));
    fflush(stdout);
    if (*what == 'c') return 0;
    for (int i = 0; i < THREADS; i++)
        if (pipe(pipes[i]) != 0) return 1;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, turn, (void *)i);
    pthread_create(&fighters[0], NULL, fight, "hog [0]: 1");
    pthread_create(&fighters[1], NULL, fight, "hog [0]: 2");
    usleep(500);
    if (write(pipes[0][1], "x", 1) != 1) return 1;
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) pthread_join(fighters[i], NULL);
    return 0;
}
