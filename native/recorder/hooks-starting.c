/*
 * Programs that this one starts, before it becomes them or its child does. Not the functions with a list of arguments (execl), nor fexecve: wrappers get
 * their arguments as an array. The real functions are found ahead: a child that looked for them might wait for a lock of a thread that it does not have.
 */
#include "common/system.h"

#include <spawn.h>

#include "common/report.h"
#include "recorder/hook.h"
#include "recorder/missed.h"

/* What returns another value than 0 has started nothing. */
#define STARTING(name, program, is_searched, variables, parameters, ...)                       \
    HOOK(int, name, parameters);                                                               \
    static __typeof__(&name) name##_real;                                                      \
    __attribute__((constructor)) static void name##_find(void) {                               \
        *(void **) &name##_real = dlsym(RTLD_NEXT, #name);                                     \
    }                                                                                          \
    int name(parameters) {                                                                     \
        struct report_program * const missed = missed_report(program, is_searched, variables); \
        if (!name##_real) name##_find();                                                       \
        const int result = name##_real(__VA_ARGS__);                                           \
        if (result != 0) report_take_back(missed);                                             \
        return result;                                                                         \
    }

STARTING(execve, path, false, variables, LIST(const char * path, char * const arguments[], char * const variables[]), path, arguments, variables)
STARTING(execv, path, false, environ, LIST(const char * path, char * const arguments[]), path, arguments)
STARTING(execvp, file, true, environ, LIST(const char * file, char * const arguments[]), file, arguments)
STARTING(execvpe, file, true, variables, LIST(const char * file, char * const arguments[], char * const variables[]), file, arguments, variables)
STARTING(posix_spawn, path, false, variables,
         LIST(pid_t * pid, const char * path, const posix_spawn_file_actions_t * actions, const posix_spawnattr_t * attributes,
              char * const arguments[], char * const variables[]),
         pid, path, actions, attributes, arguments, variables)
STARTING(posix_spawnp, file, true, variables,
         LIST(pid_t * pid, const char * file, const posix_spawn_file_actions_t * actions, const posix_spawnattr_t * attributes,
              char * const arguments[], char * const variables[]),
         pid, file, actions, attributes, arguments, variables)
