#include "nvtx/names.h"

#include "common/hold.h"
#include "nvtx/host.h"
#include "common/shared-table.h"
#include "common/table.h"

#define GGTRACE_POISON
#include "log/ggtrace.h"

enum { SALT_NAME = 21, SALT_DOMAIN, SALT_DEFINED };

static struct shared_table known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t domain_count, last_name;

static uint64_t key_of(uint64_t hash) {
    return hash ? hash : 1;
}

/* Looks again under the lock: another thread may have just defined the name. */
static uint32_t define_name(uint64_t key, const char * text, size_t bytes) {
    HOLD(&lock);
    uint64_t id = shared_table_get(&known, key);
    if (!id) {
        id = nvtx_new_name(text, bytes);
        if (id) shared_table_put(&known, key, id);
        if (id > atomic_load(&last_name)) atomic_store(&last_name, (uint32_t) id);
    }
    return (uint32_t) id;
}

static uint32_t name_of(const char * text, size_t bytes) {
    if (bytes == 0) return 0;
    const uint64_t key = key_of(hash_bytes(SALT_NAME, text, bytes));
    const uint64_t id = shared_table_get(&known, key);
    return id ? (uint32_t) id : define_name(key, text, bytes);
}

uint32_t nvtx_name(const char * text) {
    /* One byte more, so that the log finds the end of the last character. */
    return text ? name_of(text, strnlen(text, GGTRACE_TEXT_BYTES_MAX + 1)) : 0;
}

uint32_t nvtx_known_name(uint64_t id) {
    return id <= atomic_load_explicit(&last_name, memory_order_relaxed) ? (uint32_t) id : 0;
}

static size_t put_utf8(char * at, uint32_t code) {
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = 0xfffd;
    if (code < 0x80) return *at = (char) code, 1;
    const size_t count = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--, code >>= 6) at[i] = (char) (0x80 | (code & 0x3f));
    at[0] = (char) (0xf00 >> count | code);
    return count;
}

uint32_t nvtx_wide_name(const wchar_t * text) {
    char bytes[GGTRACE_TEXT_BYTES_MAX];
    size_t count = 0;
    while (text && *text && count + 4 <= sizeof(bytes)) count += put_utf8(bytes + count, (uint32_t) *text++);
    return name_of(bytes, count);
}

uint32_t nvtx_domain(uint32_t name) {
    const uint64_t key = key_of(mix(SALT_DOMAIN, name));
    HOLD(&lock);
    uint64_t id = shared_table_get(&known, key);
    if (!id) {
        id = atomic_load(&domain_count) + 1;
        ggtrace_define_numbers(nvtx_log(), GGTRACE_NVTX_DOMAIN, (const uint32_t[]){(uint32_t) id, name}, 2);
        shared_table_put(&known, key, id);
        atomic_store(&domain_count, (uint32_t) id);
    }
    return (uint32_t) id;
}

uint32_t nvtx_known_domain(uint64_t id) {
    return id <= atomic_load_explicit(&domain_count, memory_order_relaxed) ? (uint32_t) id : 0;
}

void nvtx_define(enum ggtrace_type type, uint32_t of, uint32_t number, uint32_t name) {
    const uint64_t key = key_of(mix(mix(SALT_DEFINED + type, of), number));
    HOLD(&lock);
    const uint64_t before = shared_table_get(&known, key);
    if (before != name + 1ull) {
        const uint32_t numbers[] = {of, number, name};
        const bool is_thread = type == GGTRACE_THREAD;
        ggtrace_define_numbers(nvtx_log(), type, numbers + is_thread, 3 - is_thread);
        if (!before) shared_table_put(&known, key, name + 1ull); /* otherwise the name has changed, which is written each time */
    }
}

void nvtx_names_forked(void) {
    pthread_mutex_init(&lock, NULL);
}
