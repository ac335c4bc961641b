/*
 * How a file of hooks interposes a function: HOOK declares and begins the function with that name, REAL finds the one that the
 * program would call without the recorder.
 *
 *     HOOK(int, some_function, void * context, int number) {
 *         REAL(some_function);
 *         return real(context, number);
 *     }
 */
#pragma once

#include "common/system.h"
#include "recorder/frames.h"
#include "recorder/libraries.h"

#define HOOK(result, name, ...) \
    result name(__VA_ARGS__);   \
    __attribute__((visibility("default"))) result name(__VA_ARGS__)
#define LIST(...) __VA_ARGS__
#define CALLER __builtin_return_address(0)

/* `real`: the real function of a hook, looked up at the first call; threads that race find the same one. */
#define FOUND(name)                                                                             \
    static _Atomic(void *) name##_real;                                                         \
    void * name##_found = atomic_load_explicit(&name##_real, memory_order_relaxed);             \
    if (__builtin_expect(!name##_found, 0)) {                                                   \
        name##_found = library_resolve(#name, CALLER);                                          \
        atomic_store_explicit(&name##_real, name##_found, memory_order_relaxed);                \
    }                                                                                           \
    __typeof__(&name) real;                                                                     \
    *(void **) &real = name##_found
/* The same, in a hook that a program may reach after it left another one. */
#define REAL(name)        \
    frames_settle(HERE);  \
    FOUND(name)

/*
 * Hooks that only note something, before the call or after it; there, `result` is what it returned. LIST holds what has commas together:
 *
 *     HOOK_BEFORE(int, some_function, note(context), LIST(void * context, int number), context, number)
 */
#define HOOK_BEFORE(type, name, note, parameters, ...) \
    HOOK(type, name, parameters) {                     \
        REAL(name);                                    \
        note;                                          \
        return real(__VA_ARGS__);                      \
    }
#define HOOK_AFTER(type, name, note, parameters, ...) \
    HOOK(type, name, parameters) {                    \
        REAL(name);                                   \
        type result = real(__VA_ARGS__);              \
        note;                                         \
        return result;                                \
    }
/* Those of functions that return nothing. */
#define HOOK_AROUND(name, before, after, parameters, ...) \
    HOOK(void, name, parameters) {                        \
        REAL(name);                                       \
        before;                                           \
        real(__VA_ARGS__);                                \
        after;                                            \
    }
#define HOOK_BEFORE_VOID(name, note, parameters, ...) HOOK_AROUND(name, note, , LIST(parameters), __VA_ARGS__)
#define HOOK_AFTER_VOID(name, note, parameters, ...) HOOK_AROUND(name, , note, LIST(parameters), __VA_ARGS__)
