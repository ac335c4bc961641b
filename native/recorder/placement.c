#include "recorder/placement.h"

#include <stdio.h>

#include "common/hold.h"
#include "common/table.h"
#include "log/ggtrace-nvtx.h"
#include "recorder/full.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

/* ---- Devices ---- */

enum { DEVICES_MAX = 32, FACT_BYTES = 256, TYPE_UNKNOWN = -1, TYPE_CPU = 0, TYPE_ACCELERATOR = 3 };

/* Types are those that the program was answered: ggml-cuda asks the driver each time, and ends the program if that fails. */
static struct device {
    _Atomic(void *) device;
    _Atomic int type;
    _Atomic uint64_t free_bytes; /* when the program first asked; 0: it did not */
} devices[DEVICES_MAX];
static _Atomic int device_count, reported_count;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

static struct device * find_device(const void * device) {
    const int count = atomic_load_explicit(&device_count, memory_order_acquire);
    for (int i = 0; i < count; i++) if (atomic_load_explicit(&devices[i].device, memory_order_relaxed) == device) return &devices[i];
    return NULL;
}

static struct device * note_device(void * device) {
    struct device * known = find_device(device);
    if (!known) {
        HOLD(&device_lock);
        const int count = atomic_load_explicit(&device_count, memory_order_relaxed);
        if (!(known = find_device(device))) {
            if (count == DEVICES_MAX) return NULL;
            known = &devices[count];
            atomic_store_explicit(&known->device, device, memory_order_relaxed);
            atomic_store_explicit(&known->type, TYPE_UNKNOWN, memory_order_relaxed);
            atomic_store_explicit(&device_count, count + 1, memory_order_release);
        }
    }
    return known;
}

void placement_note_device(void * device, int type) {
    struct device * known = device ? note_device(device) : NULL;
    if (known && type != TYPE_UNKNOWN) atomic_store_explicit(&known->type, type, memory_order_relaxed);
}

void placement_note_memory(void * device, const size_t * free_bytes) {
    struct device * known = device && free_bytes ? note_device(device) : NULL;
    uint64_t none = 0;
    if (known) atomic_compare_exchange_strong(&known->free_bytes, &none, *free_bytes);
}

/* Are its answers recorded? The CPU takes what others refuse; accelerators (BLAS) refuse all but products. */
static bool is_asked_for(void * device) {
    if (recording_level() < LEVEL_GRAPH || !recording.log || !recording.api.dev_name) return false;
    const struct device * known = find_device(device);
    const int type = known ? atomic_load_explicit(&known->type, memory_order_relaxed) : TYPE_UNKNOWN;
    if (type != TYPE_UNKNOWN) return type != TYPE_CPU && type != TYPE_ACCELERATOR;
    const char * name = recording.api.dev_name(device);
    return name && strcmp(name, "CPU") != 0 && strcmp(name, "BLAS") != 0;
}

static void write_device(const struct device * of) {
    static const char * const types[] = {"CPU", "GPU", "integrated GPU", "accelerator"};
    const struct ggml_api * api = &recording.api;
    void * device = atomic_load(&of->device);
    const int type = atomic_load(&of->type);
    const char * name = api->dev_name(device), * description = api->dev_description ? api->dev_description(device) : NULL;
    const bool is_known = type >= 0 && type < (int) (sizeof(types) / sizeof(*types));
    char key[FACT_BYTES], value[FACT_BYTES];
    snprintf(key, sizeof(key), "device.%s", name ? name : "");
    snprintf(value, sizeof(value), "%s%s%s", is_known ? types[type] : type == TYPE_UNKNOWN ? "unknown" : "other", description ? ": " : "", description ? description : "");
    ggtrace_fact(recording.log, key, value);
    const uint64_t free_bytes = atomic_load(&of->free_bytes);
    if (free_bytes) {
        snprintf(key, sizeof(key), "free.device.%s", name ? name : "");
        snprintf(value, sizeof(value), "%llu", (unsigned long long) free_bytes);
        ggtrace_fact(recording.log, key, value);
    }
    Dl_info library;
    if ((type != TYPE_CPU && !is_asked_for(device)) || !dladdr(*(void **) device, &library) || !library.dli_fname) return; /* its first field is a function */
    snprintf(key, sizeof(key), "library.device.%s", name ? name : "");
    ggtrace_fact(recording.log, key, library.dli_fname);
}

void placement_report_devices(void) {
    if (atomic_load_explicit(&reported_count, memory_order_relaxed) == atomic_load_explicit(&device_count, memory_order_relaxed)) return;
    if (recording_level() < LEVEL_GRAPH || !recording.log || !recording.api.dev_name) return;
    HOLD(&device_lock);
    const int count = atomic_load(&device_count);
    for (int i = atomic_load(&reported_count); i < count; i++) write_device(&devices[i]);
    atomic_store(&reported_count, count);
}

/* ---- Refusals ---- */

enum { KINDS_MAX = 1024, SHAPES_MAX = 16, TENSOR_WORDS = 18, HEAD_WORDS = 4, TAIL_WORDS = 1 + PARAMETER_BYTES / 4 };

static struct table kinds; /* of questions: device, op and types; their ids count shapes */
static struct table shapes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Is it the first question of its kind with this shape? */
static bool is_new(uint64_t kind, uint64_t shape) {
    struct entry * of_kind = table_at(&kinds, kind);
    if (!of_kind || of_kind->id >= SHAPES_MAX) return false;
    if (of_kind->id == 0 && kinds.count > KINDS_MAX) {
        of_kind->id = SHAPES_MAX;
        full_count(FULL_REFUSALS);
        return false;
    }
    struct entry * of_shape = table_at(&shapes, shape);
    if (!of_shape || of_shape->id) return false;
    of_shape->id = 1;
    of_kind->id++;
    return true;
}

static void add_tensor(uint32_t * words, const void * tensor) {
    const struct tensor_layout * layout = &recording.layout;
    words[0] = registry_name((const char *) tensor + layout->name);
    words[1] = recording.api.type_name ? registry_name(recording.api.type_name(layout_i32(tensor, layout->type))) : 0;
    memcpy(words + 2, (const char *) tensor + layout->ne, 8 * TENSOR_DIMS);
    memcpy(words + 2 + 2 * TENSOR_DIMS, (const char *) tensor + layout->nb, 8 * TENSOR_DIMS);
}

/* The node, then its sources at their places up to the last one: of attention without a mask, the fourth is NULL, and its sinks are the fifth. */
static uint32_t tensors_of(const void * node, const void * tensors[1 + TENSOR_SOURCES_MAX]) {
    uint32_t count = 1;
    tensors[0] = node;
    for (uint32_t i = 1; i <= (uint32_t) recording.layout.source_count; i++) {
        const void * source = layout_pointer(node, recording.layout.sources + 8 * (int) (i - 1));
        tensors[i] = source == node ? NULL : source;
        if (tensors[i]) count = i + 1;
    }
    return count;
}

void placement_refused_node(uint32_t question, void * device, const void * node) {
    const struct tensor_layout * layout = &recording.layout;
    if (!is_asked_for(device) || layout->name < 0 || layout->nb < 0 || layout->sources < 0) return;
    const void * tensors[1 + TENSOR_SOURCES_MAX];
    const uint32_t count = tensors_of(node, tensors);
    uint64_t kind = mix(mix(21 + question, (uint64_t) (uintptr_t) device), (uint64_t) (uint32_t) layout_i32(node, layout->op));
    for (uint32_t i = 0; i < count; i++) kind = mix(kind, tensors[i] ? (uint64_t) (uint32_t) layout_i32(tensors[i], layout->type) + 1 : 0);
    uint64_t shape = kind;
    for (uint32_t i = 0; i < count; i++) {
        if (!tensors[i]) continue;
        shape = hash_bytes(shape, (const char *) tensors[i] + layout->ne, 8 * TENSOR_DIMS);
        shape = hash_bytes(shape, (const char *) tensors[i] + layout->nb, 8 * TENSOR_DIMS);
    }
    HOLD(&lock);
    if (!is_new(kind, shape)) return;
    uint32_t words[HEAD_WORDS + (1 + TENSOR_SOURCES_MAX) * TENSOR_WORDS + TAIL_WORDS] = {
        question, registry_name(recording.api.dev_name(device)), registry_name(registry_op_name(node)), count,
    };
    for (uint32_t i = 0; i < count; i++) if (tensors[i]) add_tensor(words + HEAD_WORDS + i * TENSOR_WORDS, tensors[i]);
    uint32_t used = HEAD_WORDS + count * TENSOR_WORDS;
    const int parameters = layout_parameters(layout);
    if (parameters >= 0) {
        words[used] = (uint32_t) layout_i32(node, layout->op);
        memcpy(words + used + 1, (const char *) node + parameters, PARAMETER_BYTES);
        used += TAIL_WORDS;
    }
    ggtrace_define_numbers(recording.log, GGTRACE_REFUSAL, words, used);
}

void placement_refused_memory(void * device, void * buffer_type) {
    if (!is_asked_for(device) || !recording.api.buft_name || !buffer_type) return;
    const uint64_t kind = mix(mix(20, (uint64_t) (uintptr_t) device), (uint64_t) (uintptr_t) buffer_type);
    HOLD(&lock);
    if (!is_new(kind, kind)) return;
    const uint32_t words[HEAD_WORDS] = {
        GGTRACE_SUPPORTS_MEMORY, registry_name(recording.api.dev_name(device)), registry_name(recording.api.buft_name(buffer_type)), 0,
    };
    ggtrace_define_numbers(recording.log, GGTRACE_REFUSAL, words, HEAD_WORDS);
}
