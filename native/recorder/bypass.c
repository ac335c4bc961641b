#include "common/system.h"
#include "recorder/bypass.h"

#ifdef __GLIBC__
#include <execinfo.h>

#include "recorder/imports.h"

enum { FRAMES_MAX = 16 };

enum bypass bypass_of(const void * inside) {
    void * frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    int at = 0;
    while (at < count && frames[at] != inside) at++;
    if (at + 1 >= count) return BYPASS_UNKNOWN;
    Dl_info function, caller;
    if (!dladdr(inside, &function)) return BYPASS_UNKNOWN;
    if (!dladdr(frames[at + 1], &caller)) return BYPASS_BY_ADDRESS; /* compiled at run time: bound by no loader */
    if (caller.dli_fbase == function.dli_fbase) return BYPASS_INSIDE;
    if (!function.dli_sname) return BYPASS_UNKNOWN;
    return imports_function(frames[at + 1], function.dli_sname) ? BYPASS_BOUND : BYPASS_BY_ADDRESS;
}
#else /* musl has no backtraces */
enum bypass bypass_of(const void * inside) {
    (void) inside;
    return BYPASS_UNKNOWN;
}
#endif
