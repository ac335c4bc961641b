/*
 * Libraries that the program loads, if asked for: one may contain ggml without exporting it (program.h). The functions of such a library are redirected
 * before the program has its handle.
 */
#include "recorder/hook.h"
#include "recorder/loaded.h"
#include "recorder/openmp.h"
#include "recorder/program.h"
#include "recorder/recorder.h"

#if defined(__x86_64__) /* elsewhere nothing is redirected */

/* To libc, the caller of dlopen is the recorder then. That decides where a name without a path is searched, and what `$ORIGIN` is. */
static bool may_look(const char * file, int mode) {
    return !(mode & RTLD_NOLOAD) && file && strchr(file, '/') && !strchr(file, '$') && program_awaits_library();
}

__attribute__((noinline)) static void * open_and_look(void * (*real)(const char * file, int mode), const char * file, int mode) {
    loaded_note();
    void * library = real(file, mode);
    const int error = errno;
    const enum program_loaded loaded = library ? program_redirect_loaded(library) : PROGRAM_NOTHING;
    if (loaded == PROGRAM_REDIRECTED) {
        real(file, (mode & ~RTLD_GLOBAL) | RTLD_NOLOAD | RTLD_NODELETE);
        openmp_redirect(program_function("ggml_init"));
    }
    if (loaded != PROGRAM_NOTHING) recorder_note_program();
    if (library) dlerror(); /* of functions that were looked for */
    errno = error;
    return library;
}

/* The last call is compiled as a jump: to libc, its caller is that of the hook. */
HOOK(void *, dlopen, const char * file, int mode) {
    REAL(dlopen);
    if (may_look(file, mode)) return open_and_look(real, file, mode);
    return real(file, mode);
}

#endif
