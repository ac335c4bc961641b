#define _GNU_SOURCE
#include "recorder/libraries.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The library of the latest real function that was found. */
static _Atomic(void *) latest;

void * library_of(const void * address, const char ** path) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return NULL;
    *path = info.dli_fname;
    void * library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? library : dlopen(NULL, RTLD_LAZY);
}

void * library_resolve(const char * name, const void * caller) {
    void * real = dlsym(RTLD_NEXT, name);
    if (!real) {
        Dl_info own, calling;
        const char * path;
        /* A real function that a hook of ours calls may jump (a tail call) to another hook, which then has us as its caller. */
        const bool is_own = dladdr(&latest, &own) && dladdr(caller, &calling) && own.dli_fbase == calling.dli_fbase;
        void * library = library_of(is_own ? atomic_load(&latest) : caller, &path);
        real = library ? dlsym(library, name) : NULL;
    }
    if (real) atomic_store(&latest, real);
    return real;
}
