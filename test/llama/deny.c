/* Runs a program that may not make some system calls, as containers and sandboxes do: deny ERRNO CALL[,CALL…] PROGRAM … */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char * name; int number; } calls[] = {
    {"fallocate", SYS_fallocate},   {"madvise", SYS_madvise},     {"pwrite64", SYS_pwrite64},
    {"membarrier", SYS_membarrier}, {"prlimit64", SYS_prlimit64}, {"ftruncate", SYS_ftruncate},
    {"perf_event_open", SYS_perf_event_open},
};
enum { CALLS = sizeof calls / sizeof *calls };

static int number_of(const char * name) {
    for (int i = 0; i < CALLS; i++) if (strcmp(calls[i].name, name) == 0) return calls[i].number;
    fprintf(stderr, "deny: %s: no such call in the table\n", name);
    exit(2);
}

int main(int count, char ** arguments) {
    if (count < 4) return 2;
    const unsigned error = (unsigned) atoi(arguments[1]);
    struct sock_filter rules[2 * CALLS + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short rule = 1;
    for (char * name = strtok(arguments[2], ","); name && rule < 2 * CALLS; name = strtok(NULL, ",")) {
        rules[rule++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) number_of(name), 0, 1);
        rules[rule++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    rules[rule++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = rule, .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 3;
    execvp(arguments[3], arguments + 3);
    perror(arguments[3]);
    return 1;
}
