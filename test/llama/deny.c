/*
 * Runs a program that may not make some system calls, as containers and sandboxes do: deny ERRNO|kill CALL[,CALL…] PROGRAM …
 * Of mprotect, those that ask for executable memory; `mdwe`: without a filter, the process gives up that right (PR_SET_MDWE, Linux 6.3).
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct { const char * name; int number; } calls[] = {
    {"fallocate", SYS_fallocate},   {"madvise", SYS_madvise},     {"pwrite64", SYS_pwrite64},
    {"membarrier", SYS_membarrier}, {"prlimit64", SYS_prlimit64}, {"ftruncate", SYS_ftruncate},
    {"perf_event_open", SYS_perf_event_open}, {"mprotect", SYS_mprotect},
};
enum { CALLS = sizeof calls / sizeof *calls };

static int number_of(const char * name) {
    for (int i = 0; i < CALLS; i++) if (strcmp(calls[i].name, name) == 0) return calls[i].number;
    fprintf(stderr, "deny: %s: no such call in the table\n", name);
    exit(2);
}

/* Executable memory asked for: the third argument of mprotect. */
static unsigned short add_mprotect(struct sock_filter * rules, unsigned short rule, unsigned action) {
    rules[rule++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    rules[rule++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
    rules[rule++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    rules[rule++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action);
    rules[rule++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    return rule;
}

static bool set_filter(const char * error, char * names) {
    const unsigned action = strcmp(error, "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | (unsigned) atoi(error);
    struct sock_filter rules[2 * CALLS + 6] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short rule = 1;
    for (char * name = strtok(names, ","); name && rule < 2 * CALLS; name = strtok(NULL, ",")) {
        const int number = number_of(name);
        if (number == SYS_mprotect) {
            rule = add_mprotect(rules, rule, action);
            continue;
        }
        rules[rule++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned) number, 0, 1);
        rules[rule++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action);
    }
    rules[rule++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = rule, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int count, char ** arguments) {
    if (count < 4) return 2;
    const bool gives_up = strcmp(arguments[2], "mdwe") == 0;
    if (gives_up && prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0) != 0) return 3;
    if (!gives_up && !set_filter(arguments[1], arguments[2])) return 3;
    execvp(arguments[3], arguments + 3);
    perror(arguments[3]);
    return 1;
}
