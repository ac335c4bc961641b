#include "common/hold.h"
#include "recorder/registry-inside.h"

#include "recorder/full.h"
#include "recorder/mapped.h"
#include "recorder/ops.h"
#include "recorder/origins.h"
#include "common/table.h"

enum { DEPTH_MAX = 64, PATH_BYTES_MAX = 4096, FINGERPRINTS_MAX = 1 << 18 };

struct registry registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct table names, tensors, buffers;
static uint32_t name_count, tensor_count, buffer_count;

/* What is known of a tensor's address. */
struct meeting {
    struct fingerprint fingerprint;
    uint64_t now;  /* what registry_fingerprint returned in this walk */
    uint32_t walk, id; /* id: of the tensor, if it was looked up in this walk; else 0 */
};

static struct table met;
static struct meeting * meetings;
static uint32_t meeting_count, walk_count;

void registry_begin_walk(void) {
    registry.walk = ++walk_count;
}

void registry_end_walk(void) {
    registry.walk = 0;
}

void registry_open(struct ggtrace * log) {
    registry.log = log;
}

void registry_init(const struct ggml_api * api, const struct tensor_layout * layout) {
    registry.api = api;
    registry.layout = layout;
}

static uint32_t name_id(const char * text) {
    if (!text || !*text) return 0;
    const size_t length = strnlen(text, PATH_BYTES_MAX);
    struct entry * entry = table_at(&names, hash_bytes(1, text, length));
    if (!entry) return 0;
    if (entry->id == 0) {
        entry->id = ++name_count;
        ggtrace_define_name(registry.log, entry->id, text, length);
    }
    return entry->id;
}

uint32_t registry_name(const char * text) {
    HOLD(&registry.lock);
    return name_id(text);
}

uint32_t registry_new_name(const char * text, size_t bytes) {
    HOLD(&registry.lock);
    const uint32_t id = ++name_count;
    ggtrace_define_name(registry.log, id, text, bytes);
    return id;
}

const char * registry_op_name(const void * node) {
    const struct ggml_api * api = registry.api;
    return api->op_desc ? api->op_desc(node) : api->op_name(layout_i32(node, registry.layout->op));
}

static void define_mapping(const struct mapped * mapping) {
    ggtrace_define_mapping(registry.log, &(struct ggtrace_mapping){
        .file = name_id(mapping->path),
        .address = mapping->begin,
        .size = mapping->end - mapping->begin,
        .offset = mapping->offset,
    });
}

enum { ALLOCATIONS_MAX = 1 << 16 };

/* Allocation times of buffers; most buffers are unknown until they are first used. */
static struct table allocations;
static uint64_t * allocation_times;
static uint32_t allocation_count;

void registry_note_allocation(const void * buffer, uint64_t time) {
    HOLD(&registry.lock);
    struct entry * entry = table_at(&allocations, mix(8, (uint64_t) (uintptr_t) buffer));
    if (!allocation_times) allocation_times = reserve(ALLOCATIONS_MAX * sizeof(*allocation_times));
    if (entry && entry->id == 0 && allocation_count + 1 < ALLOCATIONS_MAX) entry->id = ++allocation_count;
    if (entry && entry->id && allocation_times) allocation_times[entry->id] = time;
}

/* The allocation time of a buffer; 0 if the recorder did not see it. */
static uint64_t allocation_time(const void * buffer) {
    const struct entry * entry = table_at(&allocations, mix(8, (uint64_t) (uintptr_t) buffer));
    return entry && entry->id && allocation_times ? allocation_times[entry->id] : 0;
}

static void (*note_buffer)(uint32_t id, uint64_t base, uint64_t size);

void registry_note_buffers(void (*note)(uint32_t id, uint64_t base, uint64_t size)) {
    note_buffer = note;
}

static uint32_t buffer_id(void * buffer) {
    const struct ggml_api * api = registry.api;
    if (!buffer || !api->buffer_get_base || !api->buffer_get_size) return 0;
    struct entry * entry = table_at(&buffers, mix(2, (uint64_t) (uintptr_t) buffer));
    if (!entry) return 0;
    if (entry->id != 0) return entry->id;
    entry->id = ++buffer_count;
    const uint32_t id = entry->id;
    const uint32_t usage = api->buffer_get_usage ? (uint32_t) api->buffer_get_usage(buffer) : 0;
    const uint32_t name = api->buffer_name ? name_id(api->buffer_name(buffer)) : 0;
    ggtrace_define_buffer(registry.log, &(struct ggtrace_buffer){
        .id = id,
        .name = name,
        .backend = name,
        .usage = usage,
        .base = (uint64_t) (uintptr_t) api->buffer_get_base(buffer),
        .size = api->buffer_get_size(buffer),
        .time = allocation_time(buffer),
    });
    if (note_buffer) note_buffer(id, (uint64_t) (uintptr_t) api->buffer_get_base(buffer), api->buffer_get_size(buffer));
    if (usage == 1) mapped_look(define_mapping);
    return id;
}

void registry_expect_buffer(void * buffer) {
    HOLD(&registry.lock);
    const struct ggml_api * api = registry.api;
    if (api && api->buffer_is_multi && !api->buffer_is_multi(buffer)) buffer_id(buffer); /* buffers of buffers have no address: ggml aborts */
}

uint32_t registry_tensor_buffer(const void * tensor) {
    const int offset = registry.layout->buffer;
    if (registry.gave_up || offset < 0) return 0;
    HOLD(&registry.lock);
    return buffer_id(layout_pointer(tensor, offset));
}

/* From now on, all tensors and graphs have other keys. */
static void count_free(void) {
    registry.freed++;
    table_clear(&tensors);
    table_clear(&registry.graphs);
    table_clear(&met);
    meeting_count = 0;
}

uint32_t registry_buffer_forget(void * buffer) {
    HOLD(&registry.lock);
    struct entry * entry = buffer ? table_at(&buffers, mix(2, (uint64_t) (uintptr_t) buffer)) : NULL;
    const uint32_t id = entry ? entry->id : 0;
    /* Another buffer may have this address next, also one that is not allocated: a mapped file. */
    const struct entry * allocation = buffer && allocation_times ? table_at(&allocations, mix(8, (uint64_t) (uintptr_t) buffer)) : NULL;
    if (allocation && allocation->id) allocation_times[allocation->id] = 0;
    if (id) {
        entry->id = 0;
        count_free();
    }
    return id;
}

size_t registry_compared_bytes(void) {
    return (size_t) (registry.layout->name + registry.layout->name_bytes);
}

static struct meeting * meet(const void * tensor) {
    if (!meetings && !(meetings = reserve(FINGERPRINTS_MAX * sizeof(*meetings)))) return NULL;
    struct entry * entry = table_at(&met, mix(9, (uint64_t) (uintptr_t) tensor));
    if (entry && entry->id == 0 && meeting_count + 1 < FINGERPRINTS_MAX) entry->id = ++meeting_count;
    return entry && entry->id ? &meetings[entry->id] : full_count(FULL_FINGERPRINTS);
}

struct fingerprint * registry_fingerprint_of(const void * tensor) {
    struct meeting * meeting = meet(tensor);
    return meeting ? &meeting->fingerprint : NULL;
}

uint64_t registry_own_fingerprint(const void * tensor) {
    return hash_bytes(mix(mix(4, registry.freed), (uint64_t) (uintptr_t) tensor), tensor, registry_compared_bytes());
}

static bool is_met_now(const struct meeting * meeting) { return meeting && registry.walk && meeting->walk == registry.walk; }

static uint64_t fingerprint(const void * tensor, struct meeting * meeting) {
    if (is_met_now(meeting)) return meeting->now;
    const uint64_t own = registry_own_fingerprint(tensor);
    const uint64_t now = meeting && meeting->fingerprint.own == own ? meeting->fingerprint.whole : own;
    if (meeting) *meeting = (struct meeting){.fingerprint = meeting->fingerprint, .now = now, .walk = registry.walk};
    return now;
}

uint64_t registry_fingerprint(const void * tensor) {
    return fingerprint(tensor, meet(tensor));
}

/* ggml_cast makes the node its own source (for backends that treat it as ggml_cpy). */
const void * registry_source(const void * node, int i) {
    const void * source = layout_pointer(node, registry.layout->sources + 8 * i);
    return source == node ? NULL : source;
}

/*
 * Two nodes may have equal structs but different sources: a write into the KV cache has the size of the cache, whatever the
 * batch. So the key includes the sources, which precede the node in its graph.
 */
struct fingerprint registry_fingerprint_node(const void * node) {
    const struct tensor_layout * layout = registry.layout;
    const uint64_t own = registry_own_fingerprint(node);
    uint64_t whole = own;
    for (int i = 0; i < layout->source_count; i++) {
        const void * source = registry_source(node, i);
        if (source) whole = mix(whole, registry_fingerprint(source));
    }
    const struct fingerprint fingerprint = {own, whole};
    registry_set_fingerprint(node, fingerprint);
    return fingerprint;
}

void registry_set_fingerprint(const void * node, struct fingerprint fingerprint) {
    struct meeting * meeting = meet(node);
    if (meeting) *meeting = (struct meeting){.fingerprint = fingerprint, .now = fingerprint.whole, .walk = registry.walk};
}

/* UNARY and GLU are many ops with one number. They are named by what they compute, and get numbers that no ggml uses. */
enum { OWN_OPS_FROM = 1024, OWN_OPS_MAX = 256 };

static uint16_t own_op_number(int32_t op, const char * name) {
    static const char * own[OWN_OPS_MAX];
    for (int i = 0; i < OWN_OPS_MAX; i++) {
        if (own[i] && own[i] != name && strcmp(own[i], name) != 0) continue;
        if (own[i]) return (uint16_t) (OWN_OPS_FROM + i);
        own[i] = name;
        ggtrace_define_op(registry.log, (uint32_t) (OWN_OPS_FROM + i), name_id(name));
        return (uint16_t) (OWN_OPS_FROM + i);
    }
    return (uint16_t) op;
}

/* The log contains the names of ops and types from the running ggml, defined when a tensor first uses them. */
static uint16_t op_number(const void * tensor) {
    static bool is_defined[256];
    const int32_t op = layout_i32(tensor, registry.layout->op);
    const char * name = registry_op_name(tensor);
    const char * plain = registry.api->op_name(op);
    if (name != plain && strcmp(name, plain) != 0) return own_op_number(op, name);
    if (op >= 0 && op < 256 && !is_defined[op]) {
        is_defined[op] = true;
        ggtrace_define_op(registry.log, (uint32_t) op, name_id(name));
    }
    return (uint16_t) op;
}

static uint16_t type_number(int32_t type) {
    static bool is_defined[256];
    if (type >= 0 && type < 256 && !is_defined[type] && registry.api->type_name) {
        is_defined[type] = true;
        ggtrace_define_type(registry.log, (uint32_t) type, name_id(registry.api->type_name(type)));
    }
    return (uint16_t) type;
}

/* Weights that were copied from a mapped file (to another backend, or repacked) keep their place in the file. */
static void define_origin(const void * tensor, const struct ggtrace_tensor * definition) {
    const struct origin * origin = origin_of(tensor);
    if (!origin || origin->bytes != definition->bytes) return;
    ggtrace_define_mapping(registry.log, &(struct ggtrace_mapping){
        .file = name_id(origin->path),
        .buffer = definition->buffer,
        .address = definition->data,
        .size = definition->bytes,
        .offset = origin->offset,
    });
}

void registry_note_origin(const void * tensor, const void * data, uint64_t bytes) {
    HOLD(&registry.lock);
    origin_note(tensor, data, bytes);
}

void * registry_own_buffer(const void * tensor) {
    const struct tensor_layout * layout = registry.layout;
    if (layout->buffer < 0) return NULL;
    void * buffer = layout_pointer(tensor, layout->buffer);
    const void * view_source = layout_pointer(tensor, layout->view_source);
    return buffer || !view_source ? buffer : layout_pointer(view_source, layout->buffer);
}

static uint32_t tensor_id(const void * tensor, int depth);

static void describe(const void * tensor, int depth, struct description * description) {
    const struct tensor_layout * layout = registry.layout;
    struct ggtrace_tensor * definition = &description->definition;
    *definition = (struct ggtrace_tensor){.flags = op_is_computed(tensor) ? 0 : GGTRACE_NOT_COMPUTED};
    uint32_t count = 0;
    for (int i = 0; i < layout->source_count; i++) {
        const uint32_t source = tensor_id(registry_source(tensor, i), depth + 1);
        if (source) description->sources[count++] = source;
    }
    const void * view_source = layout_pointer(tensor, layout->view_source);
    if (view_source) definition->view_source = tensor_id(view_source, depth + 1);
    definition->name = name_id((const char *) tensor + layout->name);
    definition->op = op_number(tensor);
    definition->type = type_number(layout_i32(tensor, layout->type));
    definition->source_count = (uint16_t) count;
    definition->buffer = buffer_id(registry_own_buffer(tensor));
}

void registry_describe(const void * tensor, struct description * description) {
    describe(tensor, 0, description);
}

void registry_define(uint32_t id, const void * tensor, struct description * description) {
    const struct tensor_layout * layout = registry.layout;
    struct ggtrace_tensor * definition = &description->definition;
    definition->id = id;
    memcpy(definition->ne, (const char *) tensor + layout->ne, sizeof(definition->ne));
    memcpy(definition->nb, (const char *) tensor + layout->nb, sizeof(definition->nb));
    definition->data = (uint64_t) (uintptr_t) layout_pointer(tensor, layout->data);
    definition->bytes = registry_tensor_bytes(tensor);
    definition->view_offset = layout->view_offset < 0 ? 0 : (uint64_t) layout_i64(tensor, layout->view_offset);
    if (definition->op == 0 && definition->buffer) define_origin(tensor, definition);
    ggtrace_define_tensor(registry.log, definition, description->sources);
}

void registry_expect_tensor(uint64_t fingerprint) {
    table_prefetch(&tensors, fingerprint);
}

uint32_t registry_new_tensor(uint64_t fingerprint, bool * is_new) {
    struct entry * entry = table_at(&tensors, fingerprint);
    if (!entry) return 0;
    *is_new = entry->id == 0;
    if (*is_new) entry->id = ++tensor_count;
    return entry->id;
}

/* The id of a tensor with this fingerprint; 0 if memory is short. */
static uint32_t id_of(const void * tensor, uint64_t fingerprint, int depth) {
    bool is_new = false;
    const uint32_t id = registry_new_tensor(fingerprint, &is_new); /* before the sources, because the table may grow and move */
    if (!is_new) return id;
    struct description description;
    describe(tensor, depth, &description);
    registry_define(id, tensor, &description);
    return id;
}

/* 0 if there is none or memory is short. Recursion is deep only if the sources' graph was not recorded. */
static uint32_t tensor_id(const void * tensor, int depth) {
    if (!tensor || depth > DEPTH_MAX) return 0;
    struct meeting * meeting = meet(tensor);
    if (is_met_now(meeting) && meeting->id) return meeting->id;
    const uint32_t id = id_of(tensor, fingerprint(tensor, meeting), depth);
    if (is_met_now(meeting)) meeting->id = id;
    return id;
}

void registry_give_up(void) {
    registry.gave_up = true;
}

const char * registry_backend_title(void * backend) {
    const char * name = registry.api->backend_name ? registry.api->backend_name(backend) : NULL;
    return name ? name : "";
}

uint32_t registry_tensor_locked(const void * tensor) {
    return tensor_id(tensor, 0);
}

uint32_t registry_node_locked(const void * node, uint64_t fingerprint) {
    return id_of(node, fingerprint, 0);
}

uint32_t registry_tensor(const void * tensor) {
    if (registry.gave_up) return 0;
    HOLD(&registry.lock);
    return tensor_id(tensor, 0);
}

uint64_t registry_tensor_bytes(const void * tensor) {
    return registry.api->nbytes ? registry.api->nbytes(tensor) : 0;
}
