/*
 * A host program for the recorder's tests that leaves llama_decode without its return: a callback of the program throws, or longjmps. Each argument
 * behind the model is one call of one token: `call` returns, `throw` and `jump` are left by the eval callback, `abort` is left by the abort
 * callback, inside a graph run. With `deep-` before it, the call is made from far down the stack, with large arrays that nothing writes to.
 * Prints JSON lines as run.c does.
 */
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <time.h>
#include <unistd.h>

#include "llama.h"

enum { LEAVE_AT = 8, DEPTH = 6, UNUSED_BYTES = 3000 };

static const char * way = "call";
static int asked;
static jmp_buf before;

static int64_t now() {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Nodes are computed together up to the eighth, from there on one by one. */
static bool evaluate(struct ggml_tensor *, bool ask, void *) {
    if (ask && ++asked < LEAVE_AT) return false;
    if (strcmp(way, "throw") == 0) throw std::runtime_error("left");
    if (strcmp(way, "jump") == 0) longjmp(before, 1);
    return true;
}

static bool abort_graph(void *) {
    if (strcmp(way, "abort") == 0 && ++asked == LEAVE_AT) longjmp(before, 1);
    return false;
}

__attribute__((noinline)) static int decode(struct llama_context * context) {
    llama_token token = 1;
    if (setjmp(before)) return -100;
    try {
        return llama_decode(context, llama_batch_get_one(&token, 1));
    } catch (const std::runtime_error &) {
        return -101;
    }
}

__attribute__((noinline)) static int decode_from(struct llama_context * context, int depth) {
    char unused[UNUSED_BYTES];
    __asm__ volatile("" : : "r"(unused) : "memory");
    const int result = depth ? decode_from(context, depth - 1) : decode(context);
    __asm__ volatile("" : : "r"(unused) : "memory");
    return result;
}

int main(int count, char ** arguments) {
    if (count < 4) return fputs("usage: leaving LIB MODEL STEP …\n", stderr), 2;
    llama_log_set([](enum ggml_log_level level, const char * text, void *) { if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr); }, nullptr);
    ggml_backend_load_all_from_path(arguments[1]);
    struct llama_model_params of_model = llama_model_default_params();
    const char * layers = getenv("LEAVING_GPU_LAYERS");
    of_model.n_gpu_layers = layers ? atoi(layers) : 0;
    struct llama_model * model = llama_model_load_from_file(arguments[2], of_model);
    if (!model) return 1;
    struct llama_context_params of_context = llama_context_default_params();
    of_context.n_ctx = 512;
    of_context.n_threads = of_context.n_threads_batch = 1;
    if (!getenv("LEAVING_WITHOUT_EVALUATION")) of_context.cb_eval = evaluate;
    of_context.abort_callback = abort_graph;
    struct llama_context * context = llama_init_from_model(model, of_context);
    if (!context) return 1;
    for (int i = 3; i < count; i++) {
        const bool is_deep = strncmp(arguments[i], "deep-", 5) == 0;
        way = arguments[i] + (is_deep ? 5 : 0);
        asked = 0;
        const int64_t start = now();
        const int result = is_deep ? decode_from(context, DEPTH) : decode(context);
        const int64_t end = now();
        if (result == 0)
            printf("{\"event\":\"call\",\"context\":0,\"call\":%d,\"tokens\":1,\"tid\":%d,\"start\":%lld,\"end\":%lld}\n",
                   i - 3, (int) getpid(), (long long) start, (long long) end);
        else
            printf("{\"event\":\"failed\",\"result\":%d,\"start\":%lld,\"end\":%lld}\n", result, (long long) start, (long long) end);
    }
    printf("{\"event\":\"result\",\"pid\":%d,\"tokens\":[]}\n", (int) getpid());
    llama_free(context);
    llama_model_free(model);
    return 0;
}
