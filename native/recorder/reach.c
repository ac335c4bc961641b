#include "common/system.h"
#include "recorder/reach.h"

#include "common/hold.h"
#include "recorder/layout.h"
#include "recorder/libraries.h"
#include "recorder/openmp.h"
#include "recorder/operators.h"
#include "recorder/program.h"
#include "recorder/recording.h"
#include "recorder/thread-runtimes.h"

enum { F32 = 0, VALUES = 4, DATA_BYTES = 1 << 16, TRIES_MAX = 8 };

static void * find(void * library, const char * name) {
    void * found = library_function(library, name);
    return found ? found : library_resolve(name, NULL);
}

/* Computes 0 + 0 + 0 with ggml-cpu. Returns its library; NULL: it is not loaded, or the test is not possible. */
static void * compute_two_nodes(const char ** path) {
    int (*compute)(void *, void *, int);
    *(void **) &compute = library_resolve("ggml_graph_compute_with_ctx", NULL);
    void * library = compute ? library_of(*(void **) &compute, path) : NULL;
    if (!library) return NULL;
    void * (*init)(struct init_params params), (*destroy)(void *);
    size_t (*graph_overhead)(void);
    void * (*new_tensor)(void *, int, int64_t), * (*add)(void *, void *, void *);
    void * (*new_graph)(void *), (*expand)(void *, void *), * (*get_data)(const void *);
    *(void **) &init = find(library, "ggml_init");
    *(void **) &destroy = find(library, "ggml_free");
    *(void **) &graph_overhead = find(library, "ggml_graph_overhead");
    *(void **) &new_tensor = find(library, "ggml_new_tensor_1d");
    *(void **) &add = find(library, "ggml_add");
    *(void **) &new_graph = find(library, "ggml_new_graph");
    *(void **) &expand = find(library, "ggml_build_forward_expand");
    *(void **) &get_data = find(library, "ggml_get_data");
    if (!init || !destroy || !graph_overhead || !new_tensor || !add || !new_graph || !expand || !get_data) return NULL;
    void * context = init((struct init_params){.mem_size = DATA_BYTES + graph_overhead()});
    if (!context) return NULL;
    void * a = new_tensor(context, F32, VALUES), * graph = new_graph(context);
    memset(get_data(a), 0, VALUES * sizeof(float));
    expand(graph, add(context, add(context, a, a), a));
    const int status = compute(context, graph, 1);
    destroy(context);
    return status == 0 ? library : NULL;
}

static atomic_bool are_unseen; /* starts of operators: barriers alone would give one operator the time of others */

static void fact(const char * key, const char * value) {
    ggtrace_fact(recording.log, key, value);
}

static const char * why_not_seen(void * library) {
    static const char name[] = "ggml_cpu_extra_compute_forward";
    if (program_problem(name)) return "the program's ggml_cpu_extra_compute_forward was left alone (program.refused)";
    if (library_function(library, name)) return "calls of ggml_cpu_extra_compute_forward are bound inside its library";
    if (program_has_ggml()) return "the program has no ggml_cpu_extra_compute_forward, which is called ahead of each operator: the compiler made it a part of its callers (-flto), or this ggml has none";
    return "this ggml has no function that is called ahead of each operator (ggml_cpu_extra_compute_forward)";
}

/* Returns false if there was no library to test. */
static bool find_out(void) {
    uint32_t starts, barriers;
    const char * path = NULL;
    operators_reset_outside_graphs();
    void * library = compute_two_nodes(&path);
    operators_outside_graphs(&starts, &barriers);
    if (!library) return false;
    thread_runtimes_find(library_function(library, "ggml_graph_compute_with_ctx"), fact);
    if (starts == 0) {
        atomic_store(&are_unseen, true);
        fact("operators.missing", why_not_seen(library));
        fact("operators.library", path);
    } else if (barriers == 0 && !openmp_is_redirected()) { /* the test has a single worker */
        operators_infer_ends();
        fact("operators.end", "inferred: calls of ggml_barrier are bound inside its library; "
                              "an operator lasts until its thread's next one starts, and contains the wait behind it");
        fact("operators.library", path);
    }
    return true;
}

bool reach_find(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic bool is_known;
    static int tries;
    if (atomic_load_explicit(&is_known, memory_order_acquire)) return !atomic_load_explicit(&are_unseen, memory_order_relaxed);
    HOLD(&lock);
    if (!atomic_load_explicit(&is_known, memory_order_relaxed) && (find_out() || ++tries == TRIES_MAX)) {
        atomic_store_explicit(&is_known, true, memory_order_release);
    }
    return !atomic_load_explicit(&are_unseen, memory_order_relaxed);
}
