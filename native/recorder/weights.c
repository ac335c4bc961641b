#include "recorder/weights.h"

#include "common/hold.h"
#include "common/table.h"
#include "log/ggtrace-nvtx.h"
#include "recorder/full.h"
#include "recorder/recording.h"
#include "recorder/registry.h"

enum { QUESTIONS_MAX = 1 << 14, WORDS = 7 + 2 * TENSOR_DIMS };

static struct table asked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * The weight that a node reads, if the question is about its memory: for the question, it has an empty buffer of that type, and no data. The
 * node has no name. (A model that is only measured has weights in such buffers, too, but the nodes of its graphs have names.)
 */
static const void * find_weight(const void * node) {
    const struct tensor_layout * layout = &recording.layout;
    if (layout->name < 0 || layout->buffer < 0 || layout->data < 0 || layout->sources < 0) return NULL;
    if (*((const char *) node + layout->name)) return NULL;
    for (int i = 0; i < layout->source_count; i++) {
        const void * source = layout_pointer(node, layout->sources + 8 * i);
        if (source && source != node && layout_pointer(source, layout->buffer) && !layout_pointer(source, layout->data)) return source;
    }
    return NULL;
}

void weights_asked(void * device, const void * node, bool answer) {
    const struct tensor_layout * layout = &recording.layout;
    const struct ggml_api * api = &recording.api;
    const void * weight = find_weight(node);
    if (!weight || !recording.log || !api->dev_name || !api->buffer_name || !api->type_name) return;
    const char * memory = api->buffer_name(layout_pointer(weight, layout->buffer)), * name = (const char *) weight + layout->name;
    if (!memory || !*name) return;
    const int32_t op = layout_i32(node, layout->op), type = layout_i32(weight, layout->type);
    uint64_t key = mix(mix(31 + (uint64_t) answer, (uint64_t) (uintptr_t) device), (uint64_t) (uint32_t) op << 32 | (uint32_t) type);
    key = hash_bytes(hash_bytes(key, memory, strlen(memory)), name, strnlen(name, (size_t) layout->name_bytes));
    key = hash_bytes(key, (const char *) weight + layout->ne, 8 * TENSOR_DIMS);
    HOLD(&lock);
    if (asked.count >= QUESTIONS_MAX) {
        full_count(FULL_WEIGHTS);
        return;
    }
    struct entry * entry = table_at(&asked, key);
    if (!entry || entry->id) return;
    entry->id = 1;
    uint32_t words[WORDS] = {
        answer, registry_name(api->dev_name(device)), registry_name(memory), registry_name(registry_op_name(node)), (uint32_t) op,
        registry_name(name), registry_name(api->type_name(type)),
    };
    memcpy(words + WORDS - 2 * TENSOR_DIMS, (const char *) weight + layout->ne, 8 * TENSOR_DIMS);
    ggtrace_define_numbers(recording.log, GGTRACE_WEIGHT, words, WORDS);
}
