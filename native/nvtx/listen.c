/*
 * An injection library for NVTX: receives the NVTX calls of a program and writes them to the log. The functions below are
 * called on the program's threads, at any time, by each copy of NVTX in the process. Handles that they return are ids, not
 * addresses: a handle that comes back is validated, never dereferenced.
 */
#include "nvtx/listen.h"

#include "common/clock.h"
#include "log/ggtrace-nvtx.h"
#include "nvtx/abi.h"
#include "nvtx/host.h"
#include "nvtx/names.h"

#define GGTRACE_POISON
#include "log/ggtrace.h"

/* In this many domains, push and pop count levels and return them; in others they return NVTX_NO_TRACKING. */
enum { COUNTED_DOMAINS = 32 };

struct thread {
    bool is_inside; /* in a function of the listener: calls from signal handlers are ignored */
    uint16_t depths[COUNTED_DOMAINS];
};

static __thread struct thread thread __attribute__((tls_model("initial-exec")));
static struct ggtrace * _Atomic listened;
static _Atomic uint64_t range_count, resource_count;

/* NULL: nothing can be written now. Otherwise the caller must call leave(). */
static struct ggtrace_writer * enter(void) {
    struct ggtrace * log = atomic_load_explicit(&listened, memory_order_relaxed);
    if (!log || thread.is_inside) return NULL;
    struct ggtrace_writer * writer = ggtrace_thread_writers[0];
    if (writer && __atomic_load_n(&writer->busy, __ATOMIC_RELAXED)) return NULL; /* in a signal handler that interrupted the recorder */
    thread.is_inside = true;
    clock_correct();
    return ggtrace_writer_of_thread(log, GGTRACE_NO_WORKER);
}

static void leave(void) {
    thread.is_inside = false;
}

static uint32_t domain_of(nvtx_handle domain) {
    return nvtx_known_domain((uint64_t) (uintptr_t) domain);
}

/* ---- Attributes of an event ---- */

static uint32_t message_of(int32_t type, const void * message) {
    switch (type) {
        case NVTX_TEXT:
            return nvtx_name(message);
        case NVTX_WIDE_TEXT:
            return nvtx_wide_name(message);
        case NVTX_REGISTERED:
            return nvtx_known_name((uint64_t) (uintptr_t) message);
        default:
            return 0;
    }
}

/* Fields that the program's struct does not have are 0. */
static void copy_struct(void * to, const void * from, size_t bytes) {
    uint16_t size = 0;
    if (from) memcpy(&size, (const char *) from + offsetof(struct nvtx_attributes, size), sizeof(size));
    memset(to, 0, bytes);
    if (from) memcpy(to, from, size < bytes ? size & ~3u : bytes);
}

static uint64_t payload_of(const struct nvtx_attributes * attributes) {
    const int32_t type = attributes->payload_type;
    if (type == NVTX_U32 || type == NVTX_I32 || type == NVTX_F32) return (uint32_t) attributes->payload;
    return type > NVTX_NO_PAYLOAD && type < NVTX_PAYLOADS ? attributes->payload : 0;
}

static void write_event(struct ggtrace_writer * writer, enum ggtrace_type type, uint64_t now, uint64_t range,
                        nvtx_handle domain, const struct nvtx_attributes * given) {
    struct nvtx_attributes attributes;
    copy_struct(&attributes, given, sizeof(attributes));
    const uint16_t size = attributes.size; /* a field that is not completely inside counts as missing */
    const bool has_color = size >= offsetof(struct nvtx_attributes, payload_type) && attributes.color_type == NVTX_ARGB;
    const bool has_message = size >= sizeof(attributes);
    if (size < offsetof(struct nvtx_attributes, message_type)) attributes.payload_type = NVTX_NO_PAYLOAD;
    const bool is_known = attributes.payload_type >= 0 && attributes.payload_type < NVTX_PAYLOADS;
    ggtrace_nvtx(writer, type, &(struct ggtrace_nvtx_record){
        .time = now,
        .domain = domain_of(domain),
        .message = has_message ? message_of(attributes.message_type, attributes.message) : 0,
        .category = attributes.category,
        .color = has_color ? attributes.color : 0,
        .color_type = has_color ? NVTX_ARGB : NVTX_NO_COLOR,
        .payload_type = is_known ? (uint16_t) attributes.payload_type : UINT16_MAX,
        .payload = payload_of(&attributes),
        .range = range,
    });
}

static struct nvtx_attributes only(int32_t message_type, const void * message) {
    return (struct nvtx_attributes){.version = NVTX_VERSION, .size = sizeof(struct nvtx_attributes),
                                    .message_type = message_type, .message = message};
}

/* ---- Marks and ranges ---- */

static void domain_mark(nvtx_handle domain, const struct nvtx_attributes * attributes) {
    struct ggtrace_writer * writer = enter();
    if (!writer) return;
    write_event(writer, GGTRACE_NVTX_MARK, clock_now(), 0, domain, attributes);
    leave();
}

static uint64_t domain_start(nvtx_handle domain, const struct nvtx_attributes * attributes) {
    const uint64_t range = atomic_fetch_add_explicit(&range_count, 1, memory_order_relaxed) + 1;
    struct ggtrace_writer * writer = enter();
    if (!writer) return range;
    write_event(writer, GGTRACE_NVTX_START, clock_now(), range, domain, attributes);
    leave();
    return range;
}

static void domain_end(nvtx_handle domain, uint64_t range) {
    (void) domain; /* the range's number is sufficient */
    struct ggtrace_writer * writer = enter();
    if (!writer) return;
    ggtrace_nvtx_end(writer, clock_now(), range);
    leave();
}

static int domain_push(nvtx_handle domain, const struct nvtx_attributes * attributes) {
    struct ggtrace_writer * writer = enter();
    if (!writer) return NVTX_NO_TRACKING;
    write_event(writer, GGTRACE_NVTX_PUSH, clock_now(), 0, domain, attributes);
    const uint32_t id = domain_of(domain);
    const int level = id < COUNTED_DOMAINS ? thread.depths[id]++ : NVTX_NO_TRACKING;
    leave();
    return level;
}

static int domain_pop(nvtx_handle domain) {
    struct ggtrace_writer * writer = enter();
    if (!writer) return NVTX_NO_TRACKING;
    const uint32_t id = domain_of(domain);
    ggtrace_nvtx_pop(writer, clock_now(), id);
    const bool is_counted = id < COUNTED_DOMAINS && thread.depths[id] > 0;
    const int level = is_counted ? --thread.depths[id] : NVTX_NO_TRACKING;
    leave();
    return level;
}

static void mark(const struct nvtx_attributes * attributes) {
    domain_mark(NULL, attributes);
}

static uint64_t start(const struct nvtx_attributes * attributes) {
    return domain_start(NULL, attributes);
}

static void end(uint64_t range) {
    domain_end(NULL, range);
}

static int push(const struct nvtx_attributes * attributes) {
    return domain_push(NULL, attributes);
}

static int pop(void) {
    return domain_pop(NULL);
}

/* The variants that take only a text. */
#define OF_TEXT(result, name, function)                                              \
    static result name##_a(const char * message) {                                   \
        const struct nvtx_attributes attributes = only(NVTX_TEXT, message);          \
        return function(NULL, &attributes);                                          \
    }                                                                                \
    static result name##_w(const wchar_t * message) {                                \
        const struct nvtx_attributes attributes = only(NVTX_WIDE_TEXT, message);     \
        return function(NULL, &attributes);                                          \
    }

OF_TEXT(uint64_t, start, domain_start)
OF_TEXT(int, push, domain_push)

static void mark_a(const char * message) {
    const struct nvtx_attributes attributes = only(NVTX_TEXT, message);
    domain_mark(NULL, &attributes);
}

static void mark_w(const wchar_t * message) {
    const struct nvtx_attributes attributes = only(NVTX_WIDE_TEXT, message);
    domain_mark(NULL, &attributes);
}

/* ---- Names ---- */

static uint32_t name_of(int32_t message_type, const void * message) {
    if (!enter()) return 0;
    const uint32_t name = message_of(message_type, message);
    leave();
    return name;
}

static void define(enum ggtrace_type type, uint32_t of, uint32_t number, uint32_t name) {
    if (!name || !enter()) return;
    nvtx_define(type, of, number, name);
    leave();
}

static void name_object(enum ggtrace_named what, uint64_t handle, uint32_t name) {
    struct ggtrace_writer * writer = name ? enter() : NULL;
    if (!writer) return;
    ggtrace_nvtx_named(writer, clock_now(), what, handle, name);
    leave();
}

static void name_category_a(uint32_t category, const char * name) {
    define(GGTRACE_NVTX_CATEGORY, 0, category, name_of(NVTX_TEXT, name));
}

static void name_category_w(uint32_t category, const wchar_t * name) {
    define(GGTRACE_NVTX_CATEGORY, 0, category, name_of(NVTX_WIDE_TEXT, name));
}

static void domain_name_category_a(nvtx_handle domain, uint32_t category, const char * name) {
    define(GGTRACE_NVTX_CATEGORY, domain_of(domain), category, name_of(NVTX_TEXT, name));
}

static void domain_name_category_w(nvtx_handle domain, uint32_t category, const wchar_t * name) {
    define(GGTRACE_NVTX_CATEGORY, domain_of(domain), category, name_of(NVTX_WIDE_TEXT, name));
}

static void name_thread_a(uint32_t tid, const char * name) {
    define(GGTRACE_THREAD, 0, tid, name_of(NVTX_TEXT, name));
}

static void name_thread_w(uint32_t tid, const wchar_t * name) {
    define(GGTRACE_THREAD, 0, tid, name_of(NVTX_WIDE_TEXT, name));
}

static nvtx_handle register_a(nvtx_handle domain, const char * text) {
    (void) domain;
    return (nvtx_handle) (uintptr_t) name_of(NVTX_TEXT, text);
}

static nvtx_handle register_w(nvtx_handle domain, const wchar_t * text) {
    (void) domain;
    return (nvtx_handle) (uintptr_t) name_of(NVTX_WIDE_TEXT, text);
}

static nvtx_handle create_domain(int32_t message_type, const void * text) {
    const uint32_t name = name_of(message_type, text);
    if (!enter()) return NULL;
    const uint32_t id = nvtx_domain(name);
    leave();
    return (nvtx_handle) (uintptr_t) id;
}

static nvtx_handle create_domain_a(const char * name) {
    return create_domain(NVTX_TEXT, name);
}

static nvtx_handle create_domain_w(const wchar_t * name) {
    return create_domain(NVTX_WIDE_TEXT, name);
}

/* Destroying a domain or a resource: its recorded name stays valid. */
static void ignore(nvtx_handle handle) {
    (void) handle;
}

static nvtx_handle create_resource(nvtx_handle domain, const struct nvtx_resource * given) {
    (void) domain;
    struct nvtx_resource resource;
    copy_struct(&resource, given, sizeof(resource));
    const bool is_whole = resource.size >= sizeof(resource);
    const uint32_t name = is_whole ? name_of(resource.message_type, resource.message) : 0;
    if (resource.type == NVTX_THREAD) define(GGTRACE_THREAD, 0, (uint32_t) resource.identifier, name);
    else name_object(GGTRACE_RESOURCE, resource.identifier, name);
    return (nvtx_handle) (uintptr_t) (atomic_fetch_add_explicit(&resource_count, 1, memory_order_relaxed) + 1);
}

/* Devices are numbers, all other objects are addresses. */
#define NAMES_OBJECT(function, type, what)                                            \
    static void function##_a(type object, const char * name) {                        \
        name_object(what, (uint64_t) object, name_of(NVTX_TEXT, name));               \
    }                                                                                 \
    static void function##_w(type object, const wchar_t * name) {                     \
        name_object(what, (uint64_t) object, name_of(NVTX_WIDE_TEXT, name));          \
    }

NAMES_OBJECT(name_cu_device, int, GGTRACE_CU_DEVICE)
NAMES_OBJECT(name_cu_context, uintptr_t, GGTRACE_CU_CONTEXT)
NAMES_OBJECT(name_cu_stream, uintptr_t, GGTRACE_CU_STREAM)
NAMES_OBJECT(name_cu_event, uintptr_t, GGTRACE_CU_EVENT)
NAMES_OBJECT(name_cuda_device, int, GGTRACE_CUDA_DEVICE)
NAMES_OBJECT(name_cuda_stream, uintptr_t, GGTRACE_CUDA_STREAM)
NAMES_OBJECT(name_cuda_event, uintptr_t, GGTRACE_CUDA_EVENT)

static void initialize(const void * reserved) {
    (void) reserved;
}

/* ---- Subscribing ---- */

#define BOTH(place, name) [place##_A] = (nvtx_function) name##_a, [place##_W] = (nvtx_function) name##_w

static const nvtx_function core[CORE_PLACES] = {
    [CORE_MARK_EX] = (nvtx_function) mark, BOTH(CORE_MARK, mark),
    [CORE_START_EX] = (nvtx_function) start, BOTH(CORE_START, start), [CORE_END] = (nvtx_function) end,
    [CORE_PUSH_EX] = (nvtx_function) push, BOTH(CORE_PUSH, push), [CORE_POP] = (nvtx_function) pop,
    BOTH(CORE_NAME_CATEGORY, name_category), BOTH(CORE_NAME_THREAD, name_thread),
};
static const nvtx_function core2[CORE2_PLACES] = {
    [CORE2_MARK_EX] = (nvtx_function) domain_mark, [CORE2_START_EX] = (nvtx_function) domain_start,
    [CORE2_END] = (nvtx_function) domain_end, [CORE2_PUSH_EX] = (nvtx_function) domain_push,
    [CORE2_POP] = (nvtx_function) domain_pop, [CORE2_RESOURCE_CREATE] = (nvtx_function) create_resource,
    [CORE2_RESOURCE_DESTROY] = (nvtx_function) ignore, BOTH(CORE2_NAME_CATEGORY, domain_name_category),
    BOTH(CORE2_REGISTER_STRING, register), BOTH(CORE2_DOMAIN_CREATE, create_domain),
    [CORE2_DOMAIN_DESTROY] = (nvtx_function) ignore, [CORE2_INITIALIZE] = (nvtx_function) initialize,
};
static const nvtx_function cuda[CUDA_PLACES] = {
    BOTH(CUDA_NAME_DEVICE, name_cu_device), BOTH(CUDA_NAME_CONTEXT, name_cu_context),
    BOTH(CUDA_NAME_STREAM, name_cu_stream), BOTH(CUDA_NAME_EVENT, name_cu_event),
};
static const nvtx_function cudart[CUDART_PLACES] = {
    BOTH(CUDART_NAME_DEVICE, name_cuda_device), BOTH(CUDART_NAME_STREAM, name_cuda_stream),
    BOTH(CUDART_NAME_EVENT, name_cuda_event),
};

static const struct {
    int module;
    unsigned count;
    const nvtx_function * functions;
} modules[] = {{NVTX_CORE, CORE_PLACES, core}, {NVTX_CUDA, CUDA_PLACES, cuda}, {NVTX_CUDART, CUDART_PLACES, cudart},
               {NVTX_CORE2, CORE2_PLACES, core2}};

static unsigned subscribe(const struct nvtx_callbacks * callbacks, bool sets) {
    unsigned subscribed = 0;
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
        nvtx_function ** places = NULL;
        unsigned count = 0;
        if (!callbacks->module_places(modules[i].module, &places, &count) || !places) continue;
        if (count > modules[i].count) count = modules[i].count;
        for (unsigned place = 1; place < count; place++) {
            if (!places[place]) continue;
            if (sets) *places[place] = modules[i].functions[place];
            subscribed++;
        }
    }
    return subscribed;
}

/* Opens the log only for a program that uses NVTX. */
int nvtx_listen(nvtx_get_table get) {
    const struct nvtx_callbacks * callbacks = get ? get(NVTX_TABLE_CALLBACKS) : NULL;
    if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->module_places) return 0;
    if (subscribe(callbacks, false) == 0) return 0;
    struct ggtrace * log = nvtx_log();
    if (!log) return 0;
    atomic_store(&listened, log);
    const struct nvtx_version_info * version = get(NVTX_TABLE_VERSION);
    const bool has_version = version && version->size >= sizeof(*version) && version->set_tool_version;
    if (has_version) version->set_tool_version(NVTX_VERSION);
    subscribe(callbacks, true);
    return 1;
}

void nvtx_listen_forked(void) {
    atomic_store(&listened, NULL);
    nvtx_names_forked();
}
