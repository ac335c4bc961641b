/*
 * The real functions of hooks by the library that calls. A process may contain two libraries that define the function, such as PyTorch's own
 * libcudart and that of ggml-cuda. Each caller's call goes where its linker would have bound it.
 */
#pragma once

#include "common/system.h"
#include "recorder/hook.h"

/* What a hook calls for one library, whose addresses are from `from` on. */
struct callee {
    uintptr_t from, size;
    void * real; /* NULL: no library has the function */
    bool is_foreign; /* the library calls the function itself, and is not the one that is recorded */
    const struct callee * next;
};

typedef const struct callee * _Atomic callees;

/* Adds the callee of a library that calls for the first time. `is_recorded`: may what it calls be recorded? */
const struct callee * callees_add(callees * known, const char * name, const void * caller, bool (*is_recorded)(const void * caller));

static inline const struct callee * callees_find(callees * known, const char * name, const void * caller, bool (*is_recorded)(const void *)) {
    const struct callee * callee = atomic_load_explicit(known, memory_order_acquire);
    while (callee && (uintptr_t) caller - callee->from >= callee->size) callee = callee->next;
    return __builtin_expect(callee != NULL, 1) ? callee : callees_add(known, name, caller, is_recorded);
}

/* As REAL, with `callee`, which has `real`. */
#define REAL_OF_CALLER(name, is_recorded)                                                                      \
    static callees name##_callees;                                                                             \
    const struct callee * callee = callees_find(&name##_callees, #name, CALLER, is_recorded);                  \
    __typeof__(&name) real;                                                                                    \
    *(const void **) &real = callee->real
