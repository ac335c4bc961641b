/*
 * Tests the NVTX listener against programs that break every rule: tables that are missing, short, long, or full of holes,
 * attributes of every size and version, handles that the listener never returned, many copies of NVTX on many threads, calls
 * from signal handlers, in the child of a fork, and after the end of the log. nvtx FILE: the log, which the caller checks.
 */
#include "common/system.h"

#include <stdio.h>
#include <sys/wait.h>

#include "nvtx/abi.h"
#include "nvtx/listen.h"

enum { PLACES = 40, THREADS = 8, ROUNDS = 500 };

#define CHECK(condition) \
    if (!(condition)) fprintf(stderr, "nvtx.c:%d: not so: %s\n", __LINE__, #condition), exit(1)

/* A copy of NVTX: which tables it returns, if any. */
struct copy {
    nvtx_function functions[7][PLACES];
    nvtx_function * places[7][PLACES];
    unsigned counts[7];
    int has_no_tables, has_holes, says_no;
};

static __thread struct copy * current;
static _Atomic uint32_t subscribed_version;

static int module_places(int module, nvtx_function *** places, unsigned * count) {
    if (current->says_no || module < 1 || module > 6) return 0;
    *places = current->has_no_tables ? NULL : current->places[module];
    *count = current->counts[module];
    return 1;
}

static void set_version(uint32_t version) {
    subscribed_version = version;
}

static struct nvtx_callbacks callbacks = {sizeof(callbacks), module_places};
static struct nvtx_version_info version_info = {sizeof(version_info), 99, 0, set_version};

static const void * all_tables(uint32_t table) {
    return table == NVTX_TABLE_CALLBACKS ? (void *) &callbacks : table == NVTX_TABLE_VERSION ? (void *) &version_info : NULL;
}

static const void * no_tables(uint32_t table) {
    (void) table;
    return NULL;
}

static const void * only_callbacks(uint32_t table) {
    return table == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static struct copy * copy_of(unsigned count) {
    struct copy * copy = calloc(1, sizeof(*copy));
    for (int module = 1; module <= 6; module++) {
        copy->counts[module] = count;
        for (unsigned i = 0; i < PLACES; i++) copy->places[module][i] = &copy->functions[module][i];
    }
    return current = copy;
}

static unsigned filled(const struct copy * copy) {
    unsigned count = 0;
    for (int module = 1; module <= 6; module++) for (unsigned i = 0; i < PLACES; i++) count += !!copy->functions[module][i];
    return count;
}

#define CALL(copy, module, place, result, ...) ((result (*)(__VA_ARGS__)) (copy)->functions[module][place])
#define PUSH(copy) CALL(copy, NVTX_CORE2, CORE2_PUSH_EX, int, nvtx_handle, const struct nvtx_attributes *)
#define MARK(copy) CALL(copy, NVTX_CORE2, CORE2_MARK_EX, void, nvtx_handle, const struct nvtx_attributes *)
#define POP(copy) CALL(copy, NVTX_CORE2, CORE2_POP, int, nvtx_handle)

static void tables(void) {
    CHECK(nvtx_listen(NULL) == 0);
    CHECK(nvtx_listen(no_tables) == 0);
    struct copy * copy = copy_of(16);
    callbacks.size = 8;
    CHECK(nvtx_listen(all_tables) == 0);
    callbacks.size = sizeof(callbacks);
    callbacks.module_places = NULL;
    CHECK(nvtx_listen(all_tables) == 0);
    callbacks.module_places = module_places;
    copy->says_no = 1;
    CHECK(nvtx_listen(all_tables) == 0);
    copy->says_no = 0;
    copy->has_no_tables = 1;
    CHECK(nvtx_listen(all_tables) == 0);
    copy->has_no_tables = 0;
    for (int module = 1; module <= 6; module++) copy->counts[module] = 1;
    CHECK(nvtx_listen(all_tables) == 0);
    CHECK(filled(copy) == 0);
    for (unsigned count = 2; count <= PLACES; count++) {
        free(copy);
        copy = copy_of(count);
        CHECK(nvtx_listen(only_callbacks) == 1);
        const unsigned a = count < 16 ? count : 16, b = count < 9 ? count : 9, c = count < 7 ? count : 7;
        CHECK(filled(copy) == 2 * (a - 1) + (b - 1) + (c - 1));
    }
    free(copy);
    copy = copy_of(PLACES);
    for (unsigned i = 0; i < PLACES; i += 2) copy->places[NVTX_CORE][i] = NULL;
    version_info.size = 12;
    CHECK(nvtx_listen(all_tables) == 1 && subscribed_version == 0);
    version_info.size = 1000;
    CHECK(nvtx_listen(all_tables) == 1 && subscribed_version == NVTX_VERSION);
    CHECK(copy->functions[NVTX_CORE][1] && !copy->functions[NVTX_CORE][2]);
    free(copy);
}

/* A struct at the end of a page; the next page cannot be read. */
static void * at_the_end(size_t size) {
    static char * pages;
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    if (!pages) {
        pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(pages + page, page, PROT_NONE);
    }
    return pages + page - size;
}

static void attributes(struct copy * copy) {
    const struct nvtx_attributes full = {.category = 5, .color_type = NVTX_ARGB, .color = 0xff010203, .payload_type = NVTX_U64,
        .payload = 77, .message_type = NVTX_TEXT, .message = "whole"};
    for (unsigned version = 0; version < 6; version++) {
        for (uint16_t size = 4; size <= 64; size++) {
            char bytes[64] = {0};
            memcpy(bytes, &full, sizeof(full));
            const uint16_t head[] = {(uint16_t) (version == 5 ? 0xffff : version), size};
            memcpy(bytes, head, sizeof(head));
            void * given = memcpy(at_the_end(size), bytes, size);
            MARK(copy)(NULL, given);
        }
    }
    struct nvtx_attributes odd = full;
    odd.version = NVTX_VERSION;
    odd.size = sizeof(odd);
    odd.payload_type = -5;
    odd.color_type = 77;
    odd.message_type = 1000;
    MARK(copy)(NULL, &odd);
    odd.message_type = NVTX_REGISTERED;
    odd.message = NULL;
    MARK(copy)((nvtx_handle) 0xdeadbeefdeadbeef, &odd);
    odd.message = (const void *) 0xdeadbeefdeadbeef; /* never registered */
    MARK(copy)(NULL, &odd);
    odd.message = (const void *) 0x100000001;
    MARK(copy)(NULL, &odd);
    odd.message_type = NVTX_WIDE_TEXT;
    odd.message = (const wchar_t[]){L'x', (wchar_t) 0xd800, (wchar_t) 0x7fffffff, (wchar_t) -1, 0};
    MARK(copy)(NULL, &odd);
    char * text = malloc(100001);
    memset(text, 'y', 100000);
    text[100000] = 0;
    odd.message_type = NVTX_TEXT;
    odd.message = text;
    MARK(copy)(NULL, &odd);
    free(text);
    MARK(copy)(NULL, NULL);
    odd.size = 0;
    MARK(copy)(NULL, &odd);
    CALL(copy, NVTX_CORE, CORE_MARK_A, void, const char *)(NULL);
    CALL(copy, NVTX_CORE, CORE_PUSH_W, int, const wchar_t *)(NULL);
    CALL(copy, NVTX_CORE, CORE_POP, int, void)();
    CHECK(CALL(copy, NVTX_CORE2, CORE2_REGISTER_STRING_A, nvtx_handle, nvtx_handle, const char *)(NULL, NULL) == NULL);
    CALL(copy, NVTX_CORE2, CORE2_RESOURCE_CREATE, nvtx_handle, nvtx_handle, const void *)(NULL, NULL);
    CALL(copy, NVTX_CUDART, CUDART_NAME_STREAM_A, void, void *, const char *)((void *) 16, NULL);
    CALL(copy, NVTX_CUDA, CUDA_NAME_EVENT_W, void, void *, const wchar_t *)((void *) 16, L"");
    CALL(copy, NVTX_CORE2, CORE2_RESOURCE_DESTROY, void, nvtx_handle)((nvtx_handle) 1234567);
    CALL(copy, NVTX_CORE2, CORE2_DOMAIN_DESTROY, void, nvtx_handle)((nvtx_handle) 1234567);
    CALL(copy, NVTX_CORE, CORE_END, void, uint64_t)(0xfffffffffffull);
}

static void * many(void * argument) {
    const uintptr_t number = (uintptr_t) argument;
    struct copy * copy = copy_of(16);
    CHECK(nvtx_listen(all_tables) == 1);
    char name[64];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof(name), "domain %d", i % 50);
        nvtx_handle domain = CALL(copy, NVTX_CORE2, CORE2_DOMAIN_CREATE_A, nvtx_handle, const char *)(name);
        CHECK(domain);
        snprintf(name, sizeof(name), "name %d", i % 100 * (int) number);
        const struct nvtx_attributes event = {.version = 3, .size = sizeof(event), .message_type = NVTX_REGISTERED,
            .message = CALL(copy, NVTX_CORE2, CORE2_REGISTER_STRING_A, nvtx_handle, nvtx_handle, const char *)(domain, name)};
        CALL(copy, NVTX_CORE2, CORE2_NAME_CATEGORY_A, void, nvtx_handle, uint32_t, const char *)(domain, (uint32_t) i, name);
        CHECK(CALL(copy, NVTX_CORE, CORE_PUSH_A, int, const char *)(name) == 0);
        CHECK(CALL(copy, NVTX_CORE, CORE_PUSH_A, int, const char *)(name) == 1);
        PUSH(copy)(domain, &event);
        POP(copy)(domain);
        CHECK(CALL(copy, NVTX_CORE, CORE_POP, int, void)() == 1);
        CHECK(CALL(copy, NVTX_CORE, CORE_POP, int, void)() == 0);
        const uint64_t range = CALL(copy, NVTX_CORE, CORE_START_A, uint64_t, const char *)(name);
        CHECK(range != 0);
        CALL(copy, NVTX_CORE, CORE_END, void, uint64_t)(range);
    }
    return copy;
}

static struct copy * shared_copy;
static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void) number;
    CALL(shared_copy, NVTX_CORE, CORE_MARK_A, void, const char *)("from a signal handler");
    signals++;
}

static void under_signals(void) {
    signal(SIGALRM, on_signal);
    ualarm(1000, 1000);
    char name[32];
    for (int i = 0; signals < 100; i++) {
        snprintf(name, sizeof(name), "new %d", i % 20000);
        CALL(shared_copy, NVTX_CORE, CORE_PUSH_A, int, const char *)(name);
        CALL(shared_copy, NVTX_CORE, CORE_POP, int, void)();
    }
    ualarm(0, 0);
    signal(SIGALRM, SIG_IGN);
}

static void forked(void) {
    const pid_t child = fork();
    if (child == 0) {
        CALL(shared_copy, NVTX_CORE, CORE_MARK_A, void, const char *)("of the child");
        CHECK(CALL(shared_copy, NVTX_CORE, CORE_START_A, uint64_t, const char *)("of the child") != 0);
        _exit(CALL(shared_copy, NVTX_CORE, CORE_PUSH_A, int, const char *)("of the child") == NVTX_NO_TRACKING ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Runs after the listener's own destructor. */
__attribute__((destructor(101))) static void after_the_end(void) {
    if (!shared_copy) return;
    CALL(shared_copy, NVTX_CORE, CORE_MARK_A, void, const char *)("after the end");
    CALL(shared_copy, NVTX_CORE, CORE_START_A, uint64_t, const char *)("after the end, and new");
}

int main(int count, char ** args) {
    if (count != 2) return 2;
    setenv("GGML2PERFETTO_OUT", args[1], 1);
    tables();
    struct copy * copy = shared_copy = copy_of(PLACES);
    CHECK(nvtx_listen(all_tables) == 1);
    attributes(copy);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, many, (void *) i);
    for (int i = 0; i < THREADS; i++) {
        void * of_thread;
        pthread_join(threads[i], &of_thread);
        free(of_thread);
    }
    under_signals();
    forked();
    CALL(copy, NVTX_CORE, CORE_MARK_A, void, const char *)("the last one");
    return 0;
}
