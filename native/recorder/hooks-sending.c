#define _GNU_SOURCE
/* Waits of a server until a client takes data: it waits until it can write (poll), or in send. Other threads continue to compute. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#include "recorder/functions.h"
#include "recorder/hook.h"

/* A client that reads takes what is sent at once. */
enum { WAIT_NS_MIN = 1000000 };

static void wait_end(struct ggtrace_function * function) {
    if (!function->start || clock_now() - function->start < WAIT_NS_MIN) return;
    const int error = errno;
    functions_end(function);
    errno = error;
}

static bool waits_to_write(const struct pollfd * connections, nfds_t count) {
    return count == 1 && connections && connections->events == POLLOUT;
}

HOOK(int, poll, struct pollfd * connections, nfds_t count, int timeout) {
    REAL(poll, int, struct pollfd *, nfds_t, int);
    if (!waits_to_write(connections, count)) return real(connections, count, timeout);
    struct ggtrace_function function;
    functions_begin(&function, GGTRACE_WAIT_TO_SEND);
    const int ready = real(connections, count, timeout);
    wait_end(&function);
    return ready;
}

/* The same in programs that are built with _FORTIFY_SOURCE. */
HOOK(int, __poll_chk, struct pollfd * connections, nfds_t count, int timeout, size_t size) {
    REAL(__poll_chk, int, struct pollfd *, nfds_t, int, size_t);
    if (!waits_to_write(connections, count)) return real(connections, count, timeout, size);
    struct ggtrace_function function;
    functions_begin(&function, GGTRACE_WAIT_TO_SEND);
    const int ready = real(connections, count, timeout, size);
    wait_end(&function);
    return ready;
}

HOOK(ssize_t, send, int connection, const void * data, size_t size, int flags) {
    REAL(send, ssize_t, int, const void *, size_t, int);
    struct ggtrace_function function;
    functions_begin(&function, GGTRACE_WAIT_TO_SEND);
    const ssize_t sent = real(connection, data, size, flags);
    wait_end(&function);
    return sent;
}
