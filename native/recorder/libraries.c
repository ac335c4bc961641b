#include "recorder/libraries.h"

#include <link.h>

#include "recorder/program.h"

/* The library in which the latest real function was found. */
static _Atomic(void *) latest;

void * library_of(const void * address, const char ** path) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return NULL;
    *path = info.dli_fname;
    void * library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return library ? library : dlopen(NULL, RTLD_LAZY);
}

bool library_is_own(const void * address) {
    Dl_info own, other;
    return dladdr(&latest, &own) && dladdr(address, &other) && own.dli_fbase == other.dli_fbase;
}

void * library_function(void * library, const char * name) {
    void * found = program_function(name);
    return found || !library ? found : dlsym(library, name);
}

static void * find_from(const void * address, const char * name) {
    const char * path;
    void * library = address ? library_of(address, &path) : NULL;
    void * found = library ? dlsym(library, name) : NULL;
    return found && !library_is_own(found) ? found : NULL;
}

enum { LIBRARIES_MAX = 1024 };

struct libraries {
    const char * paths[LIBRARIES_MAX];
    int count;
};

static int note_path(struct dl_phdr_info * object, size_t size, void * data) {
    (void) size;
    struct libraries * libraries = data;
    if (object->dlpi_name && *object->dlpi_name) libraries->paths[libraries->count++] = object->dlpi_name;
    return libraries->count == LIBRARIES_MAX;
}

/* Looks in every library of the process. Under the loader's lock, which dlopen takes too, it only collects their paths. */
void * library_search(const char * name) {
    struct libraries libraries = {.count = 0};
    dl_iterate_phdr(note_path, &libraries);
    void * found = NULL;
    for (int i = 0; i < libraries.count && !found; i++) {
        void * library = dlopen(libraries.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
        if (found && library_is_own(found)) found = NULL;
        if (library) dlclose(library);
    }
    return found;
}

/*
 * A function may have been reached by a jump (a tail call). Then the apparent caller is the caller of the function that jumped: a hook,
 * or a program that found that function by dlsym. So if the caller's library does not know the function, the latest library is asked,
 * then all libraries.
 */
void * library_resolve(const char * name, const void * caller) {
    void * real = program_function(name);
    if (real) return real;
    real = dlsym(RTLD_NEXT, name);
    if (!real) real = find_from(library_is_own(caller) ? atomic_load(&latest) : caller, name);
    if (!real) real = find_from(atomic_load(&latest), name);
    if (!real) real = library_search(name);
    if (!real) return NULL;
    atomic_store(&latest, real);
    program_note_library(name);
    return real;
}
