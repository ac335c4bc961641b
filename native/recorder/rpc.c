#include "recorder/rpc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/hold.h"
#include "common/process.h"
#include "log/ggtrace-requests.h"
#include "recorder/calls.h"
#include "recorder/full.h"
#include "recorder/libraries.h"
#include "recorder/recorder.h"
#include "recorder/registry.h"

/*
 * A request is one byte, the command; its size (u64); its data. An answer is its size, and its data. Which commands are answered differs
 * between versions, so the direction of the next bytes decides. The first command of a connection is HELLO in all versions since April 2025;
 * connections that begin with something else are not recorded.
 */
enum { HELLO = 14, COMMAND_BYTES = 1, SIZE_BYTES = 8, HELLO_BYTES_MAX = 256, CONNECTIONS_MAX = 64 };

/* What the next bytes of a connection are. */
enum place { COMMAND, SIZE_OF_REQUEST, REQUEST, AFTER_REQUEST, SIZE_OF_ANSWER, ANSWER };

struct connection {
    bool is_open;
    int file;
    enum place place;
    uint64_t left; /* bytes until the next place */
    uint8_t size[SIZE_BYTES]; /* its bytes so far */
    struct ggtrace_rpc message;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection connections[CONNECTIONS_MAX];

bool rpc_is_in(const void * caller) {
    const char * path;
    Dl_info own, found;
    void * library = library_of(caller, &path);
    void * function = library ? dlsym(library, "ggml_backend_rpc_start_server") : NULL;
    return function && dladdr(caller, &own) && dladdr(function, &found) && own.dli_fbase == found.dli_fbase;
}

/* ---- Who is connected ---- */

/* The name of `127.0.0.1:50052` or `[::1]:50052`; 0: it has no such address. */
static uint32_t end_of(int file, bool is_peer) {
    union { struct sockaddr any; struct sockaddr_in v4; struct sockaddr_in6 v6; } address;
    socklen_t size = sizeof(address);
    char text[INET6_ADDRSTRLEN + NUMBER_BYTES + 4] = "[";
    if ((is_peer ? getpeername(file, &address.any, &size) : getsockname(file, &address.any, &size)) != 0) return 0;
    const bool is_v6 = address.any.sa_family == AF_INET6;
    if (!is_v6 && address.any.sa_family != AF_INET) return 0;
    const bool is_mapped = is_v6 && IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr);
    const bool has_brackets = is_v6 && !is_mapped;
    const void * bytes = is_mapped ? &address.v6.sin6_addr.s6_addr[12] : is_v6 ? (const void *) &address.v6.sin6_addr : &address.v4.sin_addr;
    if (!inet_ntop(has_brackets ? AF_INET6 : AF_INET, bytes, text + has_brackets, INET6_ADDRSTRLEN)) return 0;
    strcat(text, has_brackets ? "]:" : ":");
    number_text(text + strlen(text), ntohs(is_v6 ? address.v6.sin6_port : address.v4.sin_port));
    return registry_name(text);
}

static struct connection * find(int file) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) if (connections[i].is_open && connections[i].file == file) return &connections[i];
    return NULL;
}

static struct connection * find_free(void) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) if (!connections[i].is_open) return &connections[i];
    return full_count(FULL_RPC);
}

static void greet(struct connection * connection, int file, bool is_server) {
    const uint32_t own = end_of(file, false), other = end_of(file, true);
    *connection = (struct connection){
        .is_open = true,
        .file = file,
        .left = COMMAND_BYTES,
        .message = {.is_server = is_server, .client = is_server ? other : own, .server = is_server ? own : other},
    };
}

/* ---- Messages ---- */

static void write_message(struct connection * connection, uint64_t end) {
    struct ggtrace_writer * writer = recording_writer(GGTRACE_NO_WORKER);
    struct ggtrace_rpc * message = &connection->message;
    message->end = end;
    if (writer) ggtrace_rpc(writer, message);
    message->number++;
    message->answered = message->request_bytes = message->answer_bytes = 0;
    connection->place = COMMAND;
    connection->left = COMMAND_BYTES;
}

static void forget(struct connection * connection) {
    const struct ggtrace_rpc * message = &connection->message;
    if (connection->place == AFTER_REQUEST && !message->is_server) write_message(connection, message->sent);
    connection->is_open = false;
}

static void go_to(struct connection * connection, enum place place, uint64_t bytes) {
    connection->place = place;
    connection->left = bytes;
}

/* The last byte of a place is there. `begin`, `end`: of the function that sent or received it. */
static void pass(struct connection * connection, uint8_t last, uint64_t begin, uint64_t end) {
    struct ggtrace_rpc * message = &connection->message;
    uint64_t size;
    memcpy(&size, connection->size, SIZE_BYTES);
    switch (connection->place) {
        case COMMAND:
            message->command = last;
            message->call = message->is_server ? GGTRACE_NO_CALL : calls_current();
            message->start = message->is_server ? end : begin;
            go_to(connection, SIZE_OF_REQUEST, SIZE_BYTES);
            return;
        case SIZE_OF_REQUEST:
            message->request_bytes = size;
            go_to(connection, REQUEST, size);
            break;
        case SIZE_OF_ANSWER:
            message->answer_bytes = size;
            go_to(connection, ANSWER, size);
            break;
        default: break;
    }
    if (connection->left) return;
    if (connection->place == REQUEST) {
        message->sent = end;
        go_to(connection, AFTER_REQUEST, 0);
    } else if (connection->place == ANSWER) write_message(connection, end);
}

/* The next bytes of a connection; `is_answer`: their direction. False: they are not as ggml-rpc sends them. */
static bool take(struct connection * connection, bool is_answer, const uint8_t * data, uint64_t size, uint64_t begin, uint64_t end) {
    struct ggtrace_rpc * message = &connection->message;
    for (uint64_t at = 0; at < size;) {
        if (connection->place == AFTER_REQUEST && is_answer) {
            message->answered = message->is_server ? begin : end;
            go_to(connection, SIZE_OF_ANSWER, SIZE_BYTES);
        } else if (connection->place == AFTER_REQUEST) write_message(connection, message->sent);
        if (is_answer != (connection->place == SIZE_OF_ANSWER || connection->place == ANSWER)) return false;
        const uint64_t bytes = connection->left < size - at ? connection->left : size - at;
        if (connection->place == SIZE_OF_REQUEST || connection->place == SIZE_OF_ANSWER)
            memcpy(connection->size + SIZE_BYTES - connection->left, data + at, bytes);
        at += bytes;
        connection->left -= bytes;
        if (connection->left == 0) pass(connection, data[at - 1], begin, end);
        if (message->command == HELLO && message->request_bytes > HELLO_BYTES_MAX) return false;
    }
    return true;
}

/* Is a command expected in this direction? */
static bool may_begin(const struct connection * connection, bool is_received) {
    if (!connection) return true;
    return (connection->place == COMMAND || connection->place == AFTER_REQUEST) && connection->message.is_server == is_received;
}

/* The connection of these bytes; NULL: it is none of ggml-rpc. */
static struct connection * connection_of(int file, const uint8_t * data, ssize_t size, bool is_received) {
    struct connection * connection = find(file);
    if (size != COMMAND_BYTES || data[0] != HELLO || !may_begin(connection, is_received)) return connection;
    if (connection) forget(connection); /* the number of the file is that of another connection now */
    connection = find_free();
    if (connection) greet(connection, file, is_received);
    return connection;
}

static void moved(int file, const void * data, ssize_t size, uint64_t begin, bool is_received) {
    if (!begin) return;
    const int error = errno;
    const uint64_t end = ggtrace_now();
    HOLD(&lock);
    if (size > 0) {
        struct connection * connection = connection_of(file, data, size, is_received);
        if (connection && !take(connection, connection->message.is_server != is_received, data, (uint64_t) size, begin, end)) {
            connection->is_open = false;
            full_count(FULL_RPC);
        }
    } else {
        struct connection * connection = find(file);
        if (connection) forget(connection);
    }
    errno = error;
}

/*
 * A program may connect before it uses anything else of ggml: then the log begins here. In a child of fork, nothing is recorded. Times are read from
 * the kernel: a process that waits for a message does not correct the recorder's clock, and clocks of machines are related by these times.
 */
uint64_t rpc_begin(void) {
    return recording_level() != LEVEL_OFF && recorder_log() ? ggtrace_now() : 0;
}

uint64_t rpc_begin_receive(int file) {
    const uint64_t begin = rpc_begin();
    if (!begin) return 0;
    HOLD(&lock);
    struct connection * connection = find(file);
    if (connection && connection->place == AFTER_REQUEST && connection->message.is_server) write_message(connection, begin);
    return begin;
}

void rpc_sent(int file, const void * data, ssize_t size, uint64_t begin) {
    moved(file, data, size, begin, false);
}

void rpc_received(int file, const void * data, ssize_t size, uint64_t begin) {
    moved(file, data, size, begin, true);
}

void rpc_finish(void) {
    HOLD(&lock);
    for (int i = 0; i < CONNECTIONS_MAX; i++) if (connections[i].is_open) forget(&connections[i]);
}
