/* The functions of ggml that its measurements use, and what these share: contexts, threads, times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of ggml.h; the same in all versions. */
enum { F32 = 0, F16 = 1, I32 = 26, TYPES_MAX = 64 };

struct ggml_memory { /* ggml_init_params */
    size_t size;
    void * buffer;
    bool no_alloc;
};

#define FUNCTIONS(F)                                                                                                         \
    F(void *, init, (struct ggml_memory), "ggml_init")                                                                       \
    F(void, free, (void * context), "ggml_free")                                                                             \
    F(size_t, tensor_overhead, (void), "ggml_tensor_overhead")                                                               \
    F(size_t, graph_overhead, (size_t nodes, bool grads), "ggml_graph_overhead_custom")                                      \
    F(const char *, type_name, (int type), "ggml_type_name")                                                                 \
    F(size_t, row_size, (int type, int64_t columns), "ggml_row_size")                                                        \
    F(size_t, nbytes, (const void * tensor), "ggml_nbytes")                                                                  \
    F(bool, requires_imatrix, (int type), "ggml_quantize_requires_imatrix")                                                  \
    F(size_t, quantize, (int type, const float * from, void * to, int64_t start, int64_t rows, int64_t columns, const float * imatrix), \
      "ggml_quantize_chunk")                                                                                                 \
    F(void *, tensor_2d, (void * context, int type, int64_t columns, int64_t rows), "ggml_new_tensor_2d")                    \
    F(void *, tensor_3d, (void * context, int type, int64_t a, int64_t b, int64_t c), "ggml_new_tensor_3d")                  \
    F(void *, permute, (void * context, void * a, int axis0, int axis1, int axis2, int axis3), "ggml_permute")               \
    F(void *, mul_mat, (void * context, void * a, void * b), "ggml_mul_mat")                                                 \
    F(void *, mul_mat_id, (void * context, void * matrices, void * b, void * ids), "ggml_mul_mat_id")                        \
    F(void *, add, (void * context, void * a, void * b), "ggml_add")                                                         \
    F(void *, graph, (void * context, size_t nodes, bool grads), "ggml_new_graph_custom")                                    \
    F(void, expand, (void * graph, void * tensor), "ggml_build_forward_expand")                                              \
    F(void, pool_params, (void * params, int threads), "ggml_threadpool_params_init")                                        \
    F(void *, alloc, (void * context, void * buffer_type), "ggml_backend_alloc_ctx_tensors_from_buft")                       \
    F(void *, buffer_at, (void * memory, size_t size), "ggml_backend_cpu_buffer_from_ptr")                                   \
    F(int, alloc_at, (void * buffer, void * tensor, void * address), "ggml_backend_tensor_alloc")                            \
    F(void, free_buffer, (void * buffer), "ggml_backend_buffer_free")                                                        \
    F(void, set, (void * tensor, const void * data, size_t offset, size_t size), "ggml_backend_tensor_set")                  \
    F(const char *, buffer_type_name, (void * buffer_type), "ggml_backend_buft_name")                                        \
    F(int, compute, (void * backend, void * graph), "ggml_backend_graph_compute")                                            \
    F(void *, device_by_type, (int type), "ggml_backend_dev_by_type")                                                        \
    F(void *, device_init, (void * device, const char * params), "ggml_backend_dev_init")                                    \
    F(void *, device_registry, (void * device), "ggml_backend_dev_backend_reg")                                              \
    F(void *, device_buffer_type, (void * device), "ggml_backend_dev_buffer_type")                                           \
    F(bool, supports_op, (void * device, const void * op), "ggml_backend_dev_supports_op")                                   \
    F(void *, proc_address, (void * registry, const char * name), "ggml_backend_reg_get_proc_address")                       \
    F(void, log_set, (void (*log)(int level, const char * text, void * data), void * data), "ggml_log_set")                  \
    F(void, load_from, (const char * folder), "ggml_backend_load_all_from_path")                                             \
    F(void, load_all, (void), "ggml_backend_load_all")
#define POINTER(result, name, parameters, exported) result (*name) parameters;
struct ggml_functions {
    FUNCTIONS(POINTER)
};
extern struct ggml_functions ggml;

/* The CPU, and its other buffer types, such as CPU_REPACK; NULL where this version has none. */
extern void * cpu_device;
extern void ** (*extra_buffer_types)(void * device);

struct times {
    double median, best; /* ns of a node */
    int repeats;
};

/* Ends the program. */
void fail(const char * what, const char * detail);
/* Zeros; ends the program where there is no memory. */
void * allocate(size_t count, size_t size);
/* Loads the libraries of a folder. */
void load_libraries(const char * folder);
/* One of their functions; NULL: this version has none of this name. */
void * library_function(const char * name);
/* A context for so many tensors and a graph of them. */
void * new_context(size_t tensors);
/* Gives all tensors of a context memory of this type; returns the buffer. */
void * place_tensors(void * context, void * buffer_type, const char * what);
/* A file of zeros that is mapped, as a model's is; NULL: none can be. */
char * mapped_file(size_t bytes);
/* Where the next tensor begins: memory is divided into such pieces. */
size_t aligned(size_t bytes);
/* Gives tensors of one size memory from here on, each its own; returns the buffer. */
void * place_at(char * memory, void ** tensors, int count);
/* Memory of the results of a graph, all of one size: as in a model's graph, few places by turns. Before place_tensors, which leaves them. */
struct results {
    char * memory;
    void * buffer;
};
struct results place_results(void ** tensors, int count);
void free_results(struct results results);
/* Sets values as they are between operators of a model. */
void fill_tensor(void * tensor);
/* So many threads compute from now on; returns their pool, for end_threads. */
void * start_threads(int threads);
void end_threads(void * pool);
/* What a graph takes, in ns. */
double time_of(void * graph);
/* What a node of a graph of so many takes, by repeated graphs. */
struct times times_of(void * graph, int nodes);

/* Flash attention: false if the line is no such job. */
bool choose_attention(const char * line);
bool measure_attention(const char * line);
