/*
 * Finds the offsets of the fields of struct ggml_tensor in the running ggml. The layout differs between versions, and the
 * recorder is not compiled against any of them. It builds probe tensors with ggml's own API, and recognises fields by the
 * values that they must contain.
 */
#pragma once

#include "common/system.h"

enum { TENSOR_DIMS = 4, TENSOR_SOURCES_MAX = 10, TENSOR_BYTES_MAX = 1024 };

/* Byte offsets in struct ggml_tensor; -1 = not found. */
struct tensor_layout {
    int size;
    int type;
    int buffer;
    int ne;
    int nb;
    int op;
    int flags;
    int sources;
    int source_count;
    int view_source;
    int view_offset;
    int data;
    int name;
    int name_bytes; /* GGML_MAX_NAME: 64, unless this ggml was built with another one */
    /* The bit of `flags` that means "to be computed"; 0 if this ggml has none. */
    int32_t compute_flag;
};

/* ggml_init_params has had these three fields since 2023; it is passed by value, so it is declared here. */
struct init_params {
    size_t mem_size;
    void * mem_buffer;
    bool no_alloc;
};

/* Exported functions of libggml that the recorder calls. Any of them may be NULL: they differ between versions. */
#define GGML_FUNCTIONS(F)                                                                   \
    F(const char *, op_name, (int op), "ggml_op_name")                                      \
    F(const char *, op_desc, (const void * tensor), "ggml_op_desc")                         \
    F(const char *, type_name, (int type), "ggml_type_name")                                \
    F(const char *, get_name, (const void * tensor), "ggml_get_name")                       \
    F(size_t, nbytes, (const void * tensor), "ggml_nbytes")                                 \
    F(void *, get_data, (const void * tensor), "ggml_get_data")                             \
    F(int, graph_n_nodes, (void * graph), "ggml_graph_n_nodes")                             \
    F(void *, graph_node, (void * graph, int i), "ggml_graph_node")                         \
    F(void *, graph_get_tensor, (void * graph, const char * name), "ggml_graph_get_tensor") \
    F(const char *, backend_name, (void * backend), "ggml_backend_name")                    \
    F(const char *, buffer_name, (void * buffer), "ggml_backend_buffer_name")               \
    F(void *, buffer_get_base, (void * buffer), "ggml_backend_buffer_get_base")             \
    F(size_t, buffer_get_size, (void * buffer), "ggml_backend_buffer_get_size")             \
    F(int, buffer_get_usage, (void * buffer), "ggml_backend_buffer_get_usage")              \
    F(bool, buffer_is_host, (void * buffer), "ggml_backend_buffer_is_host")                 \
    F(bool, buffer_is_multi, (void * buffer), "ggml_backend_buffer_is_multi_buffer")        \
    F(const char *, dev_name, (void * device), "ggml_backend_dev_name")                     \
    F(const char *, dev_description, (void * device), "ggml_backend_dev_description")       \
    F(const char *, buft_name, (void * buffer_type), "ggml_backend_buft_name")              \
    F(const char *, version, (void), "ggml_version")
#define LAYOUT_POINTER(result, name, parameters, exported) result (*name) parameters;
struct ggml_api {
    GGML_FUNCTIONS(LAYOUT_POINTER)
};

/* Fills `api` from a library handle. */
void ggml_api_load(struct ggml_api * api, void * library);

/*
 * Finds the layout. Returns NULL on success, else a description of what was not found; the fields that were found are set.
 * Takes tens of microseconds and calls ggml_init, so it must not be called from a constructor.
 */
const char * tensor_layout_find(struct tensor_layout * layout, const struct ggml_api * api, void * library);

enum { PARAMETER_BYTES = 64 };

/* Offset of the parameters of the op, which are between its number and the flags; -1: they have another size, or were not found. */
static inline int layout_parameters(const struct tensor_layout * layout) {
    return layout->op >= 0 && layout->flags == layout->op + 4 + PARAMETER_BYTES ? layout->op + 4 : -1;
}

static inline int32_t layout_i32(const void * tensor, int offset) {
    return *(const int32_t *) ((const char *) tensor + offset);
}

static inline int64_t layout_i64(const void * tensor, int offset) {
    return *(const int64_t *) ((const char *) tensor + offset);
}

static inline void * layout_pointer(const void * tensor, int offset) {
    return *(void * const *) ((const char *) tensor + offset);
}
