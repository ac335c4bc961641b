#include "common/system.h"

#include <stdio.h>

#include "common/environment.h"
#include "recorder/layout.h"

/*
 * Asks a backend whether it can compute operators that differ in one property from one that it refused. `ggml2perfetto record` does so after
 * the recorded program has ended, in a process of its own: backends end the program at odd shapes, and some initialise a device when they are
 * asked. That process is any program with this library preloaded; it does not come to its own main function.
 *
 * ENV_ASK is the path of a file with lines: ggml's library, the backend's library, the name of the device, then a line for each
 * operator: number of the op, 16 parameters, number of tensors (the node, then its sources), and for each the name of its type, ne[4], nb[4];
 * "-" and zeros in the place of a source that the operator does not have.
 * A type may be followed by `@` and a type of memory of the CPU that repacks weights: then the tensor is asked about in such memory.
 * Answers go to standard output, a character each: 1 yes, 0 no, ? not asked. They are written at once: what ended the process is the next one.
 */

enum { TYPES_MAX = 64, ARENA_TENSORS = 4 * (1 + TENSOR_SOURCES_MAX) };

static struct ggml_api api;
static void ** repacking; /* types of memory of the device, NULL at the end */
static struct tensor_layout layout;
static void * ggml;

static void * find(const char * name) {
    return dlsym(ggml, name);
}

/* The backend's devices: libraries that are loaded at run time have one name for this function, others one for each backend. */
static void * find_registry(void * backend) {
    static const char * const names[] = {
        "ggml_backend_init", "ggml_backend_cuda_reg", "ggml_backend_vk_reg", "ggml_backend_sycl_reg", "ggml_backend_opencl_reg", "ggml_backend_cann_reg", "ggml_backend_blas_reg",
        "ggml_backend_cpu_reg",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        void * (*registry)(void);
        *(void **) &registry = dlsym(backend, names[i]);
        if (registry) return registry();
    }
    return NULL;
}

static void find_repacking(void * registry, void * device) {
    void * (*find_function)(void *, const char *);
    *(void **) &find_function = find("ggml_backend_reg_get_proc_address");
    void ** (*types)(void *);
    *(void **) &types = find_function ? find_function(registry, "ggml_backend_dev_get_extra_bufts") : NULL;
    if (types && api.buft_name) repacking = types(device);
}

static void * find_device(void * backend, const char * name) {
    size_t (*count)(void *);
    void * (*get)(void *, size_t);
    *(void **) &count = find("ggml_backend_reg_dev_count");
    *(void **) &get = find("ggml_backend_reg_dev_get");
    void * registry = count && get && api.dev_name ? find_registry(backend) : NULL;
    for (size_t i = 0; registry && i < count(registry); i++) {
        void * device = get(registry, i);
        const char * found = api.dev_name(device);
        if (!found || strcmp(found, name) != 0) continue;
        find_repacking(registry, device);
        return device;
    }
    return NULL;
}

static int type_named(const char * name) {
    for (int type = 0; type < TYPES_MAX; type++) {
        const char * found = api.type_name(type);
        if (found && strcmp(found, name) == 0) return type;
    }
    return -1;
}

static int64_t next_number(char ** kept) {
    const char * word = strtok_r(NULL, " ", kept);
    return word ? strtoll(word, NULL, 10) : 0;
}

/* An empty buffer of memory with this name, as llama.cpp makes one to ask about a weight. */
static void * buffer_of(const char * memory) {
    void * (*allocate)(void *, size_t);
    *(void **) &allocate = find("ggml_backend_buft_alloc_buffer");
    for (void ** type = repacking; allocate && type && *type; type++)
        if (strcmp(api.buft_name(*type), memory) == 0) return allocate(*type, 0);
    return NULL;
}

/* Is it read? `*tensor` is NULL where the operator has none in this place. */
static bool next_tensor(void * context, void * (*new_tensor)(void *, int, int64_t, int64_t, int64_t, int64_t), char ** kept, char ** tensor) {
    char * name = strtok_r(NULL, " ", kept), * memory = name ? strchr(name, '@') : NULL;
    const bool is_absent = name && strcmp(name, "-") == 0;
    if (memory) *memory++ = 0;
    void * buffer = memory && layout.buffer >= 0 ? buffer_of(memory) : NULL;
    const int type = name && !is_absent && (!memory || buffer) ? type_named(name) : -1;
    int64_t ne[TENSOR_DIMS], nb[TENSOR_DIMS];
    for (int i = 0; i < TENSOR_DIMS; i++) ne[i] = next_number(kept);
    for (int i = 0; i < TENSOR_DIMS; i++) nb[i] = next_number(kept);
    *tensor = type < 0 ? NULL : new_tensor(context, type, ne[0], ne[1], ne[2], ne[3]);
    if (*tensor) memcpy(*tensor + layout.nb, nb, sizeof(nb));
    if (*tensor && buffer) memcpy(*tensor + layout.buffer, &buffer, sizeof(buffer));
    return *tensor || is_absent;
}

static char ask(char * line, void * device, bool (*supports)(void *, const void *)) {
    struct init_params params = {.mem_size = 0, .mem_buffer = NULL, .no_alloc = true};
    void * (*init)(struct init_params), * (*new_tensor)(void *, int, int64_t, int64_t, int64_t, int64_t);
    void (*release)(void *);
    size_t (*overhead)(void);
    *(void **) &init = find("ggml_init");
    *(void **) &new_tensor = find("ggml_new_tensor_4d");
    *(void **) &release = find("ggml_free");
    *(void **) &overhead = find("ggml_tensor_overhead");
    if (!init || !new_tensor || !release || !overhead) return '?';
    params.mem_size = ARENA_TENSORS * overhead();
    void * context = init(params);
    char * kept, * word = strtok_r(line, " ", &kept), * node = NULL, answer = '?';
    const int32_t op = word ? (int32_t) strtol(word, NULL, 10) : 0;
    int32_t parameters[PARAMETER_BYTES / 4];
    for (int i = 0; i < PARAMETER_BYTES / 4; i++) parameters[i] = (int32_t) next_number(&kept);
    const int64_t count = next_number(&kept);
    bool is_whole = context && count > 0 && count <= 1 + layout.source_count;
    for (int64_t i = 0; is_whole && i < count; i++) {
        char * tensor;
        is_whole = next_tensor(context, new_tensor, &kept, &tensor) && (i > 0 || tensor);
        if (i == 0) node = tensor;
        else if (tensor) memcpy(node + layout.sources + 8 * (i - 1), &tensor, sizeof(tensor));
    }
    if (is_whole) {
        memcpy(node + layout.op, &op, sizeof(op));
        memcpy(node + layout_parameters(&layout), parameters, sizeof(parameters));
        answer = supports(device, node) ? '1' : '0';
    }
    if (context) release(context);
    return answer;
}

static char * next_line(FILE * file, char ** line, size_t * size) {
    const ssize_t length = getline(line, size, file);
    if (length <= 0) return NULL;
    if ((*line)[length - 1] == '\n') (*line)[length - 1] = 0;
    return *line;
}

static void answer_all(FILE * file, int answers) {
    char * line = NULL;
    size_t size = 0;
    ggml = next_line(file, &line, &size) ? dlopen(line, RTLD_NOW | RTLD_GLOBAL) : NULL;
    void * backend = ggml && next_line(file, &line, &size) ? dlopen(line, RTLD_NOW) : NULL;
    if (!backend) return;
    ggml_api_load(&api, ggml);
    if (!api.type_name || tensor_layout_find(&layout, &api, ggml) || layout_parameters(&layout) < 0) return;
    void * device = next_line(file, &line, &size) ? find_device(backend, line) : NULL;
    bool (*supports)(void *, const void *);
    *(void **) &supports = find("ggml_backend_dev_supports_op");
    if (!device || !supports) return;
    while (next_line(file, &line, &size)) {
        const char answer = ask(line, device, supports);
        if (write(answers, &answer, 1) != 1) return;
    }
}

/* Before main: then nothing of the program is executed. No other library is being loaded, so that backends may load theirs. */
__attribute__((constructor)) static void answer_instead(void) {
    const char * path = environment(ENV_ASK);
    FILE * file = path ? fopen(path, "re") : NULL;
    if (!path) return;
    const int answers = dup(STDOUT_FILENO);
    if (file && answers >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) answer_all(file, answers);
    _exit(0);
}
