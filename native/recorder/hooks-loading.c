/* Interposed functions that load a model, its adapters and its images' encoder, and create contexts. The log begins with them. */
#include "recorder/hook.h"
#include "recorder/loading.h"
#include "recorder/recorder.h"
#include "recorder/runs.h"

/* Parameters that are passed by value, and whose size differs between versions: as many bytes as any version has, as any_batch. */
struct any_parameters {
    char bytes[256];
};

#define LOAD_MODEL(name, path, read, ...)                                             \
    HOOK(void *, name, read, struct any_parameters parameters) {                      \
        REAL(name);                                                                   \
        recorder_ready(CALLER);                                                       \
        functions_note_seen(SEEN_FUNCTIONS);                                          \
        STAGE(GGTRACE_LOAD_MODEL, path);                                              \
        void * model = real(__VA_ARGS__, parameters);                                 \
        stage.function.context = CONTEXT(model);                                      \
        return model;                                                                 \
    }
LOAD_MODEL(llama_model_load_from_file, path, const char * path, path)
LOAD_MODEL(llama_load_model_from_file, path, const char * path, path) /* until 2025 */
LOAD_MODEL(llama_model_load_from_splits, count ? paths[0] : NULL, LIST(const char ** paths, size_t count), paths, count)

/* The encoder of images or sound. */
HOOK_BEFORE(void *, mtmd_init_from_file, recorder_ready(CALLER); STAGE(GGTRACE_LOAD_MODEL, path),
    LIST(const char * path, const void * model, struct any_parameters parameters), path, model, parameters)

struct gguf_parameters {
    uint64_t no_alloc; /* a bool in the first byte */
    void ** context;
};

HOOK_BEFORE(void *, gguf_init_from_file, STAGE(GGTRACE_READ_HEADER, path),
    LIST(const char * path, struct gguf_parameters parameters), path, parameters)

/* void llama_model_loader::init_mappings(bool, llama_mlocks *) */
HOOK_BEFORE_VOID(_ZN18llama_model_loader13init_mappingsEbPSt6vectorISt10unique_ptrI11llama_mlockSt14default_deleteIS2_EESaIS5_EE,
    STAGE(GGTRACE_MAP, NULL), LIST(void * loader, bool prefetch, void * locks), loader, prefetch, locks)

HOOK(void *, ggml_backend_dev_buffer_from_host_ptr, void * device, void * data, size_t size, size_t tensor_max) {
    REAL(ggml_backend_dev_buffer_from_host_ptr);
    struct ggtrace_function function;
    functions_begin(&function, GGTRACE_MAP);
    void * buffer = real(device, data, size, tensor_max);
    function.value = size;
    functions_end_long(&function, NULL); /* the CPU's memory is mapped already: most calls take no time */
    return buffer;
}

/* bool llama_model_loader::load_all_data(ggml_context *, llama_buf_map &, llama_mlocks *, llama_progress_callback, void *) */
#define LOAD_ALL_DATA(name)                                                                                                   \
    HOOK(bool, name, void * loader, void * context, void * buffers, void * locks, void * progress, void * user) {             \
        REAL(name);                                                                                                           \
        STAGE(GGTRACE_COPY_WEIGHTS, NULL);                                                                                    \
        const bool is_done = real(loader, context, buffers, locks, progress, user);                                           \
        const uint64_t bytes = loading_copied(&stage);                                                                        \
        if (bytes) stage.function.value = bytes;                                                                              \
        return is_done;                                                                                                       \
    }
/* A llama_buf_map is an unordered_map<uint32_t, ggml_backend_buffer_t>; since 0.7.0 a vector of them. */
#define OF_MAP _ZN18llama_model_loader13load_all_dataEP12ggml_contextRSt13unordered_mapIjP19ggml_backend_bufferSt4hashIjESt8equal_toIjESaISt4pairIKjS4_EEEPSt6vectorISt10unique_ptrI11llama_mlockSt14default_deleteISH_EESaISK_EEPFbfPvESO_
#define OF_VECTOR _ZN18llama_model_loader13load_all_dataEP12ggml_contextRSt6vectorIP19ggml_backend_bufferSaIS4_EEPS2_ISt10unique_ptrI11llama_mlockSt14default_deleteIS9_EESaISC_EEPFbfPvESG_
LOAD_ALL_DATA(OF_MAP)
LOAD_ALL_DATA(OF_VECTOR)

#define CREATE_CONTEXT(name)                                                          \
    HOOK(void *, name, void * model, struct any_parameters parameters) {              \
        REAL(name);                                                                   \
        recorder_ready(CALLER);                                                       \
        functions_note_seen(SEEN_FUNCTIONS);                                          \
        struct stage stage;                                                           \
        loading_begin(&stage, HERE, GGTRACE_CREATE_CONTEXT, NULL);                    \
        void * context = real(model, parameters);                                     \
        stage.function.context = CONTEXT(context);                                    \
        loading_end(&stage);                                                          \
        runs_prepare(recording_level());                                              \
        return context;                                                               \
    }
CREATE_CONTEXT(llama_init_from_model)
CREATE_CONTEXT(llama_new_context_with_model) /* until 2025 */

HOOK(void *, llama_adapter_lora_init, void * model, const char * path) {
    REAL(llama_adapter_lora_init);
    STAGE(GGTRACE_LOAD_LORA, path);
    void * adapter = real(model, path);
    stage.function.context = CONTEXT(model);
    stage.function.value = loading_copied(&stage);
    return adapter;
}
