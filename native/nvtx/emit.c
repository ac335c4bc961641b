#include "nvtx/emit.h"

#include "common/hold.h"
#include "log/ggtrace.h"
#include "nvtx/abi.h"
#include "nvtx/host.h"
#include "common/environment.h"
#include "common/shared-table.h"
#include "common/table.h"

_Atomic uint32_t nvtx_emits_now = EMIT_AHEAD;

static const char * const words[] = {"phases", "tokens", "graphs", "operators"};
enum { WORDS = sizeof(words) / sizeof(*words), NAME_BYTES = 160, OWN_PLACES = 17 };

/* The NVTX function pointers of a program, which a tool sets. All of a module, because a tool may expect all of them. */
static nvtx_function core[OWN_PLACES], core2[OWN_PLACES], cuda[OWN_PLACES], opencl[OWN_PLACES], cudart[OWN_PLACES], sync_[OWN_PLACES];
static nvtx_function * places[7][OWN_PLACES];

static const struct {
    nvtx_function * functions;
    unsigned count;
} modules[] = {[NVTX_CORE] = {core, CORE_PLACES}, [NVTX_CUDA] = {cuda, CUDA_PLACES}, [NVTX_OPENCL] = {opencl, 15},
               [NVTX_CUDART] = {cudart, CUDART_PLACES}, [NVTX_CORE2] = {core2, CORE2_PLACES}, [NVTX_SYNC] = {sync_, 7}};

static nvtx_handle domain;
static struct shared_table handles;
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Calls ---- */

#define CALLABLE(place, result, ...) ((result (*)(__VA_ARGS__)) core2[place])

static nvtx_handle register_string(uint64_t key, const char * text) {
    if (!core2[CORE2_REGISTER_STRING_A]) return NULL;
    HOLD(&handles_lock);
    uint64_t handle = shared_table_get(&handles, key);
    if (!handle) {
        handle = (uintptr_t) CALLABLE(CORE2_REGISTER_STRING_A, nvtx_handle, nvtx_handle, const char *)(domain, text);
        if (handle) shared_table_put(&handles, key, handle);
    }
    return (nvtx_handle) (uintptr_t) handle;
}

static nvtx_handle string_handle(const char * text) {
    const uint64_t key = hash_bytes(31, text, strlen(text));
    const uint64_t handle = shared_table_get(&handles, key);
    return handle ? (nvtx_handle) (uintptr_t) handle : register_string(key, text);
}

static struct nvtx_attributes attributes_of(enum nvtx_emitted what, const char * name, uint64_t index) {
    nvtx_handle handle = string_handle(name);
    return (struct nvtx_attributes){
        .version = NVTX_VERSION,
        .size = sizeof(struct nvtx_attributes),
        .category = (uint32_t) what,
        .payload_type = index == EMIT_NO_INDEX ? NVTX_NO_PAYLOAD : NVTX_U64,
        .payload = index == EMIT_NO_INDEX ? 0 : index,
        .message_type = handle ? NVTX_REGISTERED : NVTX_TEXT,
        .message = handle ? handle : name,
    };
}

void nvtx_emit_push(enum nvtx_emitted what, const char * name, uint64_t index) {
    if (!core2[CORE2_PUSH_EX]) return;
    const struct nvtx_attributes attributes = attributes_of(what, name, index);
    CALLABLE(CORE2_PUSH_EX, int, nvtx_handle, const struct nvtx_attributes *)(domain, &attributes);
}

void nvtx_emit_pop(void) {
    if (core2[CORE2_POP]) CALLABLE(CORE2_POP, int, nvtx_handle)(domain);
}

void nvtx_emit_operator(const char * tensor, const char * op, uint64_t index) {
    char name[NAME_BYTES];
    size_t length = strnlen(tensor, NAME_BYTES / 2);
    memcpy(name, tensor, length);
    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9') length--;
    if (length > 1 && name[length - 1] == '-' && tensor[length]) length--; /* ffn_up-3; unlike node_12 */
    else length = strnlen(tensor, NAME_BYTES / 2);
    if (length) name[length++] = ' ';
    const size_t op_length = strnlen(op, NAME_BYTES / 2 - 2);
    memcpy(name + length, op, op_length);
    name[length + op_length] = 0;
    nvtx_emit_push(EMIT_OPERATORS, name, index);
}

/* ---- Phases: one per process, because calls may come from any thread ---- */

static pthread_mutex_t phase_lock = PTHREAD_MUTEX_INITIALIZER;
static const char * phase;
static uint64_t phase_range, phase_count;

static void change_phase(const char * next) {
    if (phase && core2[CORE2_END]) CALLABLE(CORE2_END, void, nvtx_handle, uint64_t)(domain, phase_range);
    phase = next;
    if (!next || !core2[CORE2_START_EX]) return;
    const struct nvtx_attributes attributes = attributes_of(EMIT_PHASES, next, phase_count++);
    phase_range = CALLABLE(CORE2_START_EX, uint64_t, nvtx_handle, const struct nvtx_attributes *)(domain, &attributes);
}

void nvtx_emit_phase(const char * next) {
    HOLD(&phase_lock);
    if (phase != next) change_phase(next);
}

void nvtx_emit_finish(void) {
    const uint32_t emits = atomic_exchange(&nvtx_emits_now, 0);
    if (!(emits & EMIT_AHEAD) && emits & EMIT_PHASES) nvtx_emit_phase(NULL);
}

void nvtx_emit_forked(void) {
    atomic_store(&nvtx_emits_now, 0);
}

/* ---- Joining a tool ---- */

static int module_places(int module, nvtx_function *** to, unsigned * count) {
    if (module < NVTX_CORE || module > NVTX_SYNC || !to) return 0;
    for (unsigned i = 1; i < modules[module].count; i++) places[module][i] = &modules[module].functions[i];
    *to = places[module];
    if (count) *count = modules[module].count;
    return 1;
}

static void set_tool_version(uint32_t version) {
    (void) version;
}

static const void * get_table(uint32_t table) {
    static const struct nvtx_callbacks callbacks = {sizeof(callbacks), module_places};
    static const struct nvtx_version_info version = {sizeof(version), NVTX_VERSION, 0, set_tool_version};
    if (table == NVTX_TABLE_CALLBACKS) return &callbacks;
    return table == NVTX_TABLE_VERSION ? &version : NULL;
}

static uint32_t wanted(void) {
    const char * asked = environment(ENV_NVTX_EMIT);
    uint32_t wants = 0;
    for (unsigned i = 0; asked && i < WORDS; i++) if (strstr(asked, words[i])) wants |= 1u << i;
    return wants;
}

/* Loads the tool as a program's own NVTX does. NULL, or the reason why there is no tool. */
static const char * join_tool(void) {
    const char * path = getenv("NVTX_INJECTION64_PATH");
    if (!path || !*path) return "NVTX_INJECTION64_PATH names no tool";
    void * library = dlopen(path, RTLD_LAZY);
    if (!library) return dlerror();
    nvtx_initialize initialize;
    *(void **) &initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (!initialize) return "the library that NVTX_INJECTION64_PATH names is no tool for NVTX (InitializeInjectionNvtx2)";
    return initialize(get_table) ? NULL : "the tool that NVTX_INJECTION64_PATH names does not want to listen";
}

static void name_things(void) {
    if (core2[CORE2_DOMAIN_CREATE_A]) domain = CALLABLE(CORE2_DOMAIN_CREATE_A, nvtx_handle, const char *)("llama.cpp");
    for (unsigned i = 0; i < WORDS && core2[CORE2_NAME_CATEGORY_A]; i++) {
        CALLABLE(CORE2_NAME_CATEGORY_A, void, nvtx_handle, uint32_t, const char *)(domain, 1u << i, words[i]);
    }
}

static void begin(void) {
    uint32_t emits = wanted();
    const char * problem = emits ? join_tool() : NULL;
    struct ggtrace * log = emits ? nvtx_log() : NULL;
    if (problem) {
        ggtrace_fact(log, "note", "nothing was announced as NVTX ranges");
        ggtrace_fact(log, "note", problem);
        emits = 0;
    } else if (emits) {
        name_things();
        ggtrace_fact(log, "nvtx.emitted", environment(ENV_NVTX_EMIT));
    }
    uint32_t ahead = EMIT_AHEAD;
    atomic_compare_exchange_strong(&nvtx_emits_now, &ahead, emits);
}

uint32_t nvtx_emit_begin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    return atomic_load(&nvtx_emits_now) & ~EMIT_AHEAD;
}
