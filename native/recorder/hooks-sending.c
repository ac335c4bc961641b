/*
 * Waits of a server until a client takes data: it waits until it can write (poll), or in send. Other threads continue to compute. And what
 * ggml-rpc sends and receives.
 */
#include "recorder/functions.h"

#include <poll.h>

#include "recorder/callees.h"
#include "recorder/hook.h"
#include "recorder/rpc.h"

/* A client that reads takes what is sent at once. */
enum { WAIT_NS_MIN = 1000000 };

static void wait_end(struct ggtrace_function * function) {
    if (!function->start || clock_now() - function->start < WAIT_NS_MIN) return;
    const int error = errno;
    functions_end(function);
    errno = error;
}

/* A wait, from here to the end of the block. */
#define WAIT_TO_SEND                                                   \
    struct ggtrace_function wait __attribute__((cleanup(wait_end)));   \
    functions_begin(&wait, GGTRACE_WAIT_TO_SEND)

static bool waits_to_write(const struct pollfd * connections, nfds_t count) {
    return count == 1 && connections && connections->events == POLLOUT;
}

HOOK(int, poll, struct pollfd * connections, nfds_t count, int timeout) {
    REAL(poll);
    if (!waits_to_write(connections, count)) return real(connections, count, timeout);
    WAIT_TO_SEND;
    return real(connections, count, timeout);
}

/* The same in programs that are built with _FORTIFY_SOURCE. */
HOOK(int, __poll_chk, struct pollfd * connections, nfds_t count, int timeout, size_t size) {
    REAL(__poll_chk);
    if (!waits_to_write(connections, count)) return real(connections, count, timeout, size);
    WAIT_TO_SEND;
    return real(connections, count, timeout, size);
}

HOOK(ssize_t, send, int connection, const void * data, size_t size, int flags) {
    REAL_OF_CALLER(send, rpc_is_in);
    if (callee->is_foreign) {
        WAIT_TO_SEND;
        return real(connection, data, size, flags);
    }
    const uint64_t begin = rpc_begin();
    const ssize_t sent = real(connection, data, size, flags);
    rpc_sent(connection, data, sent, begin);
    return sent;
}

HOOK(ssize_t, recv, int connection, void * data, size_t size, int flags) {
    REAL_OF_CALLER(recv, rpc_is_in);
    if (callee->is_foreign) return real(connection, data, size, flags);
    const uint64_t begin = rpc_begin_receive(connection);
    const ssize_t received = real(connection, data, size, flags);
    rpc_received(connection, data, received, begin);
    return received;
}

/* The same in programs that are built with _FORTIFY_SOURCE. */
HOOK(ssize_t, __recv_chk, int connection, void * data, size_t size, size_t room, int flags) {
    REAL_OF_CALLER(__recv_chk, rpc_is_in);
    if (callee->is_foreign) return real(connection, data, size, room, flags);
    const uint64_t begin = rpc_begin_receive(connection);
    const ssize_t received = real(connection, data, size, room, flags);
    rpc_received(connection, data, received, begin);
    return received;
}
