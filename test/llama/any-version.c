/*
 * A program that decodes on request, as `run --step --times --threadpool` does (test/llama/run.c), with any version of llama.cpp: it
 * needs no headers. Structures of parameters, which differ between versions, are passed by value and larger than in any of them.
 *
 *     any-version LIBLLAMA BACKENDS MODEL THREADS PROMPT DECODE [EVERY]
 *
 * LIBLLAMA: path of the library; BACKENDS: folder of ggml's backends, or "-" for ggml's default. EVERY: each so many calls, one
 * has PROMPT tokens again. Each line of the input is a call, except "-" and "+": between them, the functions of a preloaded library are
 * not called.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "switch.h"

struct params { char bytes[2048]; };
struct pool_params { char bytes[4096]; };
struct batch { int32_t n_tokens; void * pointers[6]; };

static void * named(const char * name) {
    void * function = dlsym(RTLD_DEFAULT, name); /* a preloaded library comes first, as for a linked program */
    if (function) return function;
    fprintf(stderr, "any-version: no %s\n", name);
    exit(1);
}

/* `name` as a function of this type. */
#define FUNCTION(result, name, ...) result (*name)(__VA_ARGS__); *(void **) &name = named(#name)

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void quiet(int level, const char * text, void * data) {
    (void) level, (void) text, (void) data;
}

static void * cpu_function(const char * name) {
    FUNCTION(void *, ggml_backend_dev_by_type, int);
    FUNCTION(void *, ggml_backend_dev_backend_reg, void *);
    FUNCTION(void *, ggml_backend_reg_get_proc_address, void *, const char *);
    return ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(ggml_backend_dev_by_type(0)), name);
}

int main(int count, char ** arguments) {
    if (count < 7) return fprintf(stderr, "usage: any-version LIBLLAMA BACKENDS MODEL THREADS PROMPT DECODE [EVERY]\n"), 1;
    const int every = count > 7 ? atoi(arguments[7]) : 0;
    const int threads = atoi(arguments[4]), prompt = atoi(arguments[5]), decode = atoi(arguments[6]);
    void * library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) return fprintf(stderr, "any-version: %s\n", dlerror()), 1;
    FUNCTION(void, llama_log_set, void (*)(int, const char *, void *), void *);
    FUNCTION(struct params, llama_model_default_params, void);
    FUNCTION(struct params, llama_context_default_params, void);
    FUNCTION(void *, llama_model_load_from_file, const char *, struct params);
    FUNCTION(void *, llama_init_from_model, void *, struct params);
    FUNCTION(void, llama_set_n_threads, void *, int32_t, int32_t);
    FUNCTION(struct batch, llama_batch_get_one, int32_t *, int32_t);
    FUNCTION(int32_t, llama_decode, void *, struct batch);
    FUNCTION(void, llama_free, void *);
    llama_log_set(quiet, NULL);
    if (strcmp(arguments[2], "-") != 0) {
        FUNCTION(void, ggml_backend_load_all_from_path, const char *);
        ggml_backend_load_all_from_path(arguments[2]);
    } else {
        FUNCTION(void, ggml_backend_load_all, void);
        ggml_backend_load_all();
    }
    void * model = llama_model_load_from_file(arguments[3], llama_model_default_params());
    void * context = model ? llama_init_from_model(model, llama_context_default_params()) : NULL;
    if (!context) return fprintf(stderr, "any-version: no model or context: %s\n", arguments[3]), 1;
    llama_set_n_threads(context, threads, threads);
    if (threads > 1) {
        FUNCTION(void, ggml_threadpool_params_init, struct pool_params *, int);
        FUNCTION(void, llama_attach_threadpool, void *, void *, void *);
        static struct pool_params params;
        ggml_threadpool_params_init(&params, threads);
        void * (*create)(struct pool_params *);
        *(void **) &create = cpu_function("ggml_threadpool_new");
        void * pool = create ? create(&params) : NULL;
        if (!pool) return fprintf(stderr, "any-version: no thread pool\n"), 1;
        llama_attach_threadpool(context, pool, pool);
    }
    int32_t (*const through_hooks)(void *, struct batch) = llama_decode;
    int32_t tokens[512];
    for (int call = 0; call <= decode; call++) {
        char line[8];
        while (fgets(line, sizeof line, stdin) && *line != '\n') {
            switch_preloaded(*line == '+');
            *(void **) &llama_decode = *line == '+' ? (void *) through_hooks : dlsym(library, "llama_decode");
        }
        if (feof(stdin)) break;
        const int32_t n = call == 0 || (every && call % every == 0) ? prompt : 1;
        for (int i = 0; i < n; i++) tokens[i] = 3 + (call * 7919 + i * 7) % 250;
        const struct batch batch = llama_batch_get_one(tokens, n);
        const int64_t start = now();
        if (llama_decode(context, batch) != 0) return fprintf(stderr, "any-version: llama_decode failed\n"), 1;
        printf("{\"event\":\"call\",\"start\":%lld,\"end\":%lld}\n", (long long) start, (long long) now());
        fflush(stdout);
    }
    llama_free(context);
    return 0;
}
