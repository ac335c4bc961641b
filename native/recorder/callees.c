#include "recorder/callees.h"

#include "recorder/imports.h"

enum { CALLEES_MAX = 512 };

#ifndef __GLIBC__ /* musl's functions have no versions */
#define dlvsym(library, name, version) ((void) (version), dlsym(library, name))
#endif

/* As the linker binds the caller's call: first in the libraries that all see, then in the caller's own; of the version that it was linked with. */
static void * bound_by(const struct binding * binding, const char * name, const void * caller) {
    const char * path, * version = binding->version;
    void * real = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
    if (real) return real;
    void * library = library_of(caller, &path);
    if (library) real = version ? dlvsym(library, name, version) : dlsym(library, name);
    return real && !library_is_own(real) ? real : NULL;
}

const struct callee * callees_add(callees * known, const char * name, const void * caller, bool (*is_recorded)(const void * caller)) {
    static struct callee all[CALLEES_MAX];
    static _Atomic uint32_t count;
    static __thread struct callee latest __attribute__((tls_model("initial-exec")));
    struct binding binding = imports_binding(caller, name);
    struct callee found = {.from = binding.from, .size = binding.size};
    if (binding.is_imported) found.real = bound_by(&binding, name, caller);
    if (!found.real) found.real = library_resolve(name, caller);
    found.is_foreign = binding.is_imported && !is_recorded(caller);
    /* What is not found may be loaded later; code in no library may be that of any. */
    const uint32_t index = found.real && found.size ? atomic_fetch_add(&count, 1) : CALLEES_MAX;
    struct callee * callee = index < CALLEES_MAX ? &all[index] : &latest;
    *callee = found;
    if (callee == &latest) return callee;
    callee->next = atomic_load(known);
    while (!atomic_compare_exchange_weak(known, &callee->next, callee)) {}
    return callee;
}
