#include "recorder/code-change.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include "recorder/lines.h"

#ifndef PR_GET_MDWE
#define PR_GET_MDWE 66 /* Linux 6.3 */
#endif

enum { CODE = PROT_READ | PROT_EXEC, STEP_BYTES = 1 << 16 };

static const struct code_refusal
    by_filter = {"seccomp", "a seccomp filter of the process refuses changes of code (mprotect)"},
    by_mdwe = {"mdwe", "the process gave up the right to change code (PR_SET_MDWE)"},
    by_system = {"system", "the system allows no change of code (SELinux?)"};

/* Of /proc/self/status: `Seccomp:	2`. */
static bool has_filter(void) {
    static const char filter[] = "Seccomp:\t2";
    struct lines lines;
    bool is_found = false;
    if (!lines_open(&lines, "/proc/self/status")) return false;
    for (char * line; !is_found && (line = lines_next(&lines));) is_found = strcmp(line, filter) == 0;
    close(lines.file);
    return is_found;
}

/* In the child: by system calls only, and without a core file of its end. */
__attribute__((noreturn)) static void try_change(void * page, size_t bytes) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    mprotect(page, bytes, CODE | PROT_WRITE);
    mprotect(page, bytes, CODE);
    for (;;) syscall(SYS_exit_group, 0);
}

/* The child sends no signal when it ends, and no handlers of forks run. */
static bool ends_child(void) {
    const size_t bytes = (size_t) sysconf(_SC_PAGESIZE);
    void * page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return true;
    int status = -1;
    const pid_t child = (pid_t) syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (child == 0) try_change(page, bytes);
    if (child > 0) while (waitpid(child, &status, __WALL) < 0 && errno == EINTR) {}
    munmap(page, bytes);
    return child < 0 || !WIFEXITED(status);
}

const struct code_refusal * code_change_ends_process(void) {
    return has_filter() && ends_child() ? &by_filter : NULL;
}

const struct code_refusal * code_change_refused(int error) {
    if (error == EACCES && prctl(PR_GET_MDWE, 0, 0, 0, 0) > 0) return &by_mdwe;
    return has_filter() ? &by_filter : &by_system;
}

/* The kernel keeps the lowest addresses free. */
uint8_t * code_map_below(uintptr_t first, size_t bytes) {
    first &= ~(uintptr_t) (STEP_BYTES - 1);
    for (uintptr_t at = first; at > 2 * STEP_BYTES + bytes && first - at < INT32_MAX / 2;) {
        at -= STEP_BYTES;
        void * wanted = (void *) (at - bytes);
        void * found = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (found == wanted) return found;
        if (found != MAP_FAILED) munmap(found, bytes); /* before Linux 4.17 it is a wish */
    }
    return NULL;
}
