#include "recorder/layout.h"

#include "recorder/libraries.h"
#include "recorder/program.h"

/* Functions that only the search needs. */
#define PROBE_FUNCTIONS(F)                                                                                                         \
    F(void *, init, (struct init_params params), "ggml_init")                                                                      \
    F(void, free, (void * context), "ggml_free")                                                                                   \
    F(size_t, tensor_overhead, (void), "ggml_tensor_overhead")                                                                     \
    F(size_t, graph_overhead, (void), "ggml_graph_overhead")                                                                       \
    F(void *, new_tensor_4d, (void * context, int type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3), "ggml_new_tensor_4d") \
    F(void *, mul, (void * context, void * a, void * b), "ggml_mul")                                                               \
    F(void *, add, (void * context, void * a, void * b), "ggml_add")                                                               \
    F(void *, view_1d, (void * context, void * a, int64_t ne0, size_t offset), "ggml_view_1d")                                     \
    F(void *, new_graph, (void * context), "ggml_new_graph")                                                                       \
    F(void, build_forward_expand, (void * graph, void * tensor), "ggml_build_forward_expand")                                      \
    F(void *, cpu_buffer_type, (void), "ggml_backend_cpu_buffer_type")                                                             \
    F(void *, alloc_ctx_tensors, (void * context, void * buffer_type), "ggml_backend_alloc_ctx_tensors_from_buft")                 \
    F(void, buffer_free, (void * buffer), "ggml_backend_buffer_free")                                                              \
    F(void *, set_name, (void * tensor, const char * name), "ggml_set_name")
struct probe_api {
    PROBE_FUNCTIONS(LAYOUT_POINTER)
};

enum { PROBE_NE0 = 96, PROBE_NE1 = 5, PROBE_NE2 = 7, PROBE_NE3 = 11, PROBE_VIEW_OFFSET = 128, F32 = 0, F16 = 1, NAME_BYTES = 64 };

static void * symbol(void * library, const char * name) {
    void * found = library_function(library, name);
    return found ? found : dlsym(RTLD_DEFAULT, name);
}

#define LOAD(result, name, parameters, exported) *(void **) &api->name = symbol(library, exported);

void ggml_api_load(struct ggml_api * api, void * library) {
    GGML_FUNCTIONS(LOAD)
}

static bool probe_api_load(struct probe_api * api, void * library) {
    PROBE_FUNCTIONS(LOAD)
    return api->init && api->free && api->tensor_overhead && api->graph_overhead && api->new_tensor_4d && api->mul &&
           api->add && api->view_1d;
}

/* First offset (a multiple of `step`, from `start`) at which `size` bytes equal `value`, or -1. */
static int find_bytes(const void * tensor, int end, int start, int step, const void * value, size_t size) {
    for (int at = start; at + (int) size <= end; at += step) {
        if (memcmp((const char *) tensor + at, value, size) == 0) return at;
    }
    return -1;
}

static int find_pointer(const void * tensor, int end, int start, const void * pointer) {
    return find_bytes(tensor, end, start, (int) sizeof(void *), &pointer, sizeof(pointer));
}

/* Offset of an int32 that is `x` in `a` and `y` in `b`. */
static int find_i32_pair(const void * a, int32_t x, const void * b, int32_t y, int end) {
    for (int at = 0; at + 4 <= end; at += 4) {
        if (layout_i32(a, at) == x && layout_i32(b, at) == y) return at;
    }
    return -1;
}

/* The field of the op: a number that ggml names MUL in one tensor and ADD in the other. */
static int find_op(const void * mul, const void * add, int end, const struct ggml_api * api) {
    for (int at = 0; at + 4 <= end; at += 4) {
        int32_t a = layout_i32(mul, at);
        int32_t b = layout_i32(add, at);
        if (a <= 0 || b <= 0 || a > 64 || b > 64) continue; /* ggml_op_name does not check its argument */
        if (strcmp(api->op_name(a), "MUL") == 0 && strcmp(api->op_name(b), "ADD") == 0) return at;
    }
    return -1;
}

static void find_flags(struct tensor_layout * layout, const struct probe_api * api, void * context, void * result) {
    if (!api->new_graph || !api->build_forward_expand) return;
    char before[TENSOR_BYTES_MAX];
    memcpy(before, result, (size_t) layout->size);
    void * graph = api->new_graph(context);
    if (!graph) return;
    api->build_forward_expand(graph, result);
    for (int at = layout->op + 4; at < layout->sources; at += 4) {
        int32_t changed = layout_i32(result, at) ^ layout_i32(before, at);
        if (changed == 0 || (changed & (changed - 1)) != 0) continue;
        layout->flags = at;
        layout->compute_flag = changed;
        return;
    }
}

static void find_buffer(struct tensor_layout * layout, const struct probe_api * api, struct init_params params) {
    if (!api->cpu_buffer_type || !api->alloc_ctx_tensors || !api->buffer_free) return;
    void * context = api->init(params);
    if (!context) return;
    void * tensor = api->new_tensor_4d(context, F32, PROBE_NE0, 1, 1, 1);
    void * buffer = api->alloc_ctx_tensors(context, api->cpu_buffer_type());
    if (buffer) {
        layout->buffer = find_pointer(tensor, layout->size, 0, buffer);
        api->buffer_free(buffer);
    }
    api->free(context);
}

/* Finds the fields that follow from two probes, their product, their sum and a view. */
static void find_fields(struct tensor_layout * layout, const struct ggml_api * api, const struct probe_api * probe,
                        void * context) {
    void * a = probe->new_tensor_4d(context, F32, PROBE_NE0, PROBE_NE1, PROBE_NE2, PROBE_NE3);
    void * b = probe->new_tensor_4d(context, F32, PROBE_NE0, PROBE_NE1, PROBE_NE2, PROBE_NE3);
    void * half = probe->new_tensor_4d(context, F16, PROBE_NE0, PROBE_NE1, PROBE_NE2, PROBE_NE3);
    if (!a || !b || !half) return;
    const int end = layout->size;
    const int64_t ne[] = {PROBE_NE0, PROBE_NE1, PROBE_NE2, PROBE_NE3};
    const int64_t nb[] = {4, 4 * PROBE_NE0, 4 * PROBE_NE0 * PROBE_NE1, 4 * PROBE_NE0 * PROBE_NE1 * PROBE_NE2};
    layout->ne = find_bytes(a, end, 0, 8, ne, sizeof(ne));
    layout->nb = find_bytes(a, end, 0, 8, nb, sizeof(nb));
    layout->type = find_i32_pair(a, F32, half, F16, end);
    layout->name = (int) (api->get_name(a) - (const char *) a);
    void * product = probe->mul(context, a, b);
    void * sum = probe->add(context, b, a);
    void * view = probe->view_1d(context, a, PROBE_NE0, PROBE_VIEW_OFFSET);
    if (!product || !sum || !view) return;
    layout->op = find_op(product, sum, end, api);
    layout->sources = find_pointer(product, end, 0, a);
    if (layout->sources >= 0 && layout_pointer(product, layout->sources + 8) != b) layout->sources = -1;
    /* The source of a view is both in `src` and in `view_src`, which follows the array. */
    if (layout->sources >= 0) layout->view_source = find_pointer(view, end, layout->sources + 8, a);
    if (layout->view_source >= 0) {
        const int count = (layout->view_source - layout->sources) / 8;
        layout->source_count = count < TENSOR_SOURCES_MAX ? count : TENSOR_SOURCES_MAX;
        const int64_t offset = PROBE_VIEW_OFFSET;
        layout->view_offset = find_bytes(view, end, layout->view_source + 8, 8, &offset, sizeof(offset));
    }
    if (layout->op >= 0 && layout->sources > layout->op) find_flags(layout, probe, context, product);
}

/* Finds how long names can be: ggml cuts what is longer. */
static int find_name_bytes(int most, const struct ggml_api * api, const struct probe_api * probe, void * context) {
    char name[TENSOR_BYTES_MAX];
    void * tensor = probe->set_name ? probe->new_tensor_4d(context, F32, 1, 1, 1, 1) : NULL;
    if (!tensor) return NAME_BYTES;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    probe->set_name(tensor, name);
    const size_t length = strnlen(api->get_name(tensor), sizeof(name));
    return length < (size_t) most ? (int) length + 1 : NAME_BYTES;
}

/* Finds the field of the data: the one where a stored pointer makes ggml_get_data(t) return that pointer. */
static void find_data(struct tensor_layout * layout, const struct ggml_api * api, const struct probe_api * probe,
                      void * context) {
    if (!api->get_data || layout->view_offset < 0) return;
    char * tensor = probe->new_tensor_4d(context, F32, 1, 1, 1, 1);
    if (!tensor) return;
    void * mark = &layout->data;
    for (int at = layout->view_offset + 8; at + 8 <= layout->size; at += 8) {
        void ** field = (void **) (tensor + at);
        void * kept = *field;
        *field = mark;
        const bool is_it = api->get_data(tensor) == mark;
        *field = kept;
        if (is_it) {
            layout->data = at;
            return;
        }
    }
}

static const char NOT_IN_PROGRAM[] = "the program lacks functions of ggml: the compiler made them a part of their callers (-flto), or the linker left them out";

const char * tensor_layout_find(struct tensor_layout * layout, const struct ggml_api * api, void * library) {
    memset(layout, 0xff, sizeof(*layout)); /* sets every offset to -1 */
    layout->compute_flag = 0;
    struct probe_api probe = {0};
    if (!api->op_name || !api->get_name || !probe_api_load(&probe, library)) return program_has_ggml() ? NOT_IN_PROGRAM : "functions of libggml are missing";
    struct init_params params = {.mem_size = 16 * probe.tensor_overhead() + 2 * probe.graph_overhead(),
                                 .mem_buffer = NULL,
                                 .no_alloc = true};
    void * context = probe.init(params);
    if (!context) return "ggml_init failed";
    /* Tensors of a no_alloc context are adjacent: the distance between two is the size of one and of a header. */
    const size_t overhead = probe.tensor_overhead();
    layout->size = overhead < TENSOR_BYTES_MAX ? (int) overhead & ~7 : TENSOR_BYTES_MAX;
    layout->size -= 32; /* ggml_object, the header (ggml.c): 32 bytes since 2023 */
    find_fields(layout, api, &probe, context);
    find_data(layout, api, &probe, context);
    layout->name_bytes = find_name_bytes(layout->size - layout->name, api, &probe, context);
    probe.free(context);
    find_buffer(layout, &probe, params);
    if (layout->ne < 0 || layout->nb < 0 || layout->type < 0) return "the shape's fields were not found";
    if (layout->op < 0 || layout->sources < 0 || layout->view_source < 0) return "the op's or sources' fields were not found";
    if (layout->data < 0 || layout->name < 0) return "the data's or name's field was not found";
    return NULL;
}
